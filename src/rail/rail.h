/*
 * rail.h - librail: messages to a peer over one or more rails.
 *
 * A *rail* is one port of an adapter, paired with the port of the same index
 * at each peer.  Each rail carries two *lanes* per peer: an eager lane (whole
 * small messages and control) and a bulk lane (chunks of large ones), separate
 * queue pairs, so that eight bytes never queue behind a megabyte.
 *
 *	message <= eager limit   one eager record on the rail bound to the peer
 *	message >  eager limit   rendezvous: RTS, CTS (addresses, rkeys), chunks
 *	                         by RDMA_WRITE_WITH_IMM over the rails that the
 *	                         policy names, a bitmap at the receiver, one upcall
 *
 * No MPI in here.  The caller exchanges addresses (rail_peer_offer /
 * rail_peer_connect), gives every message a 16-byte header that means nothing
 * to librail, and does the matching in on_message.
 *
 * Order: messages of one way to one peer arrive (on_message) in the order in
 * which they were sent.  Ways are not ordered among each other.
 *
 * Threads: a context is used by one thread at a time; the caller excludes.
 * Nothing here blocks.  Nothing on the path of a message allocates, makes a
 * system call or takes a lock, except the first use of a buffer (registration)
 * and whatever the device does.
 *
 * Errors: 0 or -errno; who detects an error logs it (one line); outputs are
 * set only on success.
 */
#ifndef RAIL_H
#define RAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct opt;
struct rail_ctx;
struct rail_peer;

enum { RAIL_MAX = 8 };			/* rails per process */

/* ---- Memory ------------------------------------------------------------- */

enum rail_mem_kind {
	RAIL_MEM_HOST,		/* any memory of this process */
	RAIL_MEM_ARENA,		/* from rail_alloc: mapped by the software HCA */
	RAIL_MEM_CUDA,		/* GPU memory: never touched by memcpy; not yet carried */
};

struct rail_buf {
	void *addr;
	size_t bytes;
	enum rail_mem_kind kind;
};

/* Buffers for messages, registered on all rails once and for all. */
void *rail_alloc(struct rail_ctx *ctx, size_t bytes);
void rail_free(struct rail_ctx *ctx, void *addr);
enum rail_mem_kind rail_mem_kind_of(const struct rail_ctx *ctx, const void *addr);

/*
 * Memory [addr, addr + bytes) is about to be unmapped or replaced: forget its
 * registrations, in every context of the process.  From any thread, at any
 * time.  librail sees munmap, mremap, madvise and the like by itself where a
 * real device needs it; for allocators that hide them.
 */
void rail_mr_invalidate(const void *addr, size_t bytes);

/* ---- Options ------------------------------------------------------------ */

/* Values behind rail_options(); process-wide (OPT_JOB) and per-way (OPT_COMM) ones. */
struct rail_settings {
	const char *rails;	/* "all" or "soft0:1,soft0:2" */
	const char *soft;	/* spec of the software HCA; NULL: only if no device exists */
	uint64_t threshold;	/* bytes; a message above it is striped */
	/*
	 * Bytes; a message above it goes by rendezvous.  The receive buffers of
	 * the process are made for it: a way with a larger value is held to this one.
	 */
	uint64_t eager;
};
/* The rows, offsets into struct rail_settings; ends with a NULL name. */
const struct opt *rail_options(void);

/* ---- Opening ------------------------------------------------------------ */

enum rail_fabric {
	RAIL_FABRIC_HARDWARE,
	RAIL_FABRIC_KERNEL_SOFTWARE,	/* Soft-RoCE, Soft-iWARP */
	RAIL_FABRIC_SOFTHCA,
};

/*
 * How many ACTIVE ports of real (or kernel software) devices this process
 * sees, without opening anything for long.  The caller agrees with its peers
 * on what to use.
 */
int rail_probe(const struct rail_settings *set, int *active_ports);

struct rail_message;
struct rail_mr;
struct rail_op;

struct rail_config {
	const struct rail_settings *settings;
	bool use_softhca;		/* agreed by all: software devices instead of real ones */
	const char *fabric;		/* name of the software fabric, the same at all peers */
	unsigned node;			/* virtual node (software HCA) */
	unsigned index;			/* this process among its peers: world rank */
	unsigned local_rank;		/* among the processes of its node: says its rail */
	unsigned peer_count;		/* peers at most, this one included */
	/*
	 * A message has come.  Called from rail_progress only, in order per way
	 * and peer.  An eager message's payload must be copied now: msg and
	 * msg->payload die with the return.
	 */
	void (*on_message)(void *user, const struct rail_message *msg);
	/* A peer is lost; its operations have been completed with -ECONNRESET. */
	void (*on_peer_error)(void *user, unsigned index, int error);
	void *user;
};

int rail_open(const struct rail_config *cfg, struct rail_ctx **out);
/* Every operation must have completed.  Drains, then destroys. */
void rail_close(struct rail_ctx *ctx);

/*
 * All peers of a software fabric are attached: its name may go.  Called after
 * the caller's barrier; nothing to do on other fabrics.
 */
void rail_all_attached(struct rail_ctx *ctx);

