/*
 * rail_int.h - what the files of librail know of each other.
 *
 *	open.c      contexts: ports chosen, adapters opened, memory, information
 *	select.c    --rails: names into ports
 *	peer.c      offers and connections
 *	loss.c      a peer that is lost, or that leaves
 *	eager.c     rail_send: eager or rendezvous; the queue of what must wait
 *	lane.c      what all queue pairs need: reclaiming, probing, staging buffers
 *	lane_ring.c eager lane by RDMA writes into a ring that the receiver polls
 *	lane_send.c eager lane by SEND into posted receives
 *	rndv.c      RTS, CTS, chunks, landing
 *	cq.c        completions: whose they are
 *	progress.c  everything that moves, in a fixed order
 *	stripe.c    how a message is cut          (pure)
 *	ring.h      positions in rings            (pure)
 *	mr.c        registration cache            (verbs through two callbacks)
 *	table.c     handles that cross the wire
 *	memhook.c   munmap and its like, where registrations can go stale
 */
#ifndef RAIL_INT_H
#define RAIL_INT_H

#include <stdatomic.h>

#include "mr.h"
#include "rail.h"
#include "ring.h"
#include "stripe.h"
#include "table.h"
#include "vrb.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum {
	RAIL_SLOT_PAYLOAD = 32,		/* bytes of payload beside the record in one cache line */
	RAIL_EAGER_MAX = 64 * 1024,	/* bound of --eager */

	RING_SLOTS = 128,
	RING_BYTES_MIN = 128 * 1024,
	EAGER_SQ = 128,			/* send requests of an eager lane */
	EAGER_SIGNAL = 32,		/* every so many are signalled, to reclaim them */
	BULK_DEPTH_MAX = 256,		/* chunks under way on a lane; fewer with many peers */
	BULK_DEPTH_MIN = RAIL_CHUNKS_MAX,	/* one message always fits */
	LANDINGS = 256,			/* rendezvous messages under way from one peer */
	STAGING = 128,			/* buffers for payloads that are too long for inline */

	RING_BATCH = 16,		/* records taken from one ring in one rail_progress */
	CQ_BATCH = 32,
	BULK_BATCH = 8,			/* chunks posted to one peer in one rail_progress */
};

/*
 * One chunk is not larger, unless the message would have too many.  Measured with
 * rail_perf: one way 256 KiB, 1 MiB and 4 MiB are equal; both ways at once 256 KiB
 * is 1.3 to 2 times faster from 1 MiB on, because nobody is kept from receiving for
 * long by a post that copies.
 */
#define RAIL_CHUNK_BYTES ((uint64_t)256 << 10)

/* ---- On the wire -------------------------------------------------------- */

enum rail_record_kind {
	RECORD_EAGER = 1,	/* payload beside the record; word: bytes */
	RECORD_LONG,		/* payload in the byte ring; word: bytes | end of payload << 32 */
	RECORD_RTS,		/* word: bytes; payload: struct rail_rts_wire */
	RECORD_CTS,		/* header: handle, address; word: see rndv.c; payload: rkeys */
	RECORD_BYE,		/* the peer closes */
};

/* The last 8 bytes say that the rest is there: sequence number << 8 | kind, never 0. */
struct rail_record {
	struct rail_header header;
	uint64_t word;
	_Atomic uint64_t mark;
};

struct rail_slot {
	unsigned char payload[RAIL_SLOT_PAYLOAD];
	struct rail_record record;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct rail_slot) == 64, "one slot is one cache line");

struct rail_rts_wire {
	uint64_t handle, threshold;
	uint8_t policy, bound, pad[14];
};

_Static_assert(sizeof(struct rail_rts_wire) == RAIL_SLOT_PAYLOAD, "an RTS fits a slot");

/* ---- Work request identities -------------------------------------------- */

/*
 * lane:24 | kind:4 | count:16 | value:20.  No pointers: of a failed completion only
 * wr_id is valid, and it says which lane failed.
 */
enum rail_wr_kind {
	WR_EAGER,		/* count: posted on the lane up to this one */
	WR_STAGED,		/* the same; value: staging buffer that is free again */
	WR_RECEIVE,		/* value: receive buffer */
	WR_CHUNK,
	WR_LANDING,
	WR_MARK,
};

