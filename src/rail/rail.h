/*
 * rail.h - librail: messages to a peer over one or more rails.
 *
 * A *rail* is one port of an adapter, paired with the port of the same index at each
 * peer.  Each peer has *lanes*, queue pairs of its own.  Eager lanes carry whole small
 * messages and control; they are on the first rail and on the rails that the two ends are
 * bound to.  Bulk lanes carry chunks of large messages; `qps` of them are on every rail.
 * So eight bytes never wait for a megabyte.
 *
 *	message <= eager limit   one eager record on the rail bound to the peer
 *	message >  eager limit   rendezvous: RTS, CTS (addresses, rkeys), chunks
 *	                         by RDMA_WRITE_WITH_IMM over the rails that the
 *	                         policy names, a bitmap at the receiver, one upcall;
 *	                         or the receiver reads and answers FIN
 *
 * The sender decides which rail carries a chunk (by read: the receiver).  All bulk lanes hold
 * receives for immediates; a CTS only counts them out.  So every queue pair finds its receiver
 * ready.
 *
 * librail knows no MPI.  The caller exchanges addresses (rail_address / rail_peer_add), gives
 * every message a 16-byte header, which librail only carries, and does the matching in
 * on_message.
 *
 * Order: messages that go one way (struct rail_way) to one peer arrive (on_message) in the order
 * in which they were sent.  Messages of different ways have no order.
 *
 * Threads: the caller lets one thread at a time use a context.  Every call returns without
 * waiting.  The path of a message has no allocation, system call or lock, except in the device,
 * at the first use of a buffer (registration) and for a message of more than RAIL_PART_BYTES.
 *
 * Errors: 0 or -errno.  The function that detects an error logs it, in one line.  Outputs
 * are set only on success.
 */
#ifndef RAIL_H
#define RAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rail/learned.h"
#include "rail/ledger.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct rail_ctx;
struct rail_peer;

enum {
	RAIL_MAX = 8,			/* rails to a peer */
	RAIL_ALL = RAIL_MAX + 1,	/* rails of a process, the local one included */
	RAIL_QPS_MAX = 8,		/* bulk queue pairs per rail and peer */
};

/* ---- Memory ------------------------------------------------------------- */

enum rail_mem_kind {
	RAIL_MEM_HOST,		/* any memory of this process */
	RAIL_MEM_ARENA,		/* from rail_alloc: mapped by the software HCA */
	RAIL_MEM_CUDA,		/* GPU memory: never touched by memcpy; not yet carried */
	/*
	 * Memory in several pieces, or memory that adapters cannot have: addr is unused, on_part
	 * gathers and scatters the bytes, RAIL_PART_BYTES at a time.  For messages above the eager
	 * limit only.
	 */
	RAIL_MEM_PARTS,
};

#define RAIL_PART_BYTES ((size_t)16 << 20)

struct rail_buf {
	void *addr;
	size_t bytes;
	enum rail_mem_kind kind;
	/*
	 * rail_accept: the memory is a copy of memory in several pieces.  A message that comes in slices
	 * is scattered by on_part, slice by slice, and the copy stays as it is.
	 * rail_send, with RAIL_MEM_PARTS: the message goes in slices, each gathered when there is room for
	 * it; rail_slices tells where that is possible.
	 */
	bool in_slices;
	/*
	 * rail_accept: the frame of the function that owns the buffer, to tell stacks from other
	 * memory (softhca_map).  NULL: the buffer stays unmapped under all settings.
	 */
	const void *frame;
};

/* Buffers for messages, registered on all rails until rail_free. */
void *rail_alloc(struct rail_ctx *ctx, size_t bytes);
void rail_free(struct rail_ctx *ctx, void *addr);
enum rail_mem_kind rail_mem_kind_of(const struct rail_ctx *ctx, const void *addr);

/*
 * Memory [addr, addr + bytes) is about to be unmapped or replaced: drop its registrations,
 * in every context of the process.  From any thread, at any time.  Where a real device
 * needs it, librail itself watches munmap, mremap, madvise and the like; this call is for
 * allocators that hide them.
 */
void rail_mr_invalidate(const void *addr, size_t bytes);

/* ---- Options ------------------------------------------------------------ */

/* The rule for the rail that carries a process's small messages and all whole ones. */
enum rail_bind {
	RAIL_BIND_RANK,		/* local rank, modulo rails; P1: one rail further to lower ranks */
	RAIL_BIND_NEAR,		/* the rail nearest to the cores that the process may run on */
};

