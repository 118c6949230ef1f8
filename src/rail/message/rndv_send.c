/* rndv_send.c - rendezvous: the end that sends, and its peer's answers. */
#include <errno.h>
#include <string.h>

#include "rail/message/chunks.h"
#include "rail/message/eager.h"
#include "rail/lane/eager_lane.h"
#include "rail/message/edges.h"
#include "util/compiler.h"
#include "util/err.h"
#include "rail/memory/mr.h"
#include "rail/message/parts.h"
#include "rail/peer/peer_failure.h"
#include "rail/policy.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/op_end.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/message/rndv.h"
#include "rail/message/rndv_send.h"
#include "rail/message/slices.h"
#include "rail/message/stripe.h"
#include "rail/message/table.h"

/* RNDV_BOTH: may both ends move the data?  RNDV_TURNS, RNDV_CHOICE, RNDV_RING: how. */
static unsigned by_both(const struct rail_peer *peer, const struct rail_way *way, bool slices)
{
	if (way->rendezvous == RAIL_BY_TURNS)
		return RNDV_BOTH | RNDV_TURNS;
	if (slices)
		return RNDV_BOTH | RNDV_RING;
	if (way->rendezvous != RAIL_BY_AUTO)
		return way->rendezvous == RAIL_BY_BOTH ? RNDV_BOTH : 0;
	return peer->copies && !rail_policies[way->policy].not_both &&
	       way->completion == RAIL_BY_IMMEDIATE ? RNDV_BOTH | RNDV_CHOICE | RNDV_RING : 0;
}

static void op_take_way(struct op *op, const struct rail_way *way)
{
	const bool parts = op->buf.kind == RAIL_MEM_PARTS;
	enum rail_slicing slicing = SLICES_USUAL;
	const bool slices = rail_way_slices(way, &slicing);
	unsigned both = !parts ? by_both(op->peer, way, slices) : op->buf.in_slices ? RNDV_BOTH | RNDV_RING : 0;

	op->policy = (uint8_t)way->policy;
	op->rail = way->rail;
	op->threshold = way->threshold;
	op->rndv_state = 0;
	op->choice = 0;
	op->slicing = (uint8_t)slicing;
	op->rndv_flags = way->completion == RAIL_BY_CONTROL ? RNDV_CONTROL : 0;
	/* Only the sender knows when memory that is gathered in parts has the next part. */
	if (parts && !op->buf.in_slices)
		return;
	if (way->rendezvous == RAIL_BY_READ)
		op->rndv_flags |= RNDV_READ;
	else if (both)
		op->rndv_flags |= (uint8_t)(both | (op->peer->offers ? RNDV_MORE : 0));
	if (op->rndv_flags & (RNDV_READ | RNDV_BOTH) && !rail_policies[op->policy].spreads)
		op->rndv_flags |= RNDV_KEYED;
	if (both & RNDV_CHOICE && rndv_leads(op->peer))
		op->choice = (uint8_t)rail_crossing_offer(&op->peer->ctx->schemes, &op->peer->crossing, op->buf.bytes,
							op->peer->offers);
}

static int memory_take(struct op *op)
{
	size_t bytes;
	void *addr;
	int rc;

	op->mr = NULL;
	rc = rail_parts_make(op, op->buf.bytes, op->buf.kind == RAIL_MEM_PARTS);
	if (rc || !op->buf.bytes || op->buf.in_slices)
		return rc;
	rail_parts_memory(op, &addr, &bytes);
	rc = rail_mr_get(&op->peer->ctx->mr, addr, bytes, &op->mr);
	if (rc)
		rail_parts_free(op);
	return rc;
}

int rail_rndv_send(struct rail_peer *peer, const struct rail_way *way,
		   const struct rail_header *header, const struct rail_buf *buf,
		   struct op *op)
{
	struct rail_ctx *ctx = peer->ctx;
	struct rail_tx *tx = peer->route[way->policy];
	int rc;

