/*
 * rndv.c - rendezvous: which end sends what, and when.
 *
 * by write:
 *   rail_send: registers, RTS  -------->  on_message with a handle
 *                                         rail_accept: registers, takes a landing
 *   chunks by the table        <--------  with its receives promised, CTS
 *   RDMA_WRITE_WITH_IMM on each rail -->  each completion clears its bit
 *   all completions here: done            no bit left: done
 *
 * by read:
 *   registers, KEYS and RTS    -------->  on_message with a handle
 *                              <~~~~~~~~  rail_accept: registers, RDMA_READs by the
 *   done                       <--------  table; all here: FIN, done
 *
 * by both:
 *   registers, KEYS and RTS    -------->  on_message with a handle
 *                                         rail_accept: registers, takes a landing
 *   first half of the chunks   <--------  CTS; RDMA_READs of the second half
 *   written, FIN here: done    -------->  each completion clears its bit
 *                              <--------  no bit left, all read: FIN, done
 *
 * The RTS carries what decides the cut: policy, threshold, bound rail, weights.  The CTS
 * carries how much is wanted.  Both ends compute the same table (stripe.h).  Every chunk has
 * an immediate of its own, since rails are not ordered among each other.  With `completion
 * control` plain writes are followed by one control message on each rail used, behind them
 * on the same queue pair.  The address and the keys of a message that is to be read do not
 * fit into the RTS: they are the record before it.
 */
#include <errno.h>
#include <string.h>

#include "cancel.h"
#include "chunks.h"
#include "eager.h"
#include "eager_lane.h"
#include "edges.h"
#include "err.h"
#include "landing.h"
#include "lane.h"
#include "likely.h"
#include "mapped.h"
#include "mr.h"
#include "op_queue.h"
#include "peer_failure.h"
#include "rail.h"
#include "rail_ctx.h"
#include "rail_op.h"
#include "rail_peer.h"
#include "rail_record.h"
#include "rate_estimate.h"
#include "rndv.h"
#include "stripe.h"
#include "table.h"

#define CTS_ALONE ((uint64_t)1 << 47)
#define CTS_EDGES ((uint64_t)1 << 46)
#define BYTES_MASK (CTS_EDGES - 1)

_Static_assert(RAIL_STRIPE_MAX_BYTES <= BYTES_MASK, "the bytes of a message fit its records");

/* From the top bit down, word of a CTS: generation:8 landing:8 alone:1 edges:1 bytes:46. */
static uint64_t cts_word(const struct rail_op *op)
{
	return (uint64_t)op->generation << 56 | (uint64_t)op->slot << 48 |
	       (op->how & RNDV_ALONE ? CTS_ALONE : 0) | (op->how & RNDV_EDGES ? CTS_EDGES : 0) |
	       op->bytes;
}

/* By both: an even number for each rail, since half are for either end. */
static uint64_t even_chunk_bytes(const struct rail_op *op)
{
	bool cut = op->policy >= RAIL_STRIPE && op->bytes > op->threshold;
	uint64_t rails = (uint64_t)(cut ? op->peer->rail_count : 1);
	uint64_t share = (op->bytes + rails - 1) / rails;
	uint64_t pairs = share ? (share + 2 * RNDV_COPY_BYTES - 1) / (2 * RNDV_COPY_BYTES) : 1;
	uint64_t bytes = share / (2 * pairs) + RAIL_STRIPE_ALIGN;

	return bytes & ~(uint64_t)(RAIL_STRIPE_ALIGN - 1);
}

/* Several queue pairs per rail get a chunk each, unless it would be small. */
static uint64_t chunk_bytes(const struct rail_peer *peer, uint64_t bytes)
{
	uint64_t share = bytes / (uint64_t)(peer->rail_count * peer->qps) + RAIL_STRIPE_ALIGN;

	if (peer->qps == 1 || share > RAIL_CHUNK_BYTES)
		return RAIL_CHUNK_BYTES;
	share &= ~(uint64_t)(RAIL_STRIPE_ALIGN - 1);
	return share < RAIL_CHUNK_BYTES_MIN ? RAIL_CHUNK_BYTES_MIN : share;
}

