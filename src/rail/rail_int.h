/*
 * rail_int.h - what the files of librail know of each other.
 *
 *	open.c      contexts: ports chosen, adapters opened, memory, information
 *	options.c   the table of options; lists of ports
 *	select.c    --rails: names into ports
 *	peer.c      peers: lanes, memory, offers
 *	connect.c   two offers become a connection
 *	wire.c      offers by datagram, on demand
 *	home.c      --bind: which rail is a process's own
 *	loss.c      a peer that is lost, or that leaves
 *	eager.c     rail_send: eager or rendezvous; the queue of what must wait
 *	lane.c      what all queue pairs need: reclaiming, probing, staging buffers
 *	lane_ring.c eager lane by RDMA writes into a ring that the receiver polls
 *	lane_send.c eager lane by SEND into shared receives
 *	pool.c      these, an SRQ per adapter
 *	rndv.c      rendezvous: RTS, CTS and the like
 *	cancel.c    ... taken back
 *	chunks.c    ... chunks posted, at the end that moves the data
 *	landing.c   ... chunks that land
 *	cq.c        completions: whose they are
 *	progress.c  everything that moves, in a fixed order
 *	way.c       ways: what makes sense
 *	ledger.c    what each rail has carried, what its port says
 *	share.c     what bounds several rails together
 *	stripe.c    how a message is cut          (pure)
 *	weigh.c     rates of rails, learned       (pure)
 *	ring.h      positions in rings            (pure)
 *	mr.c        registration cache            (verbs through two callbacks)
 *	table.c     handles that cross the wire
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
#include "weigh.h"

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

	WAIT_MAX = RING_SLOTS,		/* messages to an unconnected peer, if they can be refused */

	RING_BATCH = 16,		/* records taken from one ring in one rail_progress */
	CQ_BATCH = 32,
	BULK_BATCH = 8,			/* chunks posted to one peer in one rail_progress */
	RAIL_CQ_MAX = 1024,
	RAIL_POOL_MAX = 1 << 20,	/* receive buffers of an adapter: 20 bits say which */
	CQ_PEERS = 16,			/* a completion queue is made for so many peers */
};

/*
 * One chunk is not larger, unless the message would have too many.  Each is acknowledged
 * by itself, and both ways at once acknowledgements wait behind the other direction's data.
 * Soft-RoCE sends 128 packets beyond the last one, 512 KiB; while these are all queued on
 * the other side, a rail waits for about a chunk of them.  Smaller ones lose less there and
 * cost more requests everywhere.
 */
#define RAIL_CHUNK_BYTES ((uint64_t)64 << 10)
/* ... nor smaller for the sake of more queue pairs. */
#define RAIL_CHUNK_BYTES_MIN ((uint64_t)16 << 10)

/* ---- On the wire -------------------------------------------------------- */