	op->peer = peer;
	op->buf = *buf;
	op->header = *header;
	op_take_way(op, way);
	op->lane = peer->next_lane++;
	op->chunks_out = 0;
	rc = memory_take(op);
	if (rc)
		return rc;
	rc = rail_table_add(&ctx->table, peer, &op->handle);
	if (rc) {
		rndv_release(op);
		return rc;
	}
	rail_table_find(&ctx->table, peer, op->handle)->op = op;
	op->stage = op->rndv_flags & (RNDV_READ | RNDV_BOTH) && !(op->rndv_flags & RNDV_KEYED) ?
		    STAGE_KEYS : STAGE_RTS;
	rc = tx->waiting.head ? 0 : rail_rndv_post(tx, op);
	if (rc < 0) {
		rail_table_remove(&ctx->table, op->handle);
		rndv_release(op);
		return rc;
	}
	op_begin(op);
	peer->offers++;
	if (rc > 0)
		op->stage = STAGE_RTS_SENT;
	else
		rail_tx_enqueue(tx, op);
	return 0;
}

/* Is a part under way, during which the next may be requested? */
static bool is_between(const struct op *op)
{
	return op_has_more(op) && op->stage == STAGE_POSTED && !op->parts->next;
}

/* Does this operation wait for such an answer, if the answer moves bytes? */
static bool is_due(const struct op *op, uint64_t bytes, bool more, unsigned flags, bool slices)
{
	if (op->rndv_state & RNDV_AWAITS_FIN)
		return flags == RNDV_READ;
	if (op->rndv_flags & RNDV_BOTH && more && !flags)
		return false;
	if (op->stage != STAGE_RTS_SENT && !is_between(op))
		return false;
	if (unlikely(op->buf.in_slices && bytes))
		return slices;
	return !bytes || (op->rndv_flags & RNDV_READ) == flags || rndv_may_move_alone(op) ||
	       (op->rndv_flags & RNDV_BOTH && more);
}

/*
 * The operation that this record answers: read (flags: RNDV_READ) or to be written (0) if the
 * record has bytes, or by both, first with a CTS; NULL: no such operation, and the peer has failed.
 */
static struct op *answered(struct rail_peer *peer, const struct rail_record *record,
				bool fits, unsigned flags, bool slices, const char *what)
{
	struct rail_entry *entry = rail_table_find(&peer->ctx->table, peer,
						   record->header.word[0]);
	struct op *op = entry ? entry->op : NULL;
	uint64_t bytes = record->word & RECORD_BYTES;
	bool more = record->word & RECORD_MORE;

	if (!op || !fits || !is_due(op, bytes, more, flags, slices) ||
	    (!(op->rndv_state & RNDV_AWAITS_FIN) && !rail_parts_fit(op, bytes, more))) {
		rail_peer_fail(peer, -EPROTO, "a %s for no message of ours", what);
		return NULL;
	}
	if (!(op->rndv_state & RNDV_AWAITS_FIN) && !op_has_more(op)) {
		peer->offers--;
		rail_crossing_answered(&peer->crossing, op->buf.bytes, (enum rail_scheme)op->choice);
	}
	if (op->parts && !(op->rndv_state & RNDV_AWAITS_FIN))
		rail_parts_asked(op, bytes, more);
	if (op->rndv_flags & RNDV_BOTH && !flags) {
		op->rndv_state |= RNDV_AWAITS_FIN;
	} else if (!more) {
		rail_table_remove(&peer->ctx->table, op->handle);
		op->rndv_state &= (uint8_t)~RNDV_AWAITS_FIN;
	}
	if (op->parts)
		op->parts->tabled = more;
	return op;
}

/* The receiver wants this end to move all of an offer that has these flags. */
static bool move_alone(struct op *op, unsigned flags)
{
	if ((op->rndv_flags & flags) != flags) {
		rail_peer_fail(op->peer, -EPROTO, "a CTS for all, for no message of ours by both");
		rndv_finish(op, -ECONNRESET);
		return false;
	}
	rail_table_remove(&op->peer->ctx->table, op->handle);
	op->rndv_flags &= (uint8_t)~(RNDV_BOTH | (RNDV_RING & ~flags));
	op->rndv_state &= (uint8_t)~RNDV_AWAITS_FIN;
	return true;
}