/* The path to peers on the same node. */
enum rail_intranode {
	RAIL_INTRANODE_SOFT,	/* through an untimed software HCA of their own: memory */
	RAIL_INTRANODE_HCA,	/* over the rails, as if they were apart */
};

/*
 * The life of a registration of memory that is not from rail_alloc: until the memory goes
 * away, which a watch on memory reports (rail_unwatched tells why there is no watch), or as
 * long as the message that it was made for.
 */
enum rail_registration {
	RAIL_REGISTER_KEPT,
	RAIL_REGISTER_EACH,
};

/* A setting that librail chooses itself. */
#define RAIL_AUTO UINT64_MAX

/* The options of a process; rail_settings_init gives each its default. */
struct rail_settings {
	const char *rails;	/* "all" or "soft0:1,soft0:2" */
	const char *soft;	/* spec of the software HCA; NULL: only if no device exists */
	uint64_t threshold;	/* bytes; a message above it is striped */
	/*
	 * Bytes; a message above it goes by rendezvous.  The receive buffers of
	 * the process have this size, so it bounds the value of a way.
	 */
	uint64_t eager;		/* RAIL_AUTO: by fabric */
	int rendezvous, completion;	/* enum rail_rendezvous, rail_completion */
	uint64_t chunk;		/* bytes of a request of a large message; 0 or RAIL_AUTO: by fabric */
	uint64_t qps;		/* bulk queue pairs per rail and peer, to RAIL_QPS_MAX; 0: 1; RAIL_AUTO: 1, of a LAG 2 */
	int bind;		/* enum rail_bind */
	int intranode;		/* enum rail_intranode */
	int registration;	/* enum rail_registration */
	const char *costs;	/* file of costs instead of learning, as rg_tune writes it; NULL: none */
	bool map_buffers;	/* peers map receive buffers that are used again (software HCA) */
	/* The configuration of every port. */
	const char *gid_index;	/* "3", "mlx5_0:1=3"; NULL or "auto": chosen by network and type */
	uint64_t mtu;		/* bytes at most; 0 or RAIL_AUTO: the active MTU */
	uint64_t sl, tclass;	/* tclass RAIL_AUTO: the host's */
	const char *pkey;	/* "0x8001"; NULL: the first that all hosts have */
};
void rail_settings_init(struct rail_settings *set);

/* ---- Opening ------------------------------------------------------------ */

enum rail_fabric {
	RAIL_FABRIC_HARDWARE,
	RAIL_FABRIC_KERNEL_SOFTWARE,	/* Soft-RoCE, Soft-iWARP */
	RAIL_FABRIC_SOFTHCA,
	RAIL_FABRIC_SOFTHCA_TCP,	/* ports are network interfaces: hosts are joined over TCP */
};

/*
 * Count the ACTIVE ports of real (or kernel software) devices that this process
 * sees.  Each device is open only briefly.  The caller agrees with its peers on
 * the devices to use.
 */
int rail_probe(const struct rail_settings *set, int *active_ports);

/*
 * Does the software HCA of these settings (`soft`, else SOFTHCA_SPEC) have network interfaces as
 * ports, and join hosts?
 */
bool rail_soft_is_net(const struct rail_settings *set);
/*
 * Does --rails begin with a port of the software HCA?  A device of this host may have such a name, too:
 * a software HCA in place of libibverbs.
 */
bool rail_soft_is_named(const struct rail_settings *set);

/* ---- The ports of all hosts ----------------------------------------------- */

/*
 * The rails of a job on RDMA devices are chosen among the ports of all its hosts.  One process of each
 * host lists the host's ports; all processes get all lists, in one order, and compute the same.
 */
struct rail_hosts;

/*
 * This host's list, for free(); of a host with so many processes of the job, which has so many ranks.
 * 0, or -errno after a line.
 */
int rail_hosts_list(const struct rail_settings *set, unsigned processes, unsigned ranks, void **list,
		    size_t *bytes);
/* lists: one after the other, of bytes[0], bytes[1], ...  mine: the place of this host's. */
int rail_hosts_open(const void *lists, const size_t *bytes, unsigned hosts, unsigned mine,
		    struct rail_hosts **out);
