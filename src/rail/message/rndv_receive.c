/* rndv_receive.c - rendezvous: the end that receives, from an RTS to its answers. */
#include <errno.h>
#include <string.h>

#include "rail/message/scheme.h"
#include "rail/message/chunks.h"
#include "rail/lane/eager_lane.h"
#include "rail/message/edges.h"
#include "util/clock.h"
#include "util/compiler.h"
#include "util/err.h"
#include "rail/message/foreign_writes.h"
#include "rail/message/landing.h"
#include "rail/lane/lane.h"
#include "rail/memory/mapped.h"
#include "rail/memory/mr.h"
#include "rail/message/op_end.h"
#include "rail/message/op_queue.h"
#include "rail/message/parts.h"
#include "rail/peer/peer_failure.h"
#include "rail/policy.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/message/rate_estimate.h"
#include "rail/message/rndv.h"
#include "rail/message/rndv_receive.h"
#include "rail/message/stripe.h"
#include "rail/message/table.h"

enum {
	MOVES_TOGETHER = 4,		/* moves of a peer between two answers */
	MOVE_NS_PER_BYTE = 4,		/* of a move that has not been measured; others: --ledger, map */
};

void rail_keys_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload)
{
	rx->keys.handle = record->header.word[0];
	rx->keys.address = record->header.word[1];
	memcpy(rx->keys.rkey, payload, sizeof(rx->keys.rkey));
}

static bool rts_is_sound(const struct rail_rx *rx, const struct rail_rts_wire *rts, uint64_t bytes)
{
	const struct rail_peer *peer = rx->lane->peer;
	bool read = rts->rndv_flags & (RNDV_READ | RNDV_BOTH), control = rts->rndv_flags & RNDV_CONTROL;
	bool both = rts->rndv_flags & RNDV_BOTH, keyed = rts->rndv_flags & RNDV_KEYED;
	const struct rail_policy_row *policy;
	unsigned share;

	if (rts->policy >= RAIL_POLICIES)
		return false;
	policy = &rail_policies[rts->policy];
	share = !policy->measures;
	for (int k = 0; k < peer->rail_count; k++)
		share |= rts->weight[k];
	return bytes <= INT64_MAX && share && rts->bound < peer->rail_count &&
	       !(rts->rndv_flags & ~(RNDV_READ | RNDV_KEYED | RNDV_CONTROL | RNDV_BOTH | RNDV_CHOICE |
				     RNDV_TURNS | RNDV_RING | RNDV_MORE)) &&
	       !(keyed && (!read || policy->spreads)) &&
	       !(both && (rts->rndv_flags & RNDV_READ || policy->not_both)) &&
	       !(rts->rndv_flags & (RNDV_MORE | RNDV_CHOICE | RNDV_TURNS | RNDV_RING) && !both) &&
	       (rts->rndv_flags & (RNDV_CHOICE | RNDV_TURNS)) != (RNDV_CHOICE | RNDV_TURNS) &&
	       (rts->rndv_flags & (RNDV_RING | RNDV_TURNS)) != (RNDV_RING | RNDV_TURNS) &&
	       rts->crossing < RAIL_SCHEMES && rts->found < SCHEME_TOLD + RAIL_SCHEMES &&
	       (!(rts->crossing || rts->found) || rts->rndv_flags & RNDV_CHOICE) &&
	       !(control && (read || policy->not_control)) &&
	       !(read && rts->parts == RTS_PARTS) && rts->parts <= RTS_SLICES && rts->shared <= 1 &&
	       !(rts->parts == RTS_SLICES && (!(rts->rndv_flags & RNDV_RING) || rts->rndv_flags & RNDV_CHOICE ||
					      bytes > peer->ctx->part_bytes)) &&
	       (!read || keyed || rx->keys.handle == rts->handle);
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
		.rndv_flags = rts->rndv_flags & (uint8_t)~RNDV_KEYED,
		.parts = rts->parts,
		.crossing = rts->crossing,
		.shared = rts->shared,
		.found = rts->found,
	};
	memcpy(kept->weight, rts->weight, sizeof(kept->weight));
	if (rts->rndv_flags & RNDV_KEYED) {
		kept->keys.address = rts->address;
		kept->keys.rkey[rts->bound] = rts->rkey;
	} else {
		kept->keys = rx->keys;
	}
	rx->keys.handle = 0;
	if (record->word <= peer->eager_most && record->word > ctx->eager_max && rts->rndv_flags & RNDV_CHOICE)
		rail_row_told(&peer->row, record->word, EAGER_OFFERED);
	ctx->cfg.on_message(ctx->cfg.user, &msg);
}