struct rail_info {
	char name[72];			/* "soft0:1" */
	enum rail_fabric fabric;
	uint64_t rate;			/* nominal, bytes per second and direction; 0 = unlimited */
	uint32_t mtu_bytes;
	bool polls_memory;		/* eager lane: RDMA-write ring, else SEND */
};

/* What of one rail has been used; counted where a chunk is posted and where it lands. */
struct rail_ledger {
	uint64_t tx_messages, tx_chunks, tx_bytes;	/* eager; of rendezvous; payload of both */
	uint64_t rx_messages, rx_chunks, rx_bytes;
	uint64_t stalls;		/* times a message waited for credit or queue space */
};

int rail_count(const struct rail_ctx *ctx);
void rail_info(const struct rail_ctx *ctx, int rail, struct rail_info *out);
void rail_ledger(const struct rail_ctx *ctx, int rail, struct rail_ledger *out);
/* "software HCA (libsofthca), 2 ports, 1 GB/s per port and direction, 2 us": names what it is. */
const char *rail_fabric_text(const struct rail_ctx *ctx);
/* Canonical spec of the software HCA, "" elsewhere. */
const char *rail_fabric_spec(const struct rail_ctx *ctx);
enum rail_fabric rail_fabric_kind(const struct rail_ctx *ctx);

/* ---- Peers -------------------------------------------------------------- */

enum { RAIL_OFFER_BYTES = 1024 };	/* size of every offer; unused bytes are zero */

/*
 * Prepare the connection to one peer (itself allowed) and write what that peer
 * must know.  The caller carries the offer of A for B to B and the other way
 * round, then both connect, then a barrier, then messages may flow.
 */
int rail_peer_offer(struct rail_ctx *ctx, unsigned index, struct rail_peer **peer,
		    unsigned char offer[RAIL_OFFER_BYTES]);
int rail_peer_connect(struct rail_peer *peer, const unsigned char theirs[RAIL_OFFER_BYTES]);

/* ---- Messages ----------------------------------------------------------- */

enum rail_policy {
	RAIL_SINGLE,		/* everything on rail 0 */
	RAIL_BIND,		/* never cut; on the rail bound to the pair */
	RAIL_STRIPE,		/* bound at and below the threshold, even pieces above */
};

/* How a communicator's messages travel; fixed for its life, the same at both ends. */
struct rail_way {
	enum rail_policy policy;
	uint64_t threshold;
	uint64_t eager;
};

/* Opaque to librail, carried with every message. */
struct rail_header { uint64_t word[2]; };

enum {
	/* Complete only when the receiver has matched: rendezvous whatever the size. */
	RAIL_SEND_SYNC = 1,
};

/*
 * An operation in flight, embedded in the caller's request.  `done` is called
 * once, from rail_progress, with 0 or -errno; the object is free then.  The
 * caller sets `done` and nothing else; the rest need not be initialised.
 */
struct rail_op {
	void (*done)(struct rail_op *op, int status);
	/* The rest is librail's. */
	struct rail_op *next;
	struct rail_peer *peer;
	struct rail_buf buf;
	struct rail_header header;
	struct rail_mr *mr;			/* registration of buf */
	uint64_t handle;			/* in the sender's table of offers */
	uint64_t threshold, bytes, remote;	/* of the way; to transfer; where to */
	uint32_t rkey[RAIL_MAX];		/* by adapter of the receiver */
	uint8_t cursor[RAIL_MAX];		/* next chunk of each rail's piece */
	uint8_t stage, policy, bound, slot, generation;
	uint8_t chunks_left, chunks_out;
	int status;
};

/*
 * Send buf to peer.  header and way are read before the return.
 *   1    done: buf may be reused, op is not touched any more, done is not called
 *   0    in flight: op->done will be called; op and buf belong to librail until then
 *  <0    -errno: nothing was sent (-ECONNRESET: the peer is lost)
 */
int rail_send(struct rail_peer *peer, const struct rail_way *way,
	      const struct rail_header *header, const struct rail_buf *buf,
	      unsigned flags, struct rail_op *op);

/* An arrived message, as on_message sees it. */
struct rail_message {
	struct rail_peer *peer;
	unsigned index;			/* of the peer */
	const struct rail_header *header;
	size_t bytes;			/* length of the whole message */
	const void *payload;		/* eager: the bytes; NULL: rendezvous */
	uint64_t rendezvous;		/* handle for rail_accept; 0 for eager */
};

/*
 * Take a rendezvous message into buf (now or at any later time; every handle
 * must be accepted once).  buf.bytes may be less than the message: the rest
 * is not transferred, the caller reports the truncation.
 * 0: op->done will be called when all bytes are in place.  -errno.
 */
int rail_accept(struct rail_peer *peer, uint64_t rendezvous, const struct rail_buf *buf,
		struct rail_op *op);

/*
 * Move everything that can move, without blocking.  Returns the number of
 * events handled (0: nothing to do just now).
 */
int rail_progress(struct rail_ctx *ctx);

/* True while operations are in flight or records wait for credit. */
bool rail_busy(const struct rail_ctx *ctx);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