/* The receiver has answered for so many bytes of a message. */
static void striped_add(const struct op *op, uint64_t bytes)
{
	if (op->peer->rail_count > 1 && rail_policy_cuts(op->policy, bytes, op->threshold))
		op->peer->ctx->striped_bytes += bytes;
}

void rail_cts_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload)
{
	uint64_t bytes = record->word & RECORD_BYTES;
	bool fits = bytes && !(record->word & CTS_ALONE && record->word & RECORD_MORE);
	struct op *op = answered(peer, record, fits, 0, false, "CTS");

	if (!op)
		return;
	if (record->word & CTS_ALONE && !move_alone(op, RNDV_BOTH))
		return;
	op->remote = record->header.word[1];
	op->slot = (uint8_t)(record->word >> 48);
	op->generation = (uint8_t)(record->word >> 56);
	memcpy(op->rkey, payload, sizeof(op->rkey));
	if (unlikely(op->parts) && !rail_parts_cleared(op, bytes))
		return;
	op->bytes = bytes;
	striped_add(op, bytes);
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
	op->rndv_state |= RNDV_HAS_EDGES;
	if (rndv_answer(op, STAGE_EDGES))
		rndv_chunks_start(op);
}

void rail_ask_arrived(struct rail_peer *peer, const struct rail_record *record)
{
	const uint64_t bytes = record->word & RECORD_BYTES;
	const uint64_t slicing = record->header.word[1];
	const bool fits = bytes && !(record->word & (CTS_ALONE | CTS_EDGES | RECORD_MORE)) && slicing < SLICINGS;
	struct op *op = answered(peer, record, fits, 0, true, "request for slices");

	if (!op || !move_alone(op, RNDV_BOTH | RNDV_RING))
		return;
	op->slot = (uint8_t)(record->word >> 48);
	op->generation = (uint8_t)(record->word >> 56);
	if (op->rndv_flags & RNDV_CHOICE)
		op->slicing = (uint8_t)slicing;
	if (unlikely(op->parts && !op->buf.in_slices) && !rail_parts_cleared(op, bytes))
		return;
	op->bytes = bytes;
	rndv_slices_start(op);
}

void rail_fin_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload)
{
	uint64_t bytes = record->word & RECORD_BYTES, whole = 0;
	uint8_t chunks[RAIL_MAX];
	uint32_t units[RAIL_MAX];
	int odd = (int)(record->word >> 56);
	struct op *op;

	memcpy(chunks, &record->header.word[1], sizeof(chunks));
	memcpy(units, payload, sizeof(units));
	for (int k = 0; k < RAIL_MAX; k++)
		whole += (uint64_t)units[k] * RAIL_STRIPE_ALIGN;
	op = answered(peer, record, odd < peer->rail_count && whole <= bytes &&
		      bytes - whole < RAIL_STRIPE_ALIGN, RNDV_READ, false, "FIN");
	if (!op)
		return;
	for (int k = 0; k < peer->rail_count; k++) {
		struct rail_ledger *ledger = &peer->ctx->rail[peer->rail[k]].ledger;

		ledger->tx_chunks += chunks[k];
		ledger->tx_bytes += (uint64_t)units[k] * RAIL_STRIPE_ALIGN +
				    (k == odd ? bytes - whole : 0);
	}
	if (op->rndv_flags & RNDV_BOTH && op->stage != STAGE_RTS_SENT) {
		if (--op->chunks_left == 0)	/* the other end's half counts as one */
			rndv_finish(op, 0);
		return;
	}
	striped_add(op, bytes);
	if (op->rndv_flags & RNDV_BOTH)	/* the receiver has read everything */
		op->rndv_flags = (uint8_t)((op->rndv_flags & ~RNDV_BOTH) | RNDV_READ);
	memcpy(op->cursor, chunks, sizeof(chunks));
	op->bytes = bytes;
	if (!op_has_more(op))
		rndv_finish(op, 0);
}