void rail_hosts_close(struct rail_hosts *hosts);
/* 0, or -errno after a line: they have no rail in common. */
int rail_hosts_choose(struct rail_hosts *hosts);
/*
 * Rails over which an address handle to another host fails, by this host: bits.  All hosts exclude
 * what any of them has found, and choose again; false: nothing was found.
 */
struct rail_hosts_fault { uint32_t rails; };
void rail_hosts_try(const struct rail_hosts *hosts, struct rail_hosts_fault *out);
bool rail_hosts_exclude(struct rail_hosts *hosts, const struct rail_hosts_fault *all);
/*
 * Do datagrams pass over the rails?  Collective over hosts, by the process that lists their ports:
 * rail_probe_open, the addresses of all hosts in their order to rail_probe_start, rounds until nothing
 * is missing or the caller is content, all processes at the same time.  A round takes at most most_ns;
 * true: something is missing.
 */
struct rail_prober;
enum { RAIL_PROBE_BYTES = 256 };	/* an address */
/* NULL: nothing to probe, or no way to; the address says so to the others. */
struct rail_prober *rail_probe_open(const struct rail_settings *set, const struct rail_hosts *hosts,
				    unsigned char address[RAIL_PROBE_BYTES]);
/* False: a host cannot probe. */
bool rail_probe_start(struct rail_prober *prober, const unsigned char *addresses);
bool rail_probe_round(struct rail_prober *prober, uint64_t most_ns);
/* Mark the hosts at the ends of what this process misses: a byte each.  All add theirs by OR. */
void rail_probe_suspects(const struct rail_prober *prober, unsigned char *marked);
/*
 * Later rounds are between all rails, unlike ones too, of the hosts marked and all others; NULL: of the
 * host by whose ports the rails are counted.
 */
void rail_probe_pairs(struct rail_prober *prober, const unsigned char *marked);
/*
 * Nothing passes from a host's rail to these rails, as bits, of another.  To itself: its port has failed,
 * and rails is the event (enum ibv_event_type).
 */
struct rail_loss { uint32_t from, to, rail, rails; };
/* The losses on the way to this host, at most RAIL_MAX times the number of hosts. */
size_t rail_probe_lost(struct rail_prober *prober, struct rail_loss *lost);
void rail_probe_close(struct rail_prober *prober);
/*
 * The losses of all hosts: the next choice pairs no ports of them.  news: the choice did not know all.
 * 0 or -ENOMEM.
 */
int rail_hosts_lose(struct rail_hosts *hosts, const struct rail_loss *lost, size_t count, bool *news);
/* Lines about what the choice has left out. */
void rail_hosts_tell(const struct rail_hosts *hosts, void (*line)(void *arg, const char *text),
		     void *arg);
/* A line where peers have one rail and smaller shares; "": they have all, or limits of adapters refuse the job. */
void rail_hosts_narrow_text(const struct rail_hosts *hosts, char *text, size_t size);

struct rail_message;
struct rail_op;
struct rail_header;

struct rail_config {
	const struct rail_settings *settings;
	bool use_softhca;		/* agreed by all: software devices instead of real ones */
	const char *fabric;		/* name of the software fabric, the same at all peers */
	unsigned node;			/* virtual node (software HCA in memory) */
	unsigned index;			/* index of this process among its peers: world rank */
	unsigned local_rank;		/* among the processes of its node: gives its rail */
	unsigned peer_count;		/* peers at most, this one included */
	/*
	 * The node of each peer, by index; peers with equal numbers share memory.
	 * local_fabric is a name that only they use: see enum rail_intranode.  NULL: every
	 * peer is on a node of its own.
	 */
	const unsigned *node_of;
	const char *local_fabric;
	/*
	 * A message has come.  Called from rail_progress only, in order per way
	 * and peer.  An eager message's payload must be copied now: msg and
	 * msg->payload die with the return.
	 */
	void (*on_message)(void *user, const struct rail_message *msg);
	/*
	 * A peer has failed; its operations have ended with -ECONNRESET, and its last message has
	 * come.  rail_peer_failure tells the reason.  error: -ESRCH if its process has ended, as
	 * far as this host knows; else another.
	 */
	void (*on_peer_error)(void *user, unsigned index, int error);
	/*
	 * About once a second: the caller is to name the peers that it waits for, by
	 * rail_peer_watch.  NULL: never.
	 */
	void (*on_watch)(void *user);
	/*
	 * The sender cancels a rendezvous message that has not been accepted.  True: the caller
	 * forgets the message, its handle is void.  False: the caller will accept it, and the
	 * send goes on.  From rail_progress only.  NULL: as false.
	 */
	bool (*on_cancel)(void *user, uint64_t rendezvous);
	/*
	 * For people: an eager message has left over this rail, or is about to be handed to
	 * on_message.  NULL costs nothing: functions that call on_eager replace others only while
	 * it is set (trace.c).  For rendezvous messages: rail_op_traced.
	 */
	void (*on_eager)(void *user, unsigned index, bool sent, int rail,
			 const struct rail_header *header, size_t bytes);
	/*
	 * Gather bytes [from, from + bytes) of a message into `part`, or scatter them from
	 * there.  The buffer of `op` is RAIL_MEM_PARTS or in slices.  From rail_progress only, in order.
	 * NULL: the caller has no such buffers.
	 */
	void (*on_part)(void *user, struct rail_op *op, uint64_t from, void *part, size_t bytes,
			bool gather);
	void *user;
	/*
	 * Software HCA over TCP: 64 hex digits that all peers have and no other process knows; NULL: those
	 * of SOFTHCA_SECRET_FILE.
	 */
	const char *secret;
	/*
	 * The choice of all hosts, for RDMA devices; used by rail_open alone.  NULL: this process
	 * chooses by itself, and peers that have chosen other rails are refused.
	 */
	const struct rail_hosts *hosts;
};

