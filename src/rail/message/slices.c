/* slices.c - see slices.h. */
#include <string.h>

#include "rail/message/slices.h"
#include "rail/lane/eager_lane.h"
#include "rail/lane/lane.h"
#include "rail/lane/ring.h"
#include "rail/message/op_queue.h"
#include "rail/message/parts.h"
#include "rail/message/rail_op.h"
#include "rail/message/rail_record.h"
#include "rail/message/rndv.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/rail.h"
#include "util/compiler.h"

/*
 * A ring holds so many slices: the sender fills some while the receiver empties others, and a grant is due
 * after every second one.
 */
enum { SLICES = 8, SLICE_LEAST = 4096 };

uint32_t rail_slice_bytes(const struct rail_peer *peer)
{
	const struct rail_tx *tx = &peer->tx[LANE_SINGLE];
	uint32_t bytes = tx->units / SLICES * RAIL_UNIT_BYTES;

	if (!peer->copies || !tx->polled || tx->trailing)
		return 0;
	if (bytes > tx->lane->qp.granted.inline_bytes)
		bytes = tx->lane->qp.granted.inline_bytes & ~(uint32_t)(RAIL_UNIT_BYTES - 1);
	return bytes < SLICE_LEAST ? 0 : bytes;
}

/* The next n bytes of a message: in its memory, or gathered, once. */
static const unsigned char *slice_of(struct op *op, size_t n)
{
	const struct rail_config *cfg = &op->peer->ctx->cfg;
	struct rail_parts *p = op->parts;

	if (likely(!op->buf.in_slices))
		return op_data(op) + op->sliced;
	if (!p->next)
		cfg->on_part(cfg->user, op_outer(op), op->sliced, p->memory, n, true);
	p->next = n;
	return p->memory;
}

/*
 * Post a slice; true when it is out.  The sender is done before the receiver has the bytes, so the end of a
 * sample is told.
 */
static bool slice_post(struct op *op, struct rail_tx *tx, size_t n)
{
	const struct rail_header header = { { op->slot, op->generation } };
	struct rail_eager_sample *sample = &op->peer->ctx->eager_sample;
	int rc;

	tx->tell = sample->op == op && op->sliced + n == op->bytes;
	rc = tx->slice(tx, &header, slice_of(op, n), n);
	if (unlikely(tx->tell && rc > 0))
		sample->op = NULL;
	tx->tell = false;
	return rc > 0;
}

/* True when all slices of op are out. */
static bool slices_post(struct op *op)
{
	struct rail_tx *tx = op->peer->route[op->policy];

	while (op->sliced < op->bytes) {
		const uint64_t left = op->bytes - op->sliced;
		const size_t n = left < op->peer->slice_bytes ? left : op->peer->slice_bytes;

		if (tx->waiting.head || !slice_post(op, tx, n))
			return false;
		op->sliced += n;
		if (unlikely(op->buf.in_slices))
			op->parts->next = 0;
		lane_ledger(tx->lane)->tx_chunks++;
		lane_ledger(tx->lane)->tx_bytes += n;
	}
	return true;
}

bool rndv_slices_advance(struct rail_peer *peer)
{
	struct op *op;

	while ((op = peer->slicing.head) && !peer->error && slices_post(op)) {
		queue_pop(&peer->slicing);
		op->stage = STAGE_POSTED;
		rndv_finish(op, 0);
	}
	return peer->slicing.head;
}

void rndv_slices_start(struct op *op)
{
	struct rail_peer *peer = op->peer;

	op->sliced = 0;
	op->stage = STAGE_CUTTING;
	queue_push(&peer->slicing, op);
	if (rndv_slices_advance(peer))
		peer_work(peer);
}
