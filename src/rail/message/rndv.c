/*
 * rndv.c - rendezvous: the records that both ends send, and their order.
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
 *   first half of all chunks   <--------  CTS; RDMA_READs of the second half
 *   written, FIN here: done    -------->  each completion clears its bit
 *                              <--------  no bit left, all read: FIN, done
 *
 * The answer to an offer by both may be as by read (a FIN alone), or as by write (rndv.h).
 *
 * The RTS decides the cut: policy, threshold, bound rail, weights.  The CTS carries the number
 * of wanted bytes.  Both ends compute the same table (stripe.h).  Every chunk has an immediate
 * of its own, since two rails have no common order.  With `completion control` a control
 * message follows the plain writes on each rail used, on the same queue pair.  The address and
 * the keys of a message to be read do not fit into the RTS: they are the record before it.
 */
#include <errno.h>
#include <string.h>

#include "rail/message/cancel.h"
#include "rail/message/chunks.h"
#include "rail/message/eager.h"
#include "rail/lane/eager_lane.h"
#include "rail/message/edges.h"
#include "rail/message/landing.h"
#include "rail/lane/lane.h"
#include "rail/memory/mr.h"
#include "rail/message/op_end.h"
#include "rail/message/op_queue.h"
#include "rail/message/parts.h"
#include "rail/policy.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/message/rate_estimate.h"
#include "rail/message/rndv.h"
#include "rail/message/rndv_receive.h"
#include "rail/memory/mapped.h"
#include "rail/message/slices.h"
#include "rail/message/stripe.h"
#include "rail/message/table.h"
#include "util/clock.h"
#include "util/compiler.h"

/* From the top bit down, word of a CTS: generation:8 landing:8 alone:1 edges:1 more:1 bytes:45. */
static uint64_t cts_word(const struct op *op)
{
	return (uint64_t)op->generation << 56 | (uint64_t)op->slot << 48 |
	       (op->rndv_state & RNDV_ONE_END ? CTS_ALONE : 0) |
	       (op->rndv_state & RNDV_HAS_EDGES ? CTS_EDGES : 0) |
	       (op_has_more(op) ? RECORD_MORE : 0) | op->bytes;
}

/* The longest chunk of RNDV_CALL_BYTES, as far as the adapters take it in one request. */
static uint64_t call_bytes(const struct rail_peer *peer)
{
	return peer->chunk_most < RNDV_CALL_BYTES + RAIL_STRIPE_ALIGN ?
		(peer->chunk_most & ~(uint64_t)(RAIL_STRIPE_ALIGN - 1)) - RAIL_STRIPE_ALIGN : RNDV_CALL_BYTES;
}

/* RNDV_BOTH: the same number for each rail, and an even sum, half of it for either end. */
static uint64_t even_chunk_bytes(const struct op *op)
{
	const uint64_t most = call_bytes(op->peer);
	bool cut = rail_policy_cuts(op->policy, op->bytes, op->threshold);
	uint64_t rails = (uint64_t)(cut ? op->peer->rail_count : 1);
	uint64_t share = (op->bytes + rails - 1) / rails;
	uint64_t chunks = share ? (share + most - 1) / most : 1;
	uint64_t bytes;

	chunks += chunks * rails % 2;
	bytes = share / chunks + RAIL_STRIPE_ALIGN;
	return bytes & ~(uint64_t)(RAIL_STRIPE_ALIGN - 1);
}

/* The longest chunk.  A message that processors copy over one rail takes as few calls as can be. */
static uint64_t chunk_most(const struct op *op)
{
	const struct rail_peer *peer = op->peer;
	bool spreads = peer->rail_count > 1 && rail_policies[op->policy].spreads;

	return peer->copies && !spreads && !peer->ctx->settings.chunk ? RNDV_CALL_BYTES : peer->chunk;
}

/* Each of several queue pairs per rail gets a chunk, unless the chunk would be small. */
static uint64_t chunk_bytes(const struct op *op)
{
	const struct rail_peer *peer = op->peer;
	uint64_t share = op->bytes / (uint64_t)(peer->rail_count * peer->qps) + RAIL_STRIPE_ALIGN;
	uint64_t most = chunk_most(op);

	most = most < peer->chunk_most ? most : peer->chunk_most & ~(uint64_t)(RAIL_STRIPE_ALIGN - 1);
	if (peer->qps == 1 || share > most)
		return most;
	share &= ~(uint64_t)(RAIL_STRIPE_ALIGN - 1);
	return share < RAIL_CHUNK_BYTES_MIN ? RAIL_CHUNK_BYTES_MIN : share;
}

void rndv_plan(const struct op *op, struct rail_stripe *s)
{
	struct rail_cut cut = {
		.rail_count = op->peer->rail_count,
		.chunk_bytes = op->rndv_flags & RNDV_BOTH ? even_chunk_bytes(op) :
			       op->rndv_state & RNDV_ONE_END && op->rndv_flags & RNDV_READ ?
			       call_bytes(op->peer) : chunk_bytes(op),
	};

	rail_policy_cut(&cut, op->policy, op->threshold, op->bytes, op->bound, op->weight);
	rail_stripe_plan(s, op->bytes, &cut);
}