int rail_open(const struct rail_config *cfg, struct rail_ctx **out);
/* Drain all queues, then destroy.  Every operation has completed before. */
void rail_close(struct rail_ctx *ctx);

/*
 * All peers of a software fabric are attached: its name may go.  Called after
 * the caller's barrier; without effect on other fabrics.
 */
void rail_all_attached(struct rail_ctx *ctx);

struct rail_info {
	char name[72];			/* "soft0:1"; "local" */
	bool local;			/* leads to peers on this node only */
	enum rail_fabric fabric;
	uint64_t rate;			/* nominal, bytes per second and direction; 0 = unlimited */
	uint32_t mtu_bytes;
	bool polls_memory;		/* eager lane: RDMA-write ring, else SEND */
	char firmware[64];		/* in the device's words; "": not known */
	char gid[48];			/* in the format of inet_ntop; "": none */
	char netdev[16];		/* over TCP: the network interface; "": not known */
};

/*
 * The known limits, smaller sets of rails first; two sets are nested or disjoint.  Makes system
 * calls: not between two messages.  Returns the number of limits.
 */
int rail_shares(const struct rail_ctx *ctx, struct rail_share out[RAIL_SHARES_MAX]);

/* Rails to other nodes: 0 to count - 1. */
int rail_count(const struct rail_ctx *ctx);
/* The rail to peers on this node, also for rail_info and rail_ledger; -1: no such rail. */
int rail_local(const struct rail_ctx *ctx);
void rail_info(const struct rail_ctx *ctx, int rail, struct rail_info *out);
/*
 * Are all rails, the local one included, untimed software HCAs in memory?  The processors of both ends copy
 * the bytes of these, so several rails are no faster than one.
 */
bool rail_copied(const struct rail_ctx *ctx);
/*
 * Returns whether the adapter counts retransmissions by process, as the software HCA alone does.
 * Elsewhere retries is 0, and the port's counters show the retries of all its users
 * (rail_counter_is_retry).
 */
bool rail_ledger(const struct rail_ctx *ctx, int rail, struct rail_ledger *out);

/*
 * Bytes of this process's messages that were cut over several rails, of a message when the receiver
 * has answered.
 */
uint64_t rail_striped_bytes(const struct rail_ctx *ctx);
/* Cell number 0, 1, ... of what this process has learned so far.  False: there are no more. */
bool rail_learned(const struct rail_ctx *ctx, unsigned cell, struct rail_learned *out);
/* A cell in a line: TABLE PLACE LOAD BYTES SCHEME NAME=COST..., costs in nanoseconds. */
enum { RAIL_LEARNED_TEXT = 320 };
void rail_learned_text(const struct rail_learned *cell, char *text, size_t size);
/* The name of the processor, of which costs are. */
void rail_processor(char *name, size_t size);

/*
 * The state of the port now: enum ibv_port_state, IBV_PORT_ACTIVE is 4; 0: it cannot be read.
 * Makes system calls: not between two messages.
 */