/* ---- Answers -------------------------------------------------- */

static struct rail_scheme_cell *choice_cell_of(const struct op *op)
{
	return rail_scheme_cell(&op->peer->ctx->schemes, op->bytes,
				rail_load_at(op->peer->crossing.place, (enum rail_load)op->choice));
}

/* A read of the message takes so long by its class's cost, if that is known.  The last class has no largest size. */
static uint64_t read_ns(const struct op *op)
{
	const unsigned alone = rail_load_at(op->peer->crossing.place, LOAD_ALONE);
	struct rail_schemes *schemes = &op->peer->ctx->schemes;
	const uint64_t ns = rail_scheme_cost(rail_scheme_cell(schemes, op->bytes, alone), SCHEME_READ);
	const uint64_t assumed_ns = op->bytes / LATE_BYTES_PER_NS;

	if (!ns || (rail_scheme_class(op->bytes) == SCHEME_CLASSES - 1 && ns < assumed_ns))
		return assumed_ns;
	return ns;
}

/* A peer that maps buffers moves the pages of some before it acts: a move costs it what one costs here. */
static uint64_t moves_ns(const struct op *op)
{
	const struct rail_ctx *ctx = op->peer->ctx;
	uint64_t ns;

	if (!ctx->mapped)
		return 0;
	ns = rail_map_move_cost(rail_map_cell(rail_mapped_choice(ctx), op->peer->crossing.place, op->bytes));
	return MOVES_TOGETHER * (ns ? ns : op->bytes * MOVE_NS_PER_BYTE);
}

/* The sender has to act now. */
static void answer_watch(const struct op *op)
{
	struct rail_peer *peer = op->peer;
	struct rail_ctx *ctx = peer->ctx;

	if (!peer->copies || peer->late.watched)
		return;
	rail_late_ask(&peer->late, read_ns(op) + moves_ns(op));
	peer->next_watched = ctx->watched;
	ctx->watched = peer;
}

void rail_late_look_all(struct rail_ctx *ctx)
{
	const uint64_t now = rg_now_ns();

	for (struct rail_peer **at = &ctx->watched; *at; ) {
		struct rail_peer *peer = *at;

		if (!peer->error && rail_late_look(&peer->late, now))
			at = &peer->next_watched;
		else
			*at = peer->next_watched;
	}
}

void rndv_cts_sent(struct op *op)
{
	op->stage = STAGE_LANDING;
	answer_watch(op);
	if (op->rndv_flags & RNDV_BOTH)
		rndv_chunks_start(op);
}

/* The bytes of a message are there: a sample, if it was measured. */
static void choice_done(struct op *op)
{
	if (likely(!(op->rndv_state & (RNDV_MEASURED | RNDV_MAP_MEASURED))))
		return;
	if (op->rndv_state & RNDV_MAP_MEASURED)
		rail_mapped_done(op->peer->ctx, op->bytes, op->peer->crossing.place, op->map_batch);
	op->rndv_state &= (uint8_t)~RNDV_MAP_MEASURED;
	if (!(op->rndv_state & RNDV_MEASURED))
		return;
	op->rndv_state &= (uint8_t)~RNDV_MEASURED;
	rail_scheme_done(&op->peer->ctx->schemes, choice_cell_of(op), op->bytes, op->batch, rg_now_ns());
}

void rndv_read_done(struct op *op)
{
	choice_done(op);
	foreign_writes_tell(op->buf.addr, op->bytes);
	if (unlikely(op->parts))
		rail_parts_landed(op);
	else
		rndv_release(op);
	if (rndv_answer(op, STAGE_FIN))
		rndv_fin_sent(op);
}

void rndv_fin_sent(struct op *op)
{
	if (likely(!op->parts)) {
		op_end(op, 0);
	} else if (rail_parts_next(op)) {
		rndv_receive(op);
	} else {
		rndv_release(op);
		op_end(op, 0);
	}
}