void rndv_release(struct op *op)
{
	if (op->mr)
		rail_mr_put(&op->peer->ctx->mr, op->mr);
	op->mr = NULL;
	rail_parts_free(op);
}

void rndv_finish(struct op *op, int status)
{
	if (op->rndv_state & RNDV_AWAITS_FIN || (op->parts && op->parts->tabled))
		rail_table_remove(&op->peer->ctx->table, op->handle);
	rndv_release(op);
	if (unlikely(op->peer->ctx->schemes.window))
		rail_crossing_sent(&op->peer->ctx->schemes, op->peer->offers, rg_now_ns());
	if (unlikely(op->peer->ctx->eager_sample.op == op))
		rail_eager_offer_ended(op, status);
	op_end(op, status);
}

/* The keys of op's buffer, by rail. */
static void keys_of(const struct op *op, uint32_t rkey[RAIL_MAX])
{
	_Static_assert(RAIL_MAX * sizeof(*rkey) == RAIL_SLOT_PAYLOAD, "keys fit a slot");
	memset(rkey, 0, RAIL_SLOT_PAYLOAD);
	for (int k = 0; op->mr && k < op->peer->rail_count; k++)
		rkey[k] = op->mr->on[peer_adapter(op->peer, k)]->rkey;
}

/* ---- Records ------------------------------------------------------------ */

static int keys_post(struct rail_tx *tx, const struct op *op)
{
	const struct rail_header header = { { op->handle, (uintptr_t)op->buf.addr } };
	uint32_t rkey[RAIL_MAX];

	keys_of(op, rkey);
	return tx->control(tx, RECORD_KEYS, &header, 0, rkey);
}

/* The rail of a message of that number, if the message goes whole. */
static int whole_rail(const struct rail_peer *peer, int policy, int named, int bound, uint8_t message)
{
	const struct rail_choice choice = {
		.rail_count = peer->rail_count,
		.bound = bound,
		.named = peer_rail(peer, named),
		.message = message,
	};

	return rail_policies[policy].choose ? rail_policies[policy].choose(&choice) : bound;
}

/* May a message to a connected peer go in slices?  They take the rail of the eager lane. */
static bool may_slice(const struct rail_peer *peer, int policy, int bound, const struct rail_tx *tx)
{
	return peer->slice_bytes[SLICES_USUAL] && bound == tx->lane->k &&
	       (peer->rail_count == 1 || !rail_policies[policy].spreads);
}

/* Shorter memory in several pieces is packed: it may go eagerly (eager_choice.h). */
enum { SLICED_FROM = 32 << 10 };

bool rail_slices(const struct rail_peer *peer, const struct rail_way *way, size_t bytes)
{
	const struct rail_tx *tx = peer->route[way->policy];
	enum rail_slicing slicing;

	if (!tx->lane || bytes <= SLICED_FROM || bytes <= peer->ctx->eager_max || bytes > peer->ctx->part_bytes ||
	    way->completion != RAIL_BY_IMMEDIATE || rail_policies[way->policy].not_both ||
	    (way->rendezvous != RAIL_BY_AUTO && !rail_way_slices(way, &slicing)))
		return false;
	return may_slice(peer, way->policy, whole_rail(peer, way->policy, way->rail, tx->lane->k, peer->next_lane),
			 tx);
}

static int rts_post(struct rail_tx *tx, struct op *op)
{
	const struct rail_policy_row *policy = &rail_policies[op->policy];
	struct rail_rts_wire rts = {
		.handle = op->handle,
		.threshold = op->threshold,
		.policy = op->policy,
		.lane = op->lane,
		.parts = op->buf.in_slices ? RTS_SLICES : op->parts && op->parts->memory ? RTS_PARTS : RTS_WHOLE,
		.crossing = op->choice,
		.shared = op->buf.kind == RAIL_MEM_ARENA,
		.found = op->rndv_flags & RNDV_CHOICE ?
			rail_scheme_found(&op->peer->ctx->schemes, op->peer->crossing.place, op->buf.bytes) : 0,
	};
	int rc;

	if (unlikely(!tx->lane))
		return 0;		/* not connected yet */
	rts.bound = (uint8_t)whole_rail(op->peer, op->policy, op->rail, tx->lane->k, op->lane);
	op->bound = rts.bound;
	rts.rndv_flags = op->rndv_flags & (uint8_t)~(may_slice(op->peer, op->policy, op->bound, tx) ? 0 : RNDV_RING);
	if (op->rndv_flags & RNDV_KEYED) {
		rts.address = (uintptr_t)op->buf.addr;
		rts.rkey = op->mr ? op->mr->on[peer_adapter(op->peer, op->bound)]->rkey : 0;
	}
	if (policy->measures) {
		rail_estimate_weights(&op->peer->writing, op->weight);
		memcpy(rts.weight, op->weight, sizeof(rts.weight));
	}
	rc = tx->control(tx, RECORD_RTS, &op->header, op->buf.bytes, &rts);
	if (rc > 0 && policy->measures)
		rail_estimate_sent(&op->peer->writing);
	if (rc > 0)
		op->rndv_flags = rts.rndv_flags;
	return rc;
}