int rail_port_state(const struct rail_ctx *ctx, int rail);
const char *rail_port_state_text(int state);
/*
 * The counters of the port, for all its users, under the kernel's names; value NULL: the
 * counter is at its end and has stopped.  port_xmit_data and port_rcv_data count units
 * of four bytes.  Over TCP: of the network interface, such as tx_bytes.  Returns the number of
 * counters (software HCA in memory: 0).
 */
typedef void rail_counter_fn(void *user, const char *name, const uint64_t *value);
int rail_port_counters(const struct rail_ctx *ctx, int rail, rail_counter_fn *each, void *user);
/* Does a counter of this name count retransmissions? */
bool rail_counter_is_retry(const char *name);
/* Why registrations are not kept although the settings want it; else NULL. */
const char *rail_unwatched(const struct rail_ctx *ctx);

/* The fabric: "software HCA (libsofthca), 2 ports, 1 GB/s per port and direction, 2 us". */
const char *rail_fabric_text(const struct rail_ctx *ctx);
/* Canonical spec of the software HCA, "" elsewhere. */
const char *rail_fabric_spec(const struct rail_ctx *ctx);
/* Why the software HCA's model cannot be kept on this machine now, or "". */
const char *rail_fabric_doubt(struct rail_ctx *ctx);
enum rail_fabric rail_fabric_kind(const struct rail_ctx *ctx);

/* Receive buffers that `map_buffers` has mapped, or could not map. */
struct rail_map_count {
	uint64_t buffers, bytes;	/* mapped, counted each time */
	uint64_t refused;		/* times that a buffer could not be mapped */
};
void rail_map_count(const struct rail_ctx *ctx, struct rail_map_count *out);
/*
 * Keep memory unmapped that others know by its pages, such as a window's, until rail_unkeep of the
 * same address; mapped memory is moved back first.  Without effect unless map_buffers.  0 or
 * -ENOMEM.
 */
int rail_keep(struct rail_ctx *ctx, const void *addr, size_t bytes);
void rail_unkeep(struct rail_ctx *ctx, const void *addr, size_t bytes);	/* bytes 0: any */

/* ---- Peers -------------------------------------------------------------- */

/*
 * Connections on demand.  Each process gives all others its address and adds every peer
 * (itself too) with that peer's address; then a barrier.  An address costs some KiB per peer.  The
 * first message to a peer or from a peer makes the lanes, and waits for them.  rail_peer_add finds
 * the settings in which the two disagree.
 *
 * The cost of a connected peer, with R rails, Q queue pairs on each and the standard
 * --eager of 8 KiB, in KiB; for 1,024 peers where a number depends on the possible peers.
 * Registered memory is locked on a real device.
 *
 *	rings of two polled eager lanes: 2 x (128 slots of 64 bytes + 128 KiB)	272
 *	or receive buffers of two SEND lanes: 2 x 16 x (8 KiB + 64 bytes)	258
 *	eager queue pairs, 3 at most: 129 requests with 256 bytes inline	129
 *	bulk queue pairs: 65 requests and 65 receives, about 256 bytes in all	16.3 R Q
 *	completion queue entries of 64 bytes: 3 x 145 and 130 R Q		27 + 8.1 R Q
 *	this library's own: landings, lanes, requests under way			14 + 1.5 R Q
 *
 * In jobs of 64 ranks at most a ring that processors fill and empty has 256 KiB.
 *
 * In all 442 + 26 R Q: 494 for two rails, 650 for eight, so that 1,024 peers take
 * 0.64 GiB at most with Q = 1.  A peer without messages costs 14.  With fewer possible
 * peers lanes are deeper: SEND lanes of up to 128 buffers, while all have at most 16,384
 * (and at least 16 each); bulk queue pairs of up to 256 requests, while all of a rail have
 * at most 4,096.  A test of tests/mpi measures the cost with 64 ranks.  Over TCP, where --eager is
 * 64 KiB, half as many receive buffers take four times as much; their pages count once messages have
 * come.
 */
enum { RAIL_ADDRESS_BYTES = 320 };
int rail_address(struct rail_ctx *ctx, unsigned char address[RAIL_ADDRESS_BYTES]);
int rail_peer_add(struct rail_ctx *ctx, unsigned index,
		  const unsigned char theirs[RAIL_ADDRESS_BYTES], struct rail_peer **peer);