static inline uint64_t wr_id(uint32_t lane, unsigned kind, uint32_t count, uint32_t value)
{
	return (uint64_t)lane << 40 | (uint64_t)kind << 36 | (uint64_t)(count & 0xffff) << 20 |
	       value;
}

static inline uint32_t wr_lane(uint64_t id)
{
	return (uint32_t)(id >> 40);
}

static inline unsigned wr_kind(uint64_t id)
{
	return id >> 36 & 0xf;
}

static inline uint16_t wr_count(uint64_t id)
{
	return (uint16_t)(id >> 20);
}

static inline uint32_t wr_value(uint64_t id)
{
	return id & 0xfffff;
}

/* ---- Objects ------------------------------------------------------------ */

/* One port used. */
struct rail {
	struct vrb_port *port;
	int adapter;
	struct rail_ledger ledger;
};

/* One queue pair. */
struct rail_lane {
	struct rail_ctx *ctx;
	struct rail_peer *peer;
	struct vrb_qp qp;
	uint32_t id;
	bool numbered;			/* ctx->lane[id] is this one */
	int rail;
	uint32_t sq_depth;
	uint32_t sq_posted, sq_done, sq_signalled;	/* counted for ever */
	uint32_t rq_free;		/* bulk: receives that may still be posted */
	struct rail_rx *rx;		/* eager, by SEND: who takes what arrives */
	struct rail_op **sq_op;		/* bulk: whose chunk request n is, at n % sq_depth */
};

/* Geometry of the eager lanes, stated by the receiver. */
struct rail_geometry {
	bool polled, trailing;
	uint32_t slots, units;
	uint32_t slot_bytes;		/* of a receive buffer */
	uint64_t key;
};

struct rail_op_queue {
	struct rail_op *head, **tail;
};

/* Sending end of an eager lane. */
struct rail_tx {
	int (*eager)(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		     size_t bytes);
	int (*control)(struct rail_tx *tx, unsigned kind, const struct rail_header *header,
		       uint64_t word, const void *payload);
	struct rail_lane *lane;
	uint64_t seq;			/* records sent */
	uint32_t slots, granted;	/* ring size; given back by the reader, when last seen */
	uint32_t position, units, units_granted;	/* byte ring */
	const _Atomic uint64_t *grant;	/* where the reader writes it */
	uint64_t slots_addr, bytes_addr;
	uint32_t rkey;
	bool trailing;			/* mark behind payloads in the byte ring too */
	uint64_t key;			/* of that mark */
	struct rail_op_queue waiting;
	struct ibv_send_wr wr[2];	/* payload, record */
	struct ibv_sge sge[3];
	struct rail_slot slot;
};

/* Receiving end. */
struct rail_rx {
	struct rail_lane *lane;
	uint64_t seq;			/* of the next record, from 1 */
	uint32_t granted;		/* slots given back */
	uint32_t units_read, units_granted;
	struct rail_geometry geometry;
	unsigned char *slots, *bytes;	/* ring and byte ring, or receive buffers */
	bool grant_owed;
	uint64_t *grant_word;		/* what is written to the sender, in registered memory */
	struct ibv_send_wr wr;		/* that write */
	struct ibv_sge sge;
};

/* What rail_progress polls: nothing else is read while nothing comes. */
struct rail_poll {
	const _Atomic uint64_t *mark;
	uint64_t seq;
	struct rail_rx *rx;
};

/* A message that is landing. */
struct rail_landing {
	struct rail_op *op;		/* NULL: free */
	uint64_t missing;		/* chunks, one bit each */
	uint8_t generation, next_free;
};

enum { LANE_SINGLE, LANE_BOUND, LANE_ROLES };	/* eager lanes of a peer, by what goes there */

struct rail_peer {
	struct rail_ctx *ctx;
	unsigned index;
	int error, cause;		/* lost: -ECONNRESET, and why */
	bool connected, gone, reported;
	bool working;			/* in the context's list of peers with something to do */
	struct rail_peer *next_working;
	uint32_t ops;			/* in flight with this peer */
	struct rail_tx *route[3];	/* by policy */
	struct rail_tx tx[LANE_ROLES];
	struct rail_rx rx[LANE_ROLES];
	int tx_count, rx_count;
	struct rail_geometry geometry;	/* ours */
	struct rail_lane eager[RAIL_MAX], bulk[RAIL_MAX];
	uint8_t adapter_of[RAIL_MAX];	/* the peer's adapter behind each rail */
	struct rail_op_queue accepting;	/* accepted, but receives or a landing are missing */
	struct rail_op_queue cutting;	/* CTS here, chunks not all posted */
	struct rail_landing landing[LANDINGS];
	int landings_used;
	uint8_t landing_free;		/* first of a list, when not all are used */
	/* Rings, receive buffers and grants, registered on all adapters. */
	unsigned char *block;
	size_t block_bytes;
	struct ibv_mr *block_mr[RAIL_MAX];
};

