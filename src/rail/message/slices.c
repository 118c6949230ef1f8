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

enum { SLICE_LEAST = 4096 };

/*
 * A ring holds so many slices: the sender fills some while the receiver empties others.  Each length is the best
 * somewhere.  On two cores of an EPYC of family 26 a message alone of 64 KiB takes 1.64 us in short slices, 1.72 us
 * in usual ones, 1.89 us in long ones; windows of 4 MiB move 48.6, 51.4 and 53.1 GB/s.  At other times of the same
 * virtual machine its cores exchange lines at half the rate: windows of 256 KiB then move 24.7, 30.1 and 32.6 GB/s.
 * (MEASURE_ONLY=scheme_choice MEASURE_SCHEMES=pt2pt make bench)
 */
static const uint8_t held[SLICINGS] = { [SLICES_USUAL] = 8, [SLICES_SHORT] = 16, [SLICES_LONG] = 4 };

void rail_slice_lengths(const struct rail_peer *peer, uint32_t bytes[SLICINGS])
{
	const struct rail_tx *tx = &peer->tx[LANE_SINGLE];
	const bool go = peer->copies && tx->polled && !tx->trailing;
	const uint32_t most = go ? tx->lane->qp.granted.inline_bytes & ~(uint32_t)(RAIL_UNIT_BYTES - 1) : 0;

	for (int i = 0; i < SLICINGS; i++) {
		bytes[i] = tx->units / held[i] * RAIL_UNIT_BYTES;
		if (bytes[i] > most)
			bytes[i] = most;
		if (bytes[SLICES_USUAL] < SLICE_LEAST)
			bytes[i] = 0;
		else if (bytes[i] < SLICE_LEAST)
			bytes[i] = SLICE_LEAST;
	}
}

bool rail_way_slices(const struct rail_way *way, enum rail_slicing *slicing)
{
	switch (way->rendezvous) {
	case RAIL_BY_RING:
		*slicing = SLICES_USUAL;
		return true;
	case RAIL_BY_RING_SHORT:
		*slicing = SLICES_SHORT;
		return true;
	case RAIL_BY_RING_LONG:
		*slicing = SLICES_LONG;
		return true;
	default:
		return false;
	}
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
	const uint32_t most = op->peer->slice_bytes[op->slicing];

	while (op->sliced < op->bytes) {
		const uint64_t left = op->bytes - op->sliced;
		const size_t n = left < most ? left : most;

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
