/*
 * railmpi.h - librailmpi: MPI over rails; the interface for programs that compare ways.
 *
 * Other programs need no part of it.  With librailmpi linked or preloaded, the messages of a
 * program go over rails; RAILGAUGE_OVER and the other RAILGAUGE_ variables set the options.
 *
 * The way of a communicator is chosen when it is made and never changes:
 *
 *	MPI_Info_set(info, RAILMPI_INFO_KEY, "stripe,threshold=16K");
 *	MPI_Comm_dup_with_info(comm, info, &striped);
 *
 * The harness sets over=native (railmpi_option) before MPI_Init.  MPI_COMM_WORLD then stays
 * native, and only such duplicates go over rails.  Programs that compare should do the same.
 *
 * A value begins with a way of railmpi_ways (native, single, single:N, bind, stripe and others),
 * then has ",name=value" for options that belong to a communicator.  All ranks must give the same.
 * single:N: large messages go over rail N alone (rails count from 0, in the order of
 * railmpi_fabric); small messages go as with `single`.  Communicators made from a routed one by
 * dup and split inherit its way.
 */
#ifndef RAILMPI_H
#define RAILMPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/learned.h"
#include "rail/ledger.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define RAILMPI_INFO_KEY "railgauge"

struct opt;
struct opt_choice;

/*
 * The rows of the transport's options (util/opt.h), for a program that accepts them on its
 * own command line.  The program passes their values to railmpi_option where a row's carry
 * has OPT_JOB, and in the info value where it has OPT_COMM.
 */
const struct opt *railmpi_options(void);
/* Rows for programs that know nothing of this header: `railgauge exec`. */
const struct opt *railmpi_program_options(void);

/*
 * The choices of --over: name -> enum railmpi_way.  A policy of librail is its number + 1.
 * "single:N" is RAILMPI_SINGLE_RAIL + N; whether rail N exists is checked when a communicator is
 * made.
 */
enum railmpi_way {
	RAILMPI_NATIVE, RAILMPI_SINGLE, RAILMPI_BIND, RAILMPI_STRIPE, RAILMPI_WEIGHTED,
	RAILMPI_PULL,
	RAILMPI_SINGLE_RAIL = 16,
};
enum { RAILMPI_WAYS_MAX = 24 };		/* choices at most */
/* Traits of a choice. */
enum {
	RAILMPI_USES_ALL = 1,	/* all rails carry messages: of different pairs of ranks, or pieces */
	RAILMPI_CUTS = 2,	/* a message above the threshold goes over all rails */
};
const struct opt_choice *railmpi_ways(void);

/*
 * Set one process-wide option before MPI_Init, as RAILGAUGE_<NAME> would.  The value must be
 * the same on all ranks.  0, or -EINVAL with a reason in why.
 */
int railmpi_option(const char *name, const char *text, char *why, size_t why_size);

enum {
	RAILMPI_RAILS_MAX = 8,		/* rails to other nodes */
	RAILMPI_LOCAL = 8,		/* the number of the rail to ranks on the same node */
	RAILMPI_LEDGERS = 9,		/* all of them */
};

struct railmpi_rail {
	char name[72];
	uint64_t rate_bytes_per_s;	/* nominal, per direction; 0 = unlimited */
	uint32_t mtu_bytes;
	bool polls_memory;
	bool counts_retries;		/* rail_ledger.retries is valid */
	char firmware[64];		/* in the device's words; "": not known */
	char gid[48];			/* in the format of inet_ntop; "": none */
	char netdev[16];		/* over TCP: the network interface; "": not known */
};

struct railmpi_fabric {
	/* "hardware", "kernel software", "software HCA", "software HCA over TCP" or "none" */
	const char *kind;
	bool software_hca;		/* true: ports are libsofthca's */
	bool net;			/* ... and network interfaces: over TCP, also between hosts */
	bool hardware;			/* numbers may be cited as hardware's */
	bool modelled;			/* timed by a model, not by the machine */
	const char *text;		/* for people */
	const char *spec;		/* text of the software HCA's model, or "" */
	const char *doubt;		/* why this machine cannot keep the model's times, or "" */
	/*
	 * The result of --threshold auto: a buffer of librailmpi's, "" until it is filled in.  A
	 * struct that was obtained earlier, with the rails open, shows the result, too.
	 */
	const char *threshold;
	unsigned nodes;			/* virtual nodes, 0 on a real fabric and over TCP */
	uint64_t eager_bytes;		/* the job's limit of eager messages (--eager) */
	int rail_count;
	struct railmpi_rail rail[RAILMPI_RAILS_MAX];
	/*
	 * The process reaches ranks on its node over a separate rail, an untimed software HCA:
	 * RAILMPI_LOCAL.  rail_count leaves it out.
	 */
	bool has_local;
};

/*
 * Open the rails now.  Collective over MPI_COMM_WORLD.  Without this call the first
 * routed communicator opens them.  0 or -errno on every rank, after one error line on
 * one of them.
 */
int railmpi_open(void);

/*
 * Check an info value against the rails that are open.  0, or -EINVAL with a reason in
 * why; MPI_Comm_dup_with_info raises MPI_ERR_OTHER after the same line.
 */
int railmpi_way_check(const char *value, char *why, size_t why_size);