struct rail_staging {
	unsigned char *memory;
	uint32_t buffer_bytes;
	struct ibv_mr *mr[RAIL_MAX];
	uint16_t free[STAGING];
	int free_count;
};

struct rail_ctx {
	/* Read by every rail_progress. */
	struct rail_poll *poll;
	int poll_count;
	bool polled;			/* eager lanes: memory polled */
	bool progressing, closing;
	uint32_t cq_wanted;		/* completions that will come from work of ours */
	uint32_t tick, idle;		/* calls of rail_progress; without an event */
	uint32_t events;		/* counted for ever: records, completions, ends */
	struct rail_peer *working;
	struct rail_op_queue completed;
	uint64_t ops;			/* in flight */
	uint64_t eager_max;
	uint32_t bulk_depth;

	struct rail_config cfg;		/* its strings are copies */
	struct rail_settings settings;
	struct vrb_ports ports;
	int adapter_count, rail_count;
	struct vrb_adapter adapter[RAIL_MAX];
	struct rail rail[RAIL_MAX];
	struct rail_peer **peer;
	struct rail_lane **lane;	/* by id */
	uint32_t lane_count, lane_capacity;
	struct rail_table table;
	struct rail_mr_cache mr;
	struct rail_staging staging;
	uint64_t probed_ns;		/* last time that peers were probed */
	int marks_out;			/* while closing */
	char text[256], spec[256];
};

/* Stages of an operation. */
enum rail_stage {
	STAGE_EAGER,		/* waits for room on the eager lane */
	STAGE_RTS,		/* its RTS does */
	STAGE_OFFERED,		/* RTS sent */
	STAGE_CUTTING,		/* CTS here, in the peer's queue until all chunks are posted */
	STAGE_POSTED,
	STAGE_ACCEPTED,		/* receiver: waits for receive requests and a landing */
	STAGE_CTS,		/* its CTS waits for room */
	STAGE_LANDING,
};

/* ---- queues of operations ----------------------------------------------- */

static inline void queue_init(struct rail_op_queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
}

static inline void queue_push(struct rail_op_queue *q, struct rail_op *op)
{
	op->next = NULL;
	*q->tail = op;
	q->tail = &op->next;
}

static inline struct rail_op *queue_pop(struct rail_op_queue *q)
{
	struct rail_op *op = q->head;

	if (op) {
		q->head = op->next;
		if (!q->head)
			q->tail = &q->head;
	}
	return op;
}

/* ---- lanes -------------------------------------------------------------- */

static inline struct rail_ledger *lane_ledger(const struct rail_lane *lane)
{
	return &lane->ctx->rail[lane->rail].ledger;
}

static inline bool lane_has_room(const struct rail_lane *lane, uint32_t requests)
{
	return lane->sq_posted - lane->sq_done + requests <= lane->sq_depth;
}