void rndv_written_done(struct op *op)
{
	choice_done(op);
	if (unlikely(op->parts)) {
		rail_parts_landed(op);
		if (rail_parts_next(op)) {
			rndv_receive(op);
			return;
		}
	}
	rndv_finish(op, 0);
}

void rndv_clear_to_send(struct op *op)
{
	if (rndv_answer(op, STAGE_CTS))
		rndv_cts_sent(op);
}

static void move_by_one_end(struct op *op, bool reads)
{
	op->rndv_flags &= (uint8_t)~(RNDV_BOTH | RNDV_READ);
	op->rndv_flags |= reads ? RNDV_READ : 0;
	op->rndv_state |= RNDV_ONE_END;
}

/*
 * The buffer is mapped: the sender writes it, and sends unmapped edges as a record; or each end moves a half, the
 * sender through the mapping, the receiver by the kernel.  The message comes between those of a cell of scheme.h.
 */
static enum rail_map_scheme take_mapped(struct op *op)
{
	struct rail_ctx *ctx = op->peer->ctx;

	if (unlikely(ctx->schemes.last))
		rail_scheme_obey(&ctx->schemes, rg_now_ns());
	if (op->rndv_flags & RNDV_BOTH &&
	    rail_mapped_scheme(ctx, op->bytes, op->peer->crossing.place) == MAP_HALVES)
		return MAP_HALVES;
	if (op->rndv_flags & RNDV_BOTH)
		move_by_one_end(op, false);
	rail_edges_find(op, (uintptr_t)op->buf.addr);
	op->edges = rail_edges_fit(op);
	if (op->edges)
		op->rndv_state |= RNDV_HAS_EDGES;
	return MAP_WRITTEN;
}

/* The sender puts it into the ring, this end takes it out. */
static void take_ring(struct op *op, enum rail_slicing slicing)
{
	op->slicing = (uint8_t)slicing;
	op->rndv_flags &= (uint8_t)~(RNDV_BOTH | RNDV_READ);
	op->rndv_flags |= RNDV_RING;
}

static void take_turn(struct op *op)
{
	move_by_one_end(op, op->peer->reads_next = !op->peer->reads_next);
}

static void measured(struct op *op, const struct rail_scheme_cell *cell)
{
	op->rndv_state |= RNDV_MEASURED;
	op->batch = cell->batch;
}

/* The cell of an offer that leaves the choice to this end. */
static struct rail_scheme_cell *offer_cell(struct op *op, const struct rail_rts *rts, enum rail_load load)
{
	struct rail_scheme_cell *cell;

	op->choice = (uint8_t)load;
	cell = choice_cell_of(op);
	if (unlikely(!(rts->rndv_flags & RNDV_RING) && cell->possible & SCHEMES_RING))
		rail_scheme_exclude(cell, SCHEMES_RING);
	return cell;
}

/* An offer that crosses one of this end. */
static enum rail_scheme crossing_scheme(struct op *op, const struct rail_rts *rts)
{
	struct rail_schemes *schemes = &op->peer->ctx->schemes;
	const struct rail_crossing *crossing = &op->peer->crossing;
	struct rail_scheme_cell *cell;

	if (!rndv_leads(op->peer)) {
		if (unlikely(schemes->last))
			rail_scheme_obey(schemes, rg_now_ns());
		return (enum rail_scheme)rts->crossing;
	}
	cell = offer_cell(op, rts, rail_crossing_load(crossing));
	if (!rail_crossing_is_even(crossing, op->bytes))
		return (enum rail_scheme)cell->scheme;
	if (unlikely(op->bytes && rail_scheme_learns(schemes, cell)) &&
	    rail_scheme_take_crossing(schemes, cell, op->bytes, (enum rail_scheme)crossing->scheme,
				      !(op->rndv_flags & RNDV_MORE), rg_now_ns()))
		measured(op, cell);
	return (enum rail_scheme)crossing->scheme;
}