void rndv_plan(const struct rail_op *op, struct rail_stripe *s)
{
	struct rail_cut cut = {
		.rail_count = op->peer->rail_count,
		.chunk_bytes = op->how & RNDV_BOTH ? even_chunk_bytes(op) :
						     chunk_bytes(op->peer, op->bytes),
	};

	rail_stripe_weights(&cut, op->policy, op->threshold, op->bytes, op->bound, op->weight);
	rail_stripe_plan(s, op->bytes, &cut);
}

void rndv_release(struct rail_op *op)
{
	if (op->mr)
		rail_mr_put(&op->peer->ctx->mr, op->mr);
	op->mr = NULL;
}

void rndv_finish(struct rail_op *op, int status)
{
	if (op->how & RNDV_FIN)
		rail_table_remove(&op->peer->ctx->table, op->handle);
	rndv_release(op);
	op_end(op, status);
}

/* The keys of op's buffer, by rail. */
static void keys_of(const struct rail_op *op, uint32_t rkey[RAIL_MAX])
{
	_Static_assert(RAIL_MAX * sizeof(*rkey) == RAIL_SLOT_PAYLOAD, "keys fit a slot");
	memset(rkey, 0, RAIL_SLOT_PAYLOAD);
	for (int k = 0; op->mr && k < op->peer->rail_count; k++)
		rkey[k] = op->mr->on[peer_adapter(op->peer, k)]->rkey;
}

/* ---- Records ------------------------------------------------------------ */

static int keys_post(struct rail_tx *tx, const struct rail_op *op)
{
	const struct rail_header header = { { op->handle, (uintptr_t)op->buf.addr } };
	uint32_t rkey[RAIL_MAX];

	keys_of(op, rkey);
	return tx->control(tx, RECORD_KEYS, &header, 0, rkey);
}

static int rts_post(struct rail_tx *tx, struct rail_op *op)
{
	struct rail_rts_wire rts = {
		.handle = op->handle,
		.threshold = op->threshold,
		.policy = op->policy,
		.lane = op->lane,
		.how = op->how,
	};
	int rc;

	if (unlikely(!tx->lane))
		return 0;		/* not connected yet */
	rts.bound = (uint8_t)(op->policy == RAIL_SINGLE ? peer_rail(op->peer, op->rail) :
							  tx->lane->k);
	op->bound = rts.bound;
	if (op->policy == RAIL_WEIGHTED) {
		rail_estimate_weights(&op->peer->writing, op->weight);
		memcpy(rts.weight, op->weight, sizeof(rts.weight));
	}
	rc = tx->control(tx, RECORD_RTS, &op->header, op->buf.bytes, &rts);
	if (rc > 0 && op->policy == RAIL_WEIGHTED)
		rail_estimate_sent(&op->peer->writing);
	return rc;
}

static int cts_post(struct rail_tx *tx, const struct rail_op *op)
{
	const struct rail_header header = { { op->handle, (uintptr_t)op->buf.addr } };
	uint32_t rkey[RAIL_MAX];

	keys_of(op, rkey);
	return tx->control(tx, RECORD_CTS, &header, cts_word(op), rkey);
}

/* By both: what this end has read, the end of each piece. */
static uint64_t half_read(const struct rail_op *op)
{
	uint64_t bytes = 0;
	struct rail_stripe s;

	rndv_plan(op, &s);
	for (int k = 0; k < s.rail_count; k++) {
		const struct rail_piece *p = &s.piece[k];
		uint32_t first;

		if (rndv_share(op, p->count, &first))
			bytes += p->offset + p->bytes -
				 rail_stripe_chunk(&s, p->first + first).offset;
	}
	return bytes;
}

/*
 * What was read, for the sender's ledger: chunks by rail, bytes in units of
 * RAIL_STRIPE_ALIGN by rail, and the rail of those that are less than a unit.
 */
static int fin_post(struct rail_tx *tx, const struct rail_op *op)
{
	struct rail_header header = { { op->handle, 0 } };
	uint32_t nothing[RAIL_MAX] = { 0 };
	uint64_t bytes = op->how & RNDV_BOTH ? half_read(op) : op->bytes;

	if (!bytes)
		return tx->control(tx, RECORD_FIN, &header, 0, nothing);
	memcpy(&header.word[1], op->cursor, sizeof(header.word[1]));
	return tx->control(tx, RECORD_FIN, &header, (uint64_t)op->odd_rail << 56 | bytes,
			   op->carried);
}