void rail_peer_fail(struct rail_peer *peer, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int rail_lane_refused(struct rail_lane *lane, int error);

/*
 * Post `count` chained requests, of which `last` may be signalled, on an eager
 * lane.  The caller has asked lane_has_room.  1, or -ECONNRESET.
 */
static inline int lane_post(struct rail_lane *lane, struct ibv_send_wr *first,
			    struct ibv_send_wr *last, uint32_t count)
{
	struct ibv_send_wr *bad;
	int rc;

	lane->sq_posted += count;
	if (lane->sq_posted - lane->sq_signalled >= EAGER_SIGNAL) {
		lane->sq_signalled = lane->sq_posted;
		lane->ctx->cq_wanted++;
		last->wr_id = wr_id(lane->id, WR_EAGER, lane->sq_posted, 0);
		last->send_flags |= IBV_SEND_SIGNALED;
	} else {
		last->send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
	}
	rc = ibv_post_send(lane->qp.qp, first, &bad);
	return likely(!rc) ? 1 : rail_lane_refused(lane, rc);
}

/* The same, signalled in any case: the completion frees a staging buffer. */
int rail_lane_post_staged(struct rail_lane *lane, struct ibv_send_wr *first,
			  struct ibv_send_wr *last, uint32_t count, uint32_t buffer);

/* A write of nothing, signalled: asks whether the other side lives, or everything before is out. */
int rail_lane_probe(struct rail_lane *lane);

/* ---- between files ------------------------------------------------------ */

static inline void peer_work(struct rail_peer *peer)
{
	struct rail_ctx *ctx = peer->ctx;

	if (peer->working)
		return;
	peer->working = true;
	peer->next_working = ctx->working;
	ctx->working = peer;
}

static inline void op_begin(struct rail_op *op)
{
	op->peer->ops++;
	op->peer->ctx->ops++;
}

static inline void op_end(struct rail_op *op, int status)
{
	op->peer->ops--;
	op->peer->ctx->ops--;
	op->peer->ctx->events++;
	op->done(op, status);
}

/* Call op->done from the next rail_progress: for what completes where no upcall is allowed. */
static inline void op_end_later(struct rail_op *op, int status)
{
	op->status = status;
	queue_push(&op->peer->ctx->completed, op);
}

/* open.c: memory that the adapters reach best: the software HCA's arena, else anonymous pages. */
void *rail_memory_map(struct rail_ctx *ctx, size_t bytes);
void rail_memory_unmap(struct rail_ctx *ctx, void *addr, size_t bytes);

/* select.c: fills ctx->rail from ctx->ports and --rails. */
int rail_select(struct rail_ctx *ctx);

/* lane.c */
int rail_staging_make(struct rail_ctx *ctx);
void rail_staging_free(struct rail_ctx *ctx);

static inline void rail_staging_put(struct rail_ctx *ctx, uint32_t buffer)
{
	if (buffer < STAGING && ctx->staging.free_count < STAGING)
		ctx->staging.free[ctx->staging.free_count++] = (uint16_t)buffer;
}

/* Room for one more record in the peer's ring or receive queue? */
bool rail_tx_refresh(struct rail_tx *tx);
/* Tell the sender how much has been read; now, or as soon as the lane has room. */
void rail_rx_grant(struct rail_rx *rx);

static inline bool tx_slot_free(struct rail_tx *tx)
{
	return likely(rail_ring_free((uint32_t)tx->seq, tx->granted, tx->slots)) ||
	       rail_tx_refresh(tx);
}

/* lane_ring.c, lane_send.c: the requests prepared once the fields above `wr` are set. */
void rail_ring_tx_init(struct rail_tx *tx);
int rail_ring_poll(struct rail_ctx *ctx, int which);
void rail_send_tx_init(struct rail_tx *tx);
int rail_send_rx_start(struct rail_rx *rx);
void rail_send_arrived(struct rail_rx *rx, uint32_t buffer, uint32_t bytes);

/* eager.c: one record has come.  rndv.c: those of the rendezvous. */
void rail_record_arrived(struct rail_rx *rx, unsigned kind, const struct rail_record *record,
			 const void *payload, size_t bytes);
/* op waits for room on the lane, behind whatever waits there already. */
void rail_tx_wait(struct rail_tx *tx, struct rail_op *op);
/* Send what waits.  True while something still does. */
bool rail_tx_advance(struct rail_tx *tx);
int rail_rndv_send(struct rail_peer *peer, const struct rail_way *way,
		   const struct rail_header *header, const struct rail_buf *buf,
		   struct rail_op *op);
int rail_rndv_post_rts(struct rail_tx *tx, struct rail_op *op);
int rail_rndv_post_cts(struct rail_tx *tx, struct rail_op *op);
void rail_rndv_control_sent(struct rail_op *op);
void rail_rts_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload);
void rail_cts_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload);
void rail_chunk_sent(struct rail_lane *lane);
void rail_chunk_landed(struct rail_lane *lane, uint32_t imm, uint32_t bytes);
bool rail_rndv_advance(struct rail_peer *peer);
void rail_rndv_bury(struct rail_peer *peer);

/* cq.c: one batch from every adapter. */
void rail_cq_poll(struct rail_ctx *ctx);

/* peer.c */
void rail_peer_free(struct rail_peer *peer);

/* loss.c */
bool rail_peer_bury(struct rail_peer *peer);
void rail_peers_probe(struct rail_ctx *ctx);
void rail_drain(struct rail_ctx *ctx);

#endif