/* Without bytes no end comes to be told. */
static enum rail_scheme one_way_scheme(struct op *op, const struct rail_rts *rts)
{
	struct rail_schemes *schemes = &op->peer->ctx->schemes;
	const bool queued = op->rndv_flags & RNDV_MORE;
	struct rail_scheme_cell *cell = offer_cell(op, rts, rail_one_way_load(&op->peer->crossing, op->bytes, queued));
	enum rail_scheme scheme;

	if (likely(!op->bytes || !rail_scheme_learns(schemes, cell)))
		return cell->scheme;
	rail_scheme_expect(schemes, cell, rts->found);
	scheme = rail_scheme_take(schemes, cell, op->bytes, !queued, rg_now_ns());
	measured(op, cell);
	return scheme;
}

/* An offer from memory that this end has mapped: it comes between those of a cell. */
static enum rail_scheme shared_scheme(const struct op *op)
{
	struct rail_schemes *schemes = &op->peer->ctx->schemes;

	if (unlikely(schemes->last))
		rail_scheme_obey(schemes, rg_now_ns());
	return rail_scheme_shared(op->bytes, op->peer->offers, op->buf.kind == RAIL_MEM_ARENA);
}

static enum rail_slicing slicing_of(enum rail_scheme scheme)
{
	return scheme == SCHEME_RING_SHORT ? SLICES_SHORT : scheme == SCHEME_RING_LONG ? SLICES_LONG : SLICES_USUAL;
}

/* An offer that leaves the choice to this end. */
static void take_choice(struct op *op, const struct rail_rts *rts)
{
	const enum rail_scheme scheme = rts->shared ? shared_scheme(op) :
					op->peer->offers ? crossing_scheme(op, rts) : one_way_scheme(op, rts);

	if (scheme == SCHEME_TURNS)
		take_turn(op);
	else if (scheme == SCHEME_READ)
		move_by_one_end(op, true);
	else if (SCHEMES_RING >> scheme & 1 && rts->rndv_flags & RNDV_RING)
		take_ring(op, slicing_of(scheme));
}

/*
 * A single call moves an offer by both whole, before two ends could agree on halves.  If the peer
 * has not answered offers of this end, each end reads its own messages, unless this end may choose.
 */
static void take_both(struct op *op, const struct rail_rts *rts)
{
	struct rail_peer *peer = op->peer;

	if (op_has_more(op) && op->rndv_flags & RNDV_BOTH)
		move_by_one_end(op, true);
	else if (!rndv_may_move_alone(op))
		return;
	else if (op->rndv_flags & RNDV_CHOICE)
		take_choice(op, rts);
	else if (rts->rndv_flags & RNDV_RING)
		take_ring(op, SLICES_USUAL);
	else if (peer->offers && op->bytes <= RNDV_COPY_BYTES)
		move_by_one_end(op, true);
	else if (op->rndv_flags & RNDV_TURNS)
		take_turn(op);
}

/* An offer that leaves the choice to this end, of a sender that would act late. */
static bool read_of_late(struct op *op, const struct rail_rts *rts)
{
	struct rail_peer *peer = op->peer;
	struct rail_ctx *ctx = peer->ctx;
	uint64_t now;

	if (likely(!rail_late_suspects(&peer->late)) || !(rts->rndv_flags & RNDV_CHOICE) || !op->bytes ||
	    !rndv_may_move_alone(op))
		return false;
	now = rg_now_ns();
	if (!rail_late_reads(&peer->late, now))
		return false;
	if (ctx->schemes.last)
		rail_scheme_obey(&ctx->schemes, now);
	move_by_one_end(op, true);
	ctx->late_reads++;
	return true;
}

/* The receive is of a buffer that peers map, or could map. */
static void take_mappable(struct op *op, const struct rail_rts *rts)
{
	enum rail_map_scheme as = MAP_PLAIN;

	if (unlikely(read_of_late(op, rts)))
		as = MAP_SCHEMES;
	else if (op->map_use != MAP_USE_COULD)
		as = take_mapped(op);
	else
		take_both(op, rts);
	if (rail_mapped_take(op->peer->ctx, op->bytes, op->peer->crossing.place, (enum rail_map_use)op->map_use, as,
			     &op->map_batch))
		op->rndv_state |= RNDV_MAP_MEASURED;
}