/* KEYS and RTS are one to the receiver: nothing comes between them, since op stays first. */
int rail_rndv_post(struct rail_tx *tx, struct rail_op *op)
{
	int rc;

	switch (op->stage) {
	case STAGE_KEYS:
		rc = keys_post(tx, op);
		if (rc <= 0)
			return rc;
		op->stage = STAGE_RTS;
		/* fall through */
	case STAGE_RTS:
		return rts_post(tx, op);
	case STAGE_CTS:
		return cts_post(tx, op);
	case STAGE_EDGES:
		return rail_edges_post(tx, op);
	case STAGE_FIN:
		return fin_post(tx, op);
	default:
		return rail_cancel_post(tx, op);
	}
}

/* True when the answer is out; else it waits in its lane. */
static bool answer(struct rail_op *op, unsigned stage)
{
	struct rail_tx *tx = op->peer->route[op->policy];

	op->stage = (uint8_t)stage;
	if (!tx->waiting.head && rail_rndv_post(tx, op) > 0)
		return true;
	rail_tx_wait(tx, op);
	return false;
}

/* ---- Sender: RTS -------------------------------------------------------- */

static bool by_both(const struct rail_peer *peer, const struct rail_way *way, size_t bytes)
{
	size_t rails = way->policy == RAIL_STRIPE ? (size_t)peer->rail_count : 1;

	if (way->rendezvous != RAIL_BY_AUTO)
		return way->rendezvous == RAIL_BY_BOTH;
	return peer->copies && bytes / rails >= RNDV_BOTH_BYTES && way->policy <= RAIL_STRIPE &&
	       way->completion == RAIL_BY_IMMEDIATE;
}

static void op_take_way(struct rail_op *op, const struct rail_way *way)
{
	op->policy = (uint8_t)way->policy;
	op->rail = way->rail;
	op->threshold = way->threshold;
	op->how = way->completion == RAIL_BY_CONTROL ? RNDV_CONTROL : 0;
	if (way->rendezvous == RAIL_BY_READ)
		op->how |= RNDV_READ;
	else if (by_both(op->peer, way, op->buf.bytes))
		op->how |= RNDV_BOTH;
}

int rail_rndv_send(struct rail_peer *peer, const struct rail_way *way,
		   const struct rail_header *header, const struct rail_buf *buf,
		   struct rail_op *op)
{
	struct rail_ctx *ctx = peer->ctx;
	struct rail_tx *tx = peer->route[way->policy];
	int rc;

	if (buf->bytes > RAIL_STRIPE_MAX_BYTES) {
		rg_error("a message of %zu bytes is too long (accepted: up to %llu)", buf->bytes,
			 (unsigned long long)RAIL_STRIPE_MAX_BYTES);
		return -EMSGSIZE;
	}
	op->peer = peer;
	op->buf = *buf;
	op->header = *header;
	op_take_way(op, way);
	op->lane = peer->next_lane++;
	op->chunks_out = 0;
	op->mr = NULL;
	if (buf->bytes) {
		rc = rail_mr_get(&ctx->mr, buf->addr, buf->bytes, &op->mr);
		if (rc)
			return rc;
	}
	rc = rail_table_add(&ctx->table, peer, &op->handle);
	if (rc) {
		rndv_release(op);
		return rc;
	}
	rail_table_find(&ctx->table, peer, op->handle)->op = op;
	op->stage = op->how & (RNDV_READ | RNDV_BOTH) ? STAGE_KEYS : STAGE_RTS;
	rc = tx->waiting.head ? 0 : rail_rndv_post(tx, op);
	if (rc < 0) {
		rail_table_remove(&ctx->table, op->handle);
		rndv_release(op);
		return rc;
	}
	op_begin(op);
	if (rc > 0)
		op->stage = STAGE_RTS_SENT;
	else
		rail_tx_wait(tx, op);
	return 0;
}

/* Of an answer that moves bytes, is it one that this operation waits for? */
static bool is_due(const struct rail_op *op, uint64_t bytes, unsigned how)
{
	if (op->how & RNDV_FIN)
		return how == RNDV_READ;
	if (op->stage != STAGE_RTS_SENT)
		return false;
	return !bytes || (op->how & RNDV_READ) == how;
}