/* The fabric below the rails; kind "none" when no rails are open. */
void railmpi_fabric(struct railmpi_fabric *out);

/* How this process's kernel treats the streams of a rail over TCP; "" or 0: unknown. */
struct railmpi_net {
	char interface[16];
	char driver[16];
	uint32_t mtu_bytes;		/* of an IP packet */
	char offloads[32];		/* those in use, of "tso gso gro" */
	char congestion_control[16];
	/* Bytes of a socket's buffer: least, first, most. */
	uint64_t receive_buffer[3], send_buffer[3];
};
/* 0, or -ENOENT: no such rail, or not over TCP. */
int railmpi_net(int rail, struct railmpi_net *out);

/*
 * A number of the node of a rank of MPI_COMM_WORLD: ranks with equal numbers share memory, or a
 * virtual node.  -1: no rails are open, or there is no such rank.
 */
int railmpi_node_of(int rank);

/*
 * Fill in the known limits that rails of this node share; returns their number.  Sets are nested
 * or disjoint, smaller ones first.
 */
int railmpi_shares(struct rail_share out[RAIL_SHARES_MAX]);

/*
 * The port of a rail as src/verbs knows it (vrb.h); NULL: no such rail.  The suite's own programs
 * make queue pairs of their own on it.  Functions of src/verbs are exported for these programs
 * only, since this library holds the software HCA that the port may belong to.
 */
struct vrb_port;
const struct vrb_port *railmpi_port(int rail);
/* All ports of this node's adapters, those that are no rails, too; NULL: no rails are open. */
struct vrb_ports;
const struct vrb_ports *railmpi_ports(void);

/*
 * Counts of this process's messages over a rail since it was opened.  retries: 0 unless
 * railmpi_rail.counts_retries.  -ENOENT: this process has no such rail.
 */
int railmpi_ledger(int rail, struct rail_ledger *out);

/*
 * The state of the rail's port now, by system calls: an enum ibv_port_state, 0 if it cannot be
 * read.
 */
enum { RAILMPI_PORT_ACTIVE = 4 };	/* IBV_PORT_ACTIVE */
int railmpi_port_state(int rail);
const char *railmpi_port_state_text(int state);
/*
 * The port's own counters, over all users of the port, under the kernel's names.  value NULL: the
 * counter is at its maximum and has stopped.  Returns the number of counters.
 */
typedef void railmpi_counter_fn(void *user, const char *name, const uint64_t *value);
int railmpi_port_counters(int rail, railmpi_counter_fn *each, void *user);
/* Does this counter count retransmissions? */
bool railmpi_counter_is_retry(const char *name);

/*
 * Cell number 0, 1, ... of what librail has learned in this process so far.  False: there are no
 * more.
 */
bool railmpi_learned(unsigned cell, struct rail_learned *out);
/* Messages that this process has read, whatever was learned, since their senders answered late. */
uint64_t railmpi_late_reads(void);
/* The place of a rank of MPI_COMM_WORLD on this host, as in cells; NULL: nothing is routed. */
const char *railmpi_place(int rank);
/* rail_learned_text, rail_processor of librail. */
enum { RAILMPI_LEARNED_TEXT = 320 };
void railmpi_learned_text(const struct rail_learned *cell, char *text, size_t size);
void railmpi_processor(char *name, size_t size);

/*
 * What calls of collectives have cost on communicators of one kind: of so many ranks, of one way, and on the
 * same nodes and places.
 */
enum { RAILMPI_RACERS = 4 };
struct railmpi_race {
	const char *collective;
	uint64_t bytes;			/* of a call: at most, and more than half of it */
	int ranks, nodes;
	char over[64];			/* the way, as in --over */
	char places[32];		/* of ranks on this process's host: "cache", "cache+apart"; "": of none */
	const char *algorithm;		/* the choice */
	/* "measured", "racing"; the usual one: "crowded", ranks share cores, "unlike", calls differed. */
	const char *why;
	int candidates;
	struct {
		const char *name;
		uint32_t cost_ns;	/* of a call; 0: not measured */
	} candidate[RAILMPI_RACERS];
};
/*
 * Race number 0, 1, ... of communicators whose rank 0 is this process, those that are freed, too.  False:
 * there are no more.
 */
bool railmpi_race(unsigned race, struct railmpi_race *out);

/* Is this the error of a rank that is lost?  The transport has reported it on stderr. */
bool railmpi_error_is_lost(int error);

/* ---- Algorithms of collectives, for programs that compare them ---- */

/*
 * Set --coll to LIST, without @FILE.  Algorithms that an earlier list forced are reset; rules
 * of files stay; "auto" forces nothing.  All ranks must make the same call between the same
 * collectives, with none under way in any thread; the call sends no message.  0, or -EINVAL
 * with a reason in why and nothing changed.
 */
int railmpi_coll(const char *list, char *why, size_t why_size);
/* The i-th algorithm of a collective, from 0; NULL: no more, or no such collective. */
const char *railmpi_coll_candidate(const char *collective, int i);
/*
 * The algorithm of this process's last collective over rails that had a choice; "auto": there
 * was none yet.  *bytes: the bytes that rules compare, m in src/mpi/coll/coll.h.  The same on
 * all ranks of the communicator.
 */
const char *railmpi_coll_used(size_t *bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