/*
 * Detection of a failed peer.
 *
 * A connected peer is probed once a second, by an empty write on each lane that has carried
 * something.  A process that has ended, a rail that is cut and a host that is off fail the probe
 * after about 8 s (software HCA: 2 s).  A process that is stopped or computes passes the probe:
 * its adapter answers.
 *
 * An unconnected peer is judged by this host's knowledge (reach.h), while messages to it wait or
 * the caller watches it.  The end of a process on another host stays unknown then; its launcher
 * ends the job.
 */

enum rail_watch {
	RAIL_WATCH_END,		/* only the end of its process matters */
	RAIL_WATCH_AMONG,	/* a message of this peer or of others is waited for */
	RAIL_WATCH_NAMED,	/* a message of this peer alone: connect to it, if not done */
};
/* Only in on_watch; valid until the next on_watch. */
void rail_peer_watch(struct rail_peer *peer, enum rail_watch what);
/* The reason why a peer has failed, for people: one line. */
const char *rail_peer_failure(const struct rail_peer *peer);
unsigned rail_peer_index(const struct rail_peer *peer);

/* Operations under way with a peer, for people. */
struct rail_queues {
	unsigned index;			/* peer's index */
	bool connected;
	unsigned in_flight;		/* operations that have left and are not complete */
	unsigned waiting;		/* operations that wait for credit, queue space, connection */
};
void rail_queues(const struct rail_peer *peer, struct rail_queues *out);

/* ---- Messages ----------------------------------------------------------- */

/* policy.c has a row for each. */
enum rail_policy {
	/*
	 * Small messages and control on rail 0; the payload of rendezvous messages on
	 * rail_way.rail alone, so that each rail can be measured by itself.
	 */
	RAIL_SINGLE,
	RAIL_BIND,		/* whole messages, on the rail bound to the pair */
	RAIL_STRIPE,		/* bound at and below the threshold, even pieces above */
	RAIL_WEIGHTED,		/* the same, pieces in proportion to each rail's measured rate */
	RAIL_PULL,		/* the same, small chunks, each for the next rail that is free */
	RAIL_POLICIES,
};

/* The end that moves the data of a message above the eager limit. */
enum rail_rendezvous {
	RAIL_BY_WRITE,		/* the sender, when the receiver has named its buffer */
	RAIL_BY_READ,		/* the receiver, also while the sender computes */
	RAIL_BY_BOTH,		/* each moves half */
	RAIL_BY_TURNS,		/* each moves every second message; half, where no processor copies */
	RAIL_BY_RING,		/* the sender into a ring, the receiver out of it; half, where none copies */
	RAIL_BY_AUTO,		/* over untimed software HCAs alone the receiver measures, else write */
	RAIL_BY_RING_SHORT,	/* RAIL_BY_RING in shorter slices */
	RAIL_BY_RING_LONG,	/* in longer ones */
};

/* The sign by which a receiver learns that the writes of a message are there. */
enum rail_completion {
	RAIL_BY_IMMEDIATE,	/* each chunk carries an immediate */
	RAIL_BY_CONTROL,	/* an empty message after the writes, on each rail used */
};

/* The way of a communicator's messages; fixed for its life, the same at both ends. */
struct rail_way {
	enum rail_policy policy;
	uint64_t threshold;
	/*
	 * RAIL_AUTO, or at most that of the settings, and where these are RAIL_AUTO up to 64 KiB, between processes
	 * whose processors copy: rail_way_check.
	 */
	uint64_t eager;
	uint8_t rail;		/* RAIL_SINGLE: the rail, below rail_count */
	uint8_t rendezvous;	/* enum rail_rendezvous; what goes with what: rail_way_check */
	uint8_t completion;	/* enum rail_completion */
	/* Messages above `eager` may go eagerly too, where processors copy and the sender measures a gain. */
	bool eager_auto;
};

/* Bytes: the largest message that goes whole at once on this way, to any peer. */
uint64_t rail_eager_limit(const struct rail_ctx *ctx, const struct rail_way *way);

/*
 * Does this way make sense on these rails?  0, or -EINVAL with "what: why
 * (accepted: ...)" in why.  rail_send needs a way that does.
 */
int rail_way_check(const struct rail_ctx *ctx, const struct rail_way *way, char *why,
		   size_t why_size);

/* Opaque to librail, carried with every message. */
struct rail_header { uint64_t word[2]; };