/*
 * The operation that this record answers: one to be read (how: RNDV_READ) or written (0) if there
 * are bytes, or by both, first by a CTS; NULL: none, and the peer has failed.
 */
static struct rail_op *answered(struct rail_peer *peer, const struct rail_record *record,
				uint64_t bytes, bool fits, unsigned how, const char *what)
{
	struct rail_entry *entry = rail_table_find(&peer->ctx->table, peer,
						   record->header.word[0]);
	struct rail_op *op = entry ? entry->op : NULL;

	if (!op || bytes > op->buf.bytes || !fits || !is_due(op, bytes, how)) {
		rail_peer_fail(peer, -EPROTO, "a %s for no message of ours", what);
		return NULL;
	}
	if (op->how & RNDV_BOTH && !how) {
		op->how |= RNDV_FIN;
	} else {
		rail_table_remove(&peer->ctx->table, op->handle);
		op->how &= (uint8_t)~RNDV_FIN;
	}
	return op;
}

/* The receiver has mapped its buffer: of an offer by both it takes the write alone. */
static bool write_alone(struct rail_op *op)
{
	if (!(op->how & RNDV_BOTH)) {
		rail_peer_fail(op->peer, -EPROTO, "a CTS for all, for no message of ours by both");
		rndv_finish(op, -ECONNRESET);
		return false;
	}
	rail_table_remove(&op->peer->ctx->table, op->handle);
	op->how &= (uint8_t)~(RNDV_BOTH | RNDV_FIN);
	return true;
}

void rail_cts_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload)
{
	uint64_t bytes = record->word & BYTES_MASK;
	struct rail_op *op = answered(peer, record, bytes, bytes > 0, 0, "CTS");

	if (!op)
		return;
	if (record->word & CTS_ALONE && !write_alone(op))
		return;
	op->bytes = bytes;
	op->remote = record->header.word[1];
	op->slot = (uint8_t)(record->word >> 48);
	op->generation = (uint8_t)(record->word >> 56);
	memcpy(op->rkey, payload, sizeof(op->rkey));
	if (likely(!(record->word & CTS_EDGES))) {
		rndv_chunks_start(op);
		return;
	}
	rail_edges_find(op, op->remote);
	if (!rail_edges_fit(op)) {
		rail_peer_fail(peer, -EPROTO, "a CTS with edges, for no message of ours");
		rndv_finish(op, -ECONNRESET);
		return;
	}
	op->how |= RNDV_EDGES;
	if (answer(op, STAGE_EDGES))
		rndv_chunks_start(op);
}

void rail_fin_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload)
{
	uint64_t bytes = record->word & BYTES_MASK, whole = 0;
	uint8_t chunks[RAIL_MAX];
	uint32_t units[RAIL_MAX];
	int odd = (int)(record->word >> 56);
	struct rail_op *op;

	memcpy(chunks, &record->header.word[1], sizeof(chunks));
	memcpy(units, payload, sizeof(units));
	for (int k = 0; k < RAIL_MAX; k++)
		whole += (uint64_t)units[k] * RAIL_STRIPE_ALIGN;
	op = answered(peer, record, bytes, odd < peer->rail_count && whole <= bytes &&
		      bytes - whole < RAIL_STRIPE_ALIGN, RNDV_READ, "FIN");
	if (!op)
		return;
	for (int k = 0; k < peer->rail_count; k++) {
		struct rail_ledger *ledger = &peer->ctx->rail[peer->rail[k]].ledger;

		ledger->tx_chunks += chunks[k];
		ledger->tx_bytes += (uint64_t)units[k] * RAIL_STRIPE_ALIGN +
				    (k == odd ? bytes - whole : 0);
	}
	if (op->how & RNDV_BOTH && op->stage != STAGE_RTS_SENT) {
		if (--op->chunks_left == 0)	/* counts the other end's half as one */
			rndv_finish(op, 0);
		return;
	}
	memcpy(op->cursor, chunks, sizeof(chunks));
	op->bytes = bytes;
	rndv_finish(op, 0);
}

/* ---- Receiver: RTS ------------------------------------------------------ */

void rail_keys_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload)
{
	rx->keys.handle = record->header.word[0];
	rx->keys.address = record->header.word[1];
	memcpy(rx->keys.rkey, payload, sizeof(rx->keys.rkey));
}