static void take_scheme(struct op *op, const struct rail_rts *rts)
{
	if (unlikely(rts->parts == RTS_SLICES)) {
		take_ring(op, SLICES_USUAL);
		return;
	}
	if (unlikely(op->map_use))
		take_mappable(op, rts);
	else if (likely(!read_of_late(op, rts)))
		take_both(op, rts);
}

static void op_take_rts(struct op *op, const struct rail_rts *rts)
{
	op->handle = rts->handle;
	op->policy = rts->policy;
	op->threshold = rts->threshold;
	op->bound = rts->bound;
	op->lane = rts->lane;
	op->rndv_flags = (uint8_t)((rts->rndv_flags & ~RNDV_RING) | (rts->rndv_flags & RNDV_BOTH ? RNDV_READ : 0));
	op->rndv_state = 0;
	op->edges = false;
	take_scheme(op, rts);
	if (op->rndv_flags & RNDV_RING)
		op->sliced = 0;
	else
		op->remote = rts->keys.address;
	memcpy(op->rkey, rts->keys.rkey, sizeof(op->rkey));
	memcpy(op->weight, rts->weight, sizeof(op->weight));
	op->slot = op->generation = 0;
	/* The reader knows best how fast the rails are in this direction. */
	if (rail_policies[op->policy].measures && op->rndv_flags & RNDV_READ) {
		rail_estimate_weights(&op->peer->reading, op->weight);
		rail_estimate_sent(&op->peer->reading);
	}
}

/* No upcall from here: rail_accept may be called in one. */
void rndv_receive(struct op *op)
{
	struct rail_peer *peer = op->peer;

	if (!op->bytes) {
		if (rndv_answer(op, STAGE_FIN))
			op_end_later(op, 0);
	} else if (op->rndv_flags & RNDV_READ && !(op->rndv_flags & RNDV_BOTH)) {
		rndv_chunks_start(op);
		if (op->stage == STAGE_POSTED)	/* a processor that copies has done it */
			choice_done(op);
	} else if (!peer->accepting.head && rndv_landing_take(op)) {
		rndv_clear_to_send(op);
	} else {
		op->stage = STAGE_ACCEPTED;
		queue_push(&peer->accepting, op);
		peer_work(peer);
	}
}

/* A message that the sender writes whole may go to a mapping; a reader needs none. */
static int register_landing(struct op *op, const struct rail_rts *rts)
{
	struct rail_ctx *ctx = op->peer->ctx;
	enum rail_map_use use;
	size_t bytes;
	void *addr;

	if (unlikely(op->bytes >= ctx->map_from) && !(rts->rndv_flags & RNDV_READ) && !op_has_more(op) &&
	    op->buf.kind != RAIL_MEM_PARTS && rts->parts != RTS_SLICES) {
		op->mr = rail_mapped_get(ctx, &op->buf, op->bytes, op->peer->crossing.place, &use);
		op->map_use = (uint8_t)use;
		if (op->mr)
			return 0;
	}
	rail_parts_memory(op, &addr, &bytes);
	return rail_mr_get(&ctx->mr, addr, bytes, &op->mr);
}

static int landing_make(struct op *op, const struct rail_rts *rts)
{
	int rc = rail_parts_make(op, op->buf.bytes, op->buf.kind == RAIL_MEM_PARTS);

	if (rc)
		return rc;
	if (unlikely(op->parts))
		rail_parts_begin(op, rts->parts == RTS_PARTS);
	rc = register_landing(op, rts);
	if (rc)
		rail_parts_free(op);
	return rc;
}

int rail_accept(struct rail_peer *peer, uint64_t rendezvous, const struct rail_buf *buf,
		struct rail_op *outer)
{
	struct op *op = op_of(outer);
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
	op->buf.bytes = op->bytes;
	op->mr = NULL;
	op->parts = NULL;
	op->in_parts = false;
	op->slicing = SLICES_USUAL;
	op->map_use = MAP_USE_NONE;
	if (op->bytes) {
		rc = landing_make(op, &entry->rts);
		if (rc)
			return rc;
	}
	op_take_rts(op, &entry->rts);
	rail_table_remove(&ctx->table, rendezvous);
	op_begin(op);
	rndv_receive(op);
	return 0;
}