enum rail_record_kind {
	RECORD_EAGER = 1,	/* payload beside the record; word: bytes */
	RECORD_LONG,		/* payload in the byte ring; word: bytes | end of payload << 32 */
	RECORD_RTS,		/* word: bytes; payload: struct rail_rts_wire */
	RECORD_CTS,		/* header: handle, address; word: see rndv.c; payload: rkeys */
	RECORD_BYE,		/* the peer closes */
	RECORD_KEYS,		/* just before its RTS; header: handle, address; payload: rkeys */
	RECORD_FIN,		/* all that was wanted is there; see rndv.c */
	RECORD_CANCEL,		/* header: handle of an RTS before it that is to be taken back */
	RECORD_CANCELLED,	/* it was; header: handle */
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
	uint8_t policy, bound, lane, how;	/* how: rndv.h */
	uint8_t weight[RAIL_MAX], pad[4];	/* weighted: shares of the rails */
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
	WR_RECEIVE,		/* lane: the adapter; value: receive buffer of its pool */
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

/* A request on a bulk lane. */
struct rail_sent {
	struct rail_op *op;
	uint32_t bytes;
};

/* One queue pair. */
struct rail_lane {
	struct rail_ctx *ctx;
	struct rail_peer *peer;
	struct vrb_qp qp;
	uint32_t id;
	bool numbered;			/* ctx->lane[id] is this one */
	int rail;			/* of the context */
	int k;				/* the same among the peer's rails */
	struct rail_cq *cq;		/* where it has cq_entries of its own */
	uint32_t cq_entries;
	uint32_t sq_depth;
	uint32_t sq_posted, sq_done, sq_signalled;	/* counted for ever */
	uint32_t rq_free;		/* bulk: receives that stand and are promised to nobody */
	uint32_t rq_owed;		/* ... that were taken and not posted again yet */
	uint32_t pulled;		/* bulk: chunks under way that any lane could have taken */
	struct rail_rx *rx;		/* eager, by SEND: who takes what arrives */
	struct rail_sent *sent;		/* bulk: what request n is, at n % sq_depth */
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
	bool polled;			/* the receiver polls memory; else by SEND */
	bool trailing;			/* mark behind payloads in the byte ring too */
	uint64_t key;			/* of that mark */
	uint32_t their_lane;		/* by SEND: its number at the receiver */
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
	struct rail_keys keys;		/* of the RTS that comes next */
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
	uint64_t missing;		/* chunks or control messages, one bit each */
	uint8_t generation, next_free;
};

/* Connections on demand go by a datagram queue pair of each kind. */
enum { WIRE_RAILS, WIRE_LOCAL, RAIL_WIRES };
enum { RAIL_OFFER_USED = 840 };		/* bytes of an offer that are not zero */

enum { LANE_SINGLE, LANE_BOUND, LANE_ROLES };	/* eager lanes of a peer, by what goes there */

struct rail_peer {
	struct rail_ctx *ctx;
	unsigned index;
	int error, cause;		/* lost: -ECONNRESET, and why */
	bool connected, gone;
	bool reported;			/* nobody needs to be told of its loss any more */
	bool told;			/* on_peer_error has been called */
	struct rail_link *link;		/* connected on demand: how (wire.c) */
	bool working;			/* in the context's list of peers with something to do */
	struct rail_peer *next_working;
	uint32_t ops;			/* in flight with this peer */
	struct rail_tx *route[RAIL_POLICIES];
	struct rail_tx tx[LANE_ROLES];
	struct rail_rx rx[LANE_ROLES];
	int tx_count, rx_count;
	struct rail_geometry geometry;	/* ours */
	/*
	 * Its rails, in an order that both ends share; everything that crosses the wire
	 * counts them so.  rail[k]: which of the context's rails that is.
	 */
	int rail_count, qps;
	uint8_t rail[RAIL_MAX];
	bool polled;			/* its eager lanes: memory polled */
	struct rail_lane eager[RAIL_MAX];
	struct rail_lane *bulk;		/* peer_bulk(): qps of them per rail */
	uint8_t next_lane;		/* where the next message's first chunk goes */
	struct rail_op_queue accepting;	/* accepted, but receives or a landing are missing */
	struct rail_op_queue cutting;	/* CTS here, chunks not all posted */
	struct rail_op_queue pulling;	/* the same, chunks for whichever rail is free ... */
	uint32_t unpulled;		/* ... so many */
	struct rail_gauge writing, reading;	/* rates of its rails */
	struct rail_landing landing[LANDINGS];
	int landings_used;
	uint8_t landing_free;		/* first of a list, when not all are used */
	/* Rings, receive buffers and grants, registered on all adapters. */
	unsigned char *block;
	size_t block_bytes;
	struct ibv_mr *block_mr[RAIL_ALL];	/* by adapter */
};

struct rail_staging {
	unsigned char *memory;
	uint32_t buffer_bytes;
	struct ibv_mr *mr[RAIL_ALL];	/* by adapter */
	uint16_t free[STAGING];
	int free_count;
};

/* A completion queue of some queue pairs; a peer that does not fit gets another one. */
struct rail_cq {
	struct ibv_cq *cq;
	int adapter;
	uint32_t room;			/* entries that no queue pair has */
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
	/* Chunks whose rate is measured: under way; when it was looked for them, and found some. */
	uint32_t measured;
	uint64_t looked_ns, completed_ns;
	uint64_t eager_max;
	uint32_t bulk_depth;
	struct rail_cq *cq[RAIL_CQ_MAX];
	int cq_count;