enum {
	/* Complete only when the receiver has matched: rendezvous for any size. */
	RAIL_SEND_SYNC = 1,
	/*
	 * -EAGAIN, and nothing is sent, when an eager message would have to wait until its
	 * peer is connected, which takes until the peer calls rail_progress.  For callers
	 * that can copy the message.  Without effect when many wait already.
	 */
	RAIL_SEND_NOW = 2,
};

/*
 * An operation in flight, embedded in the caller's request.  `done` is called
 * once, from rail_progress, with 0 or -errno; the object is free then.  The
 * caller sets `done` and nothing else; the rest need not be initialised.
 */
struct rail_op {
	void (*done)(struct rail_op *op, int status);
	unsigned char librails[216] __attribute__((aligned(8)));
};

/*
 * Send buf to peer.  header and way are read before the return.
 *   1    done: buf and op are free, op->done is not called
 *   0    in flight: op->done will be called; op and buf belong to librail until then
 *  <0    -errno: nothing was sent (-ECONNRESET: the peer has failed)
 */
int rail_send(struct rail_peer *peer, const struct rail_way *way,
	      const struct rail_header *header, const struct rail_buf *buf,
	      unsigned flags, struct rail_op *op);

/* May a message of so many bytes, sent next, be one in slices (struct rail_buf)? */
bool rail_slices(const struct rail_peer *peer, const struct rail_way *way, size_t bytes);

/*
 * Cancel a send that is in flight.  op->done gives the outcome.  -ECANCELED: the message has
 * not reached the peer, or the peer's on_cancel has forgotten it.  Any other status: the call came
 * too late, and the send has ended as usual.  A send that has not left ends with the next
 * rail_progress; a send whose RTS is out ends by an answer of the peer, from a rail_progress
 * there.  Several calls are as one.  Not for receives, not from an upcall.  0, or -ENOMEM: not
 * tried.
 */
int rail_cancel(struct rail_op *op);

/* The course of an operation that ends now: only in its `done`, with status 0. */
struct rail_traced {
	unsigned index;			/* peer's index */
	bool eager;			/* eager, after a wait: on_eager has it, the rest is 0 */
	bool read, both, ring;		/* the receiver read, each end moved half, slices; else writes */
	bool any;			/* received: the sender alone knows the rails */
	bool in_parts;			/* several parts: their chunks are unknown */
	uint64_t bytes;			/* transferred */
	uint8_t chunks[RAIL_ALL];	/* number on each rail */
};
void rail_op_traced(const struct rail_op *op, bool sent, struct rail_traced *out);
/* The peer of an operation that ends, well or not; the index of that peer. */
struct rail_peer *rail_op_peer(const struct rail_op *op);
unsigned rail_op_index(const struct rail_op *op);
/* The header of a send that ends by rendezvous. */
const struct rail_header *rail_op_header(const struct rail_op *op);

/* An arrived message, as on_message sees it. */
struct rail_message {
	struct rail_peer *peer;
	unsigned index;			/* peer's index */
	const struct rail_header *header;
	size_t bytes;			/* length of the whole message */
	const void *payload;		/* eager: the bytes; NULL: rendezvous */
	uint64_t rendezvous;		/* handle for rail_accept; 0 for eager */
};

/*
 * Receive a rendezvous message into buf, now or at any later time.  Every handle is accepted
 * once, unless on_cancel has agreed to cancel it.  buf.bytes may be less than the message:
 * the rest stays at the sender, and the caller reports the truncation.
 * 0: op->done will be called when all bytes are in place.  -errno.
 */
int rail_accept(struct rail_peer *peer, uint64_t rendezvous, const struct rail_buf *buf,
		struct rail_op *op);

/*
 * Move everything that can move, without blocking.  Returns the number of
 * events handled (0: nothing to do just now).
 */
int rail_progress(struct rail_ctx *ctx);
/*
 * A call takes at most RAIL_BATCH messages from each ring in memory that it polls.  RAIL_BATCHES
 * calls take all messages that were in a ring before the first call.
 */
enum { RAIL_BATCH = 16, RAIL_BATCHES = 8 };
/*
 * The same, with everything that rail_progress does once in many calls: requests for connections,
 * unawaited completions, probes of peers.  For callers that call rarely.
 */
int rail_progress_whole(struct rail_ctx *ctx);

/* True while operations are in flight or records wait for credit. */
bool rail_busy(const struct rail_ctx *ctx);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