static int cts_post(struct rail_tx *tx, const struct op *op)
{
	const bool ask = op->rndv_flags & RNDV_RING;
	const struct rail_header header = { { op->handle, ask ? op->slicing : (uintptr_t)op_data(op) } };
	uint32_t rkey[RAIL_MAX];

	keys_of(op, rkey);
	return tx->control(tx, ask ? RECORD_ASK : RECORD_CTS, &header, cts_word(op), rkey);
}

/* RNDV_BOTH: the bytes that this end has read, the end of each piece. */
static uint64_t half_read(const struct op *op)
{
	uint64_t bytes = 0;
	struct rail_stripe s;

	rndv_plan(op, &s);
	for (int k = 0; k < s.rail_count; k++) {
		const struct rail_piece *p = &s.piece[k];
		uint32_t first;

		if (rndv_own_chunks(op, &s, k, &first))
			bytes += p->offset + p->bytes -
				 rail_stripe_chunk(&s, p->first + first).offset;
	}
	return bytes;
}

/*
 * A FIN tells the sender's ledger the read part: chunks by rail, bytes by rail in units of
 * RAIL_STRIPE_ALIGN, and the rail of the remainder.
 */
static int fin_post(struct rail_tx *tx, const struct op *op)
{
	struct rail_header header = { { op->handle, 0 } };
	uint32_t nothing[RAIL_MAX] = { 0 };
	uint64_t bytes = op->rndv_flags & RNDV_BOTH ? half_read(op) : op->bytes;

	if (!bytes)
		return tx->control(tx, RECORD_FIN, &header, 0, nothing);
	memcpy(&header.word[1], op->cursor, sizeof(header.word[1]));
	return tx->control(tx, RECORD_FIN, &header, (uint64_t)op->remainder_rail << 56 |
			   (op_has_more(op) ? RECORD_MORE : 0) | bytes, op->carried);
}

/* KEYS and RTS are one to the receiver: op stays first, so no other record comes between. */
int rail_rndv_post(struct rail_tx *tx, struct op *op)
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

bool rndv_answer(struct op *op, unsigned stage)
{
	struct rail_tx *tx = op->peer->route[op->policy];

	op->stage = (uint8_t)stage;
	if (!tx->waiting.head && rail_rndv_post(tx, op) > 0)
		return true;
	rail_tx_enqueue(tx, op);
	return false;
}

/* A queued record is out. */
void rail_rndv_control_sent(struct op *op)
{
	if (op->stage == STAGE_RTS)
		op->stage = STAGE_RTS_SENT;
	else if (op->stage == STAGE_CTS)
		rndv_cts_sent(op);
	else if (op->stage == STAGE_EDGES)
		rndv_chunks_start(op);
	else if (op->stage == STAGE_FIN)
		rndv_fin_sent(op);
	else
		op_end(op, 0);
}

/* ---- Waiting operations ------------------------------------------------- */

bool rail_rndv_advance(struct rail_peer *peer)
{
	struct op *op;
	bool more;

	while ((op = peer->accepting.head) && !peer->error && rndv_landing_take(op)) {
		queue_pop(&peer->accepting);
		rndv_clear_to_send(op);
	}
	more = rndv_chunks_advance(peer);
	if (peer->slicing.head)
		more |= rndv_slices_advance(peer);
	return more || peer->accepting.head;
}

void rail_rndv_peer_failed(struct rail_peer *peer)
{
	struct rail_table *table = &peer->ctx->table;
	struct op *op;

	rail_scheme_forget(&peer->ctx->schemes);
	rail_mapped_forget(peer->ctx);
	rail_eager_uncross(&peer->ctx->eager_choice);
	if (peer->ctx->eager_sample.peer == peer)
		rail_eager_forget(&peer->ctx->eager_choice);
	while ((op = queue_pop(&peer->accepting)))
		rndv_finish(op, -ECONNRESET);
	rndv_landings_peer_failed(peer);
	rndv_chunks_peer_failed(peer);
	/* RTSs that have not been accepted stay: rail_accept returns the error. */
	for (uint32_t i = 0; i < table->count; i++) {
		op = table->entry[i].peer == peer ? table->entry[i].op : NULL;
		if (!op)
			continue;
		rail_table_remove(table, op->handle);
		op->rndv_state &= (uint8_t)~RNDV_AWAITS_FIN;
		if (op->parts)
			op->parts->tabled = false;
		/* An operation with chunks under way (both, parts) ends with its last chunk. */
		if (op->stage == STAGE_RTS_SENT || !op->chunks_out)
			rndv_finish(op, -ECONNRESET);
	}
}