	struct rail_config cfg;		/* its strings are copies */
	struct rail_settings settings;
	struct vrb_ports ports, local_ports;
	int adapter_count;
	int rail_count;			/* that lead to other nodes */
	int local;			/* the one that does not, behind them; or -1 */
	unsigned home;			/* the rail of what is not cut, by rail_peer_home */
	uint32_t near;			/* rails nearest to this process's cores, bits */
	uint32_t *near_of;		/* of every peer, when --bind near */
	unsigned added;			/* peers, by rail_peer_add */
	struct vrb_adapter adapter[RAIL_ALL];
	struct rail rail[RAIL_ALL];
	struct rail_peer **peer;
	struct rail_lane **lane;	/* by id */
	uint32_t lane_count, lane_capacity;
	struct rail_table table;
	struct rail_mr_cache mr;
	const char *unwatched;		/* why registrations are not kept, though wanted; or NULL */
	struct rail_staging staging;
	struct rail_pool *pool[RAIL_ALL];	/* by adapter */
	struct rail_wire *wire[RAIL_WIRES];
	uint64_t cookie;		/* of datagrams for this process */
	uint32_t unlinked;		/* peers that may still want to connect */
	uint64_t probed_ns;		/* last time that peers were probed */
	int marks_out;			/* while closing */
	char text[512], spec[1024], doubt[256];
};

/* Stages of an operation. */
enum rail_stage {
	STAGE_EAGER,		/* waits for room on the eager lane */
	STAGE_KEYS,		/* its KEYS do */
	STAGE_RTS,		/* its RTS does */
	STAGE_OFFERED,		/* RTS sent */
	STAGE_CUTTING,		/* in a queue of the peer until all chunks are posted */
	STAGE_POSTED,
	STAGE_ACCEPTED,		/* receiver: waits for receive requests and a landing */
	STAGE_CTS,		/* its CTS waits for room */
	STAGE_LANDING,
	/* Nothing else is left to do than: */
	STAGE_FIN,		/* its FIN waits for room */
	STAGE_CANCEL,		/* a record by itself (cancel.c) does */
	STAGE_CANCELLED,
	STAGE_OVER,		/* in the context's list of what has completed */
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

static inline struct rail_lane *peer_bulk(const struct rail_peer *peer, int k, int q)
{
	return &peer->bulk[k * peer->qps + q];
}

/* Chunk n of a message takes this lane of rail k; consecutive chunks take the lanes in turn. */
static inline struct rail_lane *chunk_lane(const struct rail_op *op, int k, uint32_t n)
{
	return peer_bulk(op->peer, k, (int)((op->lane + n) % (uint32_t)op->peer->qps));
}

/* How many of the chunks [first, first + count) take lane q. */
static inline uint32_t chunks_of_lane(const struct rail_op *op, int q, uint32_t first,
				      uint32_t count)
{
	uint32_t qps = (uint32_t)op->peer->qps;
	uint32_t before = ((uint32_t)q + qps - (op->lane + first) % qps) % qps;

	return count > before ? (count - before - 1) / qps + 1 : 0;
}

/* Which of the peer's rails rail r of the context is; its first if it has no such rail. */
static inline int peer_rail(const struct rail_peer *peer, int r)
{
	for (int k = 0; k < peer->rail_count; k++)
		if (peer->rail[k] == r)
			return k;
	return 0;
}

static inline bool peer_is_local(const struct rail_peer *peer)
{
	return peer->rail[0] == peer->ctx->local;
}

/* Is this peer on the node of this process?  It is on its own, where nodes are told apart. */
static inline bool config_shares_node(const struct rail_config *cfg, unsigned index)
{
	return cfg->node_of && cfg->node_of[index] == cfg->node_of[cfg->index];
}

static inline int peer_adapter(const struct rail_peer *peer, int k)
{
	return peer->ctx->rail[peer->rail[k]].adapter;
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

/* May the eager lanes of this adapter be rings that the receiver polls? */
static inline bool rail_adapter_polls(const struct vrb_adapter *adapter)
{
	return adapter->in_order && adapter->inline_bytes >= sizeof(struct rail_slot);
}

/* options.c: lists of ports.  The next name of one; NULL at its end. */
const char *rail_name_next(const char **list, size_t *length);
/* Of one host: all ports, whichever there are. */
bool rail_list_is_all(const char *list);
/* What --rails may be: 0, or -EINVAL with why and what is accepted. */
int rail_lists_check(const char *text, char *why, size_t why_size);
/* The list for that host; it ends with the text or a ';'. */
const char *rail_list_of_host(const char *text, const char *host);
int rail_pkey_parse(const char *text, uint16_t *key);

/* share.c: rail_shares of real devices, by the name of each rail's. */
struct topo;
int rail_shares_on(const struct topo *t, const char *const *device, int rails,
		   struct rail_share out[RAIL_SHARES_MAX]);

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
/* A message is at `at`; then its buffer is free again. */
void rail_send_arrived(struct rail_rx *rx, const unsigned char *at, uint32_t bytes);
void rail_send_taken(struct rail_rx *rx);

/* pool.c: the SRQ of an adapter; buffers for one more lane; a receive has completed. */
int rail_pool_srq(struct rail_ctx *ctx, int adapter, const struct rail_geometry *g,
		  struct ibv_srq **out);
int rail_pool_add(struct rail_ctx *ctx, int adapter);
void rail_pool_arrived(struct rail_ctx *ctx, const struct ibv_wc *wc);
void rail_pools_free(struct rail_ctx *ctx);

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
int rail_rndv_post(struct rail_tx *tx, struct rail_op *op);
void rail_rndv_control_sent(struct rail_op *op);
void rail_keys_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload);
void rail_rts_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload);
void rail_cts_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload);
void rail_fin_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload);
/* cancel.c: the records, waiting and arrived. */
int rail_cancel_post(struct rail_tx *tx, const struct rail_op *op);
void rail_cancel_arrived(struct rail_peer *peer, const struct rail_record *record);
void rail_cancelled_arrived(struct rail_peer *peer, const struct rail_record *record);
/* landing.c: receives for immediates, as many as the lane will ever have.  0 or -errno. */
int rail_receives_start(struct rail_lane *lane);
void rail_chunk_sent(struct rail_lane *lane);
/* `written`: the immediate of a write, else of a SEND. */
void rail_chunk_landed(struct rail_lane *lane, uint32_t imm, uint32_t bytes, bool written);
bool rail_rndv_advance(struct rail_peer *peer);
void rail_rndv_bury(struct rail_peer *peer);