static bool rts_is_sound(const struct rail_rx *rx, const struct rail_rts_wire *rts, uint64_t bytes)
{
	const struct rail_peer *peer = rx->lane->peer;
	bool read = rts->how & (RNDV_READ | RNDV_BOTH), control = rts->how & RNDV_CONTROL;
	bool both = rts->how & RNDV_BOTH;
	unsigned share = rts->policy != RAIL_WEIGHTED;

	for (int k = 0; k < peer->rail_count; k++)
		share |= rts->weight[k];
	return bytes <= RAIL_STRIPE_MAX_BYTES && rts->policy < RAIL_POLICIES && share &&
	       rts->bound < peer->rail_count &&
	       !(rts->how & ~(RNDV_READ | RNDV_CONTROL | RNDV_BOTH)) &&
	       !(both && (rts->how & RNDV_READ || rts->policy > RAIL_STRIPE)) &&
	       !(control && (read || rts->policy == RAIL_PULL)) &&
	       (!read || rx->keys.handle == rts->handle);
}

void rail_rts_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload)
{
	struct rail_peer *peer = rx->lane->peer;
	struct rail_ctx *ctx = peer->ctx;
	const struct rail_rts_wire *rts = payload;
	struct rail_message msg = {
		.peer = peer,
		.index = peer->index,
		.header = &record->header,
		.bytes = record->word,
	};
	struct rail_rts *kept;
	int rc;

	if (!rts_is_sound(rx, rts, record->word)) {
		rail_peer_fail(peer, -EPROTO, "an RTS makes no sense");
		return;
	}
	rc = rail_table_add(&ctx->table, peer, &msg.rendezvous);
	if (rc) {
		rail_peer_fail(peer, rc, "no memory for one more incoming message");
		return;
	}
	kept = &rail_table_find(&ctx->table, peer, msg.rendezvous)->rts;
	*kept = (struct rail_rts){
		.handle = rts->handle,
		.bytes = record->word,
		.threshold = rts->threshold,
		.policy = rts->policy,
		.bound = rts->bound,
		.lane = rts->lane,
		.how = rts->how,
		.keys = rx->keys,
	};
	memcpy(kept->weight, rts->weight, sizeof(kept->weight));
	rx->keys.handle = 0;
	ctx->cfg.on_message(ctx->cfg.user, &msg);
}

/* ---- Receiver: answers -------------------------------------------------- */

/* By both: the sender begins to write, and this end to read. */
static void cts_sent(struct rail_op *op)
{
	op->stage = STAGE_LANDING;
	if (op->how & RNDV_BOTH)
		rndv_chunks_start(op);
}

/* A queued record is out. */
void rail_rndv_control_sent(struct rail_op *op)
{
	if (op->stage == STAGE_RTS)
		op->stage = STAGE_RTS_SENT;
	else if (op->stage == STAGE_CTS)
		cts_sent(op);
	else if (op->stage == STAGE_EDGES)
		rndv_chunks_start(op);
	else
		op_end(op, 0);
}

void rndv_read_done(struct rail_op *op)
{
	rndv_release(op);
	if (answer(op, STAGE_FIN))
		op_end(op, 0);
}

/* It has a landing: the sender may write. */
static void clear_to_send(struct rail_op *op)
{
	if (answer(op, STAGE_CTS))
		cts_sent(op);
}

/* Its buffer is mapped: the sender writes, and sends apart what is not. */
static void take_mapped(struct rail_op *op)
{
	if (op->how & RNDV_BOTH)
		op->how = (uint8_t)((op->how & ~(RNDV_BOTH | RNDV_READ)) | RNDV_ALONE);
	rail_edges_find(op, (uintptr_t)op->buf.addr);
	op->edges = rail_edges_fit(op);
	if (op->edges)
		op->how |= RNDV_EDGES;
}

static void op_take_rts(struct rail_op *op, const struct rail_rts *rts)
{
	op->handle = rts->handle;
	op->policy = rts->policy;
	op->threshold = rts->threshold;
	op->bound = rts->bound;
	op->lane = rts->lane;
	op->how = (uint8_t)(rts->how | (rts->how & RNDV_BOTH ? RNDV_READ : 0));
	op->edges = false;
	if (op->mapped)
		take_mapped(op);
	op->remote = rts->keys.address;
	memcpy(op->rkey, rts->keys.rkey, sizeof(op->rkey));
	memcpy(op->weight, rts->weight, sizeof(op->weight));
	op->slot = op->generation = 0;
	/* Who reads knows best how fast the rails are in this direction. */
	if (op->policy == RAIL_WEIGHTED && op->how & RNDV_READ) {
		rail_estimate_weights(&op->peer->reading, op->weight);
		rail_estimate_sent(&op->peer->reading);
	}
}

