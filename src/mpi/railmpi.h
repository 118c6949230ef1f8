/*
 * railmpi.h - librailmpi: MPI over rails, for programs that want to know.
 *
 * A program needs none of this: linked with or preloaded by librailmpi, its
 * point-to-point messages go over rails (RAILGAUGE_OVER and the other
 * RAILGAUGE_ variables steer it).  This header is for programs that compare.
 *
 * The way of a communicator is chosen when it is made and never changes:
 *
 *	MPI_Info_set(info, RAILMPI_INFO_KEY, "stripe,threshold=16K");
 *	MPI_Comm_dup_with_info(comm, info, &striped);
 *
 * The harness sets over=native (railmpi_option) before MPI_Init, so that
 * MPI_COMM_WORLD stays the MPI library's own and only such duplicates go over
 * rails; a program that compares does well to do the same.
 *
 * Value: native | single | single:N | bind | stripe | weighted | pull, then
 * ",name=value" for options that belong to a communicator.  All ranks must give the same.
 * single:N: large messages go over rail N alone (rails count from 0, in the order
 * of railmpi_fabric); small ones take the way of `single`.  Communicators made
 * from a routed one by dup and split inherit its way.
 */
#ifndef RAILMPI_H
#define RAILMPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define RAILMPI_INFO_KEY "railgauge"

struct opt;
struct opt_choice;

/*
 * The rows of the transport's options (util/opt.h), for a program that offers
 * them as its own; their values are passed on by railmpi_option where a row's
 * carry has OPT_JOB, and in the info value where it has OPT_COMM.
 */
const struct opt *railmpi_options(void);

/*
 * The choices of --over: name -> enum railmpi_way.  "single:N", one rail that is
 * named, is RAILMPI_SINGLE_RAIL + N; whether there is a rail N is known when a
 * communicator is made.
 */
enum railmpi_way {
	RAILMPI_NATIVE, RAILMPI_SINGLE, RAILMPI_BIND, RAILMPI_STRIPE, RAILMPI_WEIGHTED,
	RAILMPI_PULL,
	RAILMPI_SINGLE_RAIL = 16,
};
enum { RAILMPI_WAYS_MAX = 24 };		/* choices at most */
const struct opt_choice *railmpi_ways(void);

/*
 * Set one process-wide option before MPI_Init, as RAILGAUGE_<NAME> would; the
 * same on all ranks.  0, or -EINVAL with a reason in why.
 */
int railmpi_option(const char *name, const char *text, char *why, size_t why_size);

enum {
	RAILMPI_RAILS_MAX = 8,		/* rails to other nodes */
	RAILMPI_LOCAL = 8,		/* the number of the rail to ranks on one's own node */
	RAILMPI_LEDGERS = 9,		/* all of them */
};

struct railmpi_rail {
	char name[72];
	uint64_t rate_bytes_per_s;	/* nominal, per direction; 0 = unlimited */
	uint32_t mtu_bytes;
	bool polls_memory;
	bool counts_retries;		/* railmpi_ledger.retries means something */
};

struct railmpi_fabric {
	const char *kind;		/* "hardware", "kernel software", "software HCA" or "none" */
	bool hardware;			/* numbers may be cited as hardware's */
	bool modelled;			/* timed by a model, not by the machine */
	const char *text;		/* for people */
	const char *spec;		/* of the software HCA or "" */
	const char *doubt;		/* why the model cannot be kept here, or "" */
	/*
	 * What --threshold auto found: a text of librailmpi's own, "" until it is filled in, so
	 * that a struct that was taken before, with the rails open, shows it, too.
	 */
	const char *threshold;
	unsigned nodes;			/* virtual nodes, 0 on a real fabric */
	int rail_count;
	struct railmpi_rail rail[RAILMPI_RAILS_MAX];
	/*
	 * This process reaches ranks on its node by a rail of its own, an untimed
	 * software HCA: RAILMPI_LOCAL.  Not counted in rail_count.
	 */
	bool has_local;
};

/*
 * Bring up the rails now (collective over MPI_COMM_WORLD; otherwise the first
 * routed communicator does it).  0 or -errno on every rank, after one error
 * line on one of them.
 */
int railmpi_open(void);

/*
 * Does this info value make sense on the rails that are open?  0, or -EINVAL with a
 * reason in why; MPI_Comm_dup_with_info raises MPI_ERR_OTHER after the same line.
 */
int railmpi_way_check(const char *value, char *why, size_t why_size);

/* What the rails run on; kind "none" when no communicator is routed. */
void railmpi_fabric(struct railmpi_fabric *out);

/*
 * What several rails of this node share, and how fast that is, nominally: a PCIe
 * link, what the software HCA models.  Sets are nested or disjoint, smaller first.
 */
enum { RAILMPI_SHARES_MAX = 16 };
struct railmpi_share {
	char name[64];			/* "PCIe link 0000:17:00", "bus of soft0" */
	uint32_t rails;			/* bit i: rail i */
	uint64_t out, in;		/* bytes per second, sending and receiving */
	bool half;			/* both directions share it, each at its own rate */
};
/* Those that are known; how many. */
int railmpi_shares(struct railmpi_share out[RAILMPI_SHARES_MAX]);

/* What this process has moved over a rail since it was opened. */
struct railmpi_ledger {
	uint64_t tx_messages, tx_chunks, tx_bytes;	/* eager; of rendezvous; payload of both */
	uint64_t rx_messages, rx_chunks, rx_bytes;
	uint64_t stalls;		/* times a message waited for credit or queue space */
	uint64_t retries;		/* of the adapter; 0 unless railmpi_rail.counts_retries */
};
/* -ENOENT: this process has no such rail. */
int railmpi_ledger(int rail, struct railmpi_ledger *out);

/*
 * What the rail's port says of itself now: system calls.  The state is an enum
 * ibv_port_state (4: ACTIVE), 0 if it cannot be asked.
 */
int railmpi_port_state(int rail);
const char *railmpi_port_state_text(int state);
/*
 * The port's own counters, of all its users, as the kernel names them; value NULL:
 * at its end, what came after is not known.  Returns how many there are.
 */
typedef void railmpi_counter_fn(void *user, const char *name, const uint64_t *value);
int railmpi_port_counters(int rail, railmpi_counter_fn *each, void *user);
/* Does it count how often something had to be sent again? */
bool railmpi_counter_is_retry(const char *name);

/* ---- Algorithms of collectives, for programs that compare them ---- */

/*
 * From now on as --coll LIST would have it, without @FILE: what --coll forced is forgotten,
 * the rules of its files stay; "auto": nothing is forced.  Collective in that all ranks say the
 * same between the same collectives, none of which is under way in any thread; no message is
 * sent.  0, or -EINVAL with a reason in why, and nothing has changed.
 */
int railmpi_coll(const char *list, char *why, size_t why_size);
/* The algorithms of a collective, i = 0, 1, ...; NULL: no more, or no such collective. */
const char *railmpi_coll_candidate(const char *collective, int i);
/*
 * What this process's last collective over rails used, where there was a choice; "auto": none
 * was yet.  *bytes: what rules count, m in src/mpi/coll/coll.h.  The same on all its ranks.
 */
const char *railmpi_coll_used(size_t *bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