/* cq.c: one batch from every completion queue. */
void rail_cq_poll(struct rail_ctx *ctx);
/* A completion queue of that adapter with room for `entries`, taken.  0 or -errno after a line. */
int rail_cq_take(struct rail_ctx *ctx, int adapter, uint32_t entries, struct rail_cq **out);
void rail_cq_give(struct rail_cq *cq, uint32_t entries);
void rail_cq_free(struct rail_ctx *ctx);

/* peer.c: a peer that costs little; then lanes, block and offer; the parts of the block. */
int rail_peer_new(struct rail_ctx *ctx, unsigned index, struct rail_peer **out);
int rail_peer_prepare(struct rail_peer *peer, unsigned char offer[RAIL_OFFER_BYTES]);
void rail_peer_free(struct rail_peer *peer);
void rail_lane_drop(struct rail_lane *lane);
/* Which of the peer's rails carries what is not cut. */
int rail_peer_home(const struct rail_peer *peer);
unsigned char *rail_block_grant_in(const struct rail_peer *peer, int role);
unsigned char *rail_block_grant_out(const struct rail_peer *peer, int role);
unsigned char *rail_block_ring(const struct rail_peer *peer, int role);

/* connect.c: what both ends must have alike.  0, or -errno after a line. */
struct rail_terms { uint64_t rail_count, qps, eager, threshold; };
int rail_terms_check(const struct rail_peer *peer, const struct rail_terms *theirs);
int rail_port_check(const struct rail_peer *peer, int k, uint8_t link_layer, uint8_t gid_type,
		    const unsigned char *subnet);
/* Queue pairs up and able to receive; then messages may also be sent. */
int rail_peer_link(struct rail_peer *peer, const unsigned char theirs[RAIL_OFFER_BYTES]);
void rail_peer_start(struct rail_peer *peer);

/* home.c: the rail of what is not cut: what is known at once; and when all peers have been added. */
int rail_home_find(struct rail_ctx *ctx);
void rail_home_settle(struct rail_ctx *ctx);

/* wire.c: connections on demand. */
void rail_wires_poll(struct rail_ctx *ctx);
void rail_wires_close(struct rail_ctx *ctx);
/* For a peer that is not connected: say so again, if messages wait and it is time. */
void rail_wire_drive(struct rail_peer *peer);
void rail_wire_forget(struct rail_peer *peer);

/* loss.c */
bool rail_peer_bury(struct rail_peer *peer);
void rail_peers_probe(struct rail_ctx *ctx);
void rail_drain(struct rail_ctx *ctx);

#endif