/* No upcall from here: rail_accept may be called in one. */
static void receive(struct rail_op *op)
{
	struct rail_peer *peer = op->peer;

	if (!op->bytes) {
		if (answer(op, STAGE_FIN))
			op_end_later(op, 0);
	} else if (op->how & RNDV_READ && !(op->how & RNDV_BOTH)) {
		rndv_chunks_start(op);
	} else if (!peer->accepting.head && rndv_landing_take(op)) {
		clear_to_send(op);
	} else {
		op->stage = STAGE_ACCEPTED;
		queue_push(&peer->accepting, op);
		peer_work(peer);
	}
}

/* What is written may be written to a mapping; who reads does not need one. */
static int register_landing(struct rail_op *op, const struct rail_rts *rts)
{
	struct rail_ctx *ctx = op->peer->ctx;

	if (unlikely(op->bytes >= ctx->map_from) && !(rts->how & RNDV_READ)) {
		op->mr = rail_mapped_get(ctx, &op->buf, op->bytes);
		op->mapped = op->mr;
		if (op->mr)
			return 0;
	}
	return rail_mr_get(&ctx->mr, op->buf.addr, op->bytes, &op->mr);
}

int rail_accept(struct rail_peer *peer, uint64_t rendezvous, const struct rail_buf *buf,
		struct rail_op *op)
{
	struct rail_ctx *ctx = peer->ctx;
	struct rail_entry *entry = rail_table_find(&ctx->table, peer, rendezvous);
	int rc;

	if (!entry || entry->op) {
		rg_error("rail_accept: no message waits under this handle");
		return -EINVAL;
	}
	if (peer->error) {
		rail_table_remove(&ctx->table, rendezvous);
		return peer->error;
	}
	if (buf->kind == RAIL_MEM_CUDA) {
		rg_error("GPU memory (RAIL_MEM_CUDA) is not carried yet");
		return -EOPNOTSUPP;
	}
	op->peer = peer;
	op->buf = *buf;
	op->bytes = buf->bytes < entry->rts.bytes ? buf->bytes : entry->rts.bytes;
	op->mr = NULL;
	op->mapped = false;
	if (op->bytes) {
		rc = register_landing(op, &entry->rts);
		if (rc)
			return rc;
	}
	op_take_rts(op, &entry->rts);
	rail_table_remove(&ctx->table, rendezvous);
	op_begin(op);
	receive(op);
	return 0;
}

/* ---- What waits --------------------------------------------------------- */

bool rail_rndv_advance(struct rail_peer *peer)
{
	struct rail_op *op;
	bool more;

	while ((op = peer->accepting.head) && !peer->error && rndv_landing_take(op)) {
		queue_pop(&peer->accepting);
		clear_to_send(op);
	}
	more = rndv_chunks_advance(peer);
	return more || peer->accepting.head;
}

/* A peer has failed: end all that will not be ended by flushed completions. */
void rail_rndv_peer_failed(struct rail_peer *peer)
{
	struct rail_table *table = &peer->ctx->table;
	struct rail_op *op;

	while ((op = queue_pop(&peer->accepting)))
		rndv_finish(op, -ECONNRESET);
	rndv_landings_peer_failed(peer);
	rndv_chunks_peer_failed(peer);
	/* RTSs that have not been accepted stay: rail_accept answers for them. */
	for (uint32_t i = 0; i < table->count; i++) {
		op = table->entry[i].peer == peer ? table->entry[i].op : NULL;
		if (!op)
			continue;
		rail_table_remove(table, op->handle);
		op->how &= (uint8_t)~RNDV_FIN;
		/* By both: one with chunks under way ends with the last of them. */
		if (op->stage == STAGE_RTS_SENT || !(op->how & RNDV_BOTH) || !op->chunks_out)
			rndv_finish(op, -ECONNRESET);
	}
}
