/*
 * trace.c - the rail that a message went over, for rail_config.on_eager and rail_op_traced.
 *
 * Pointers to functions lead to a peer's lane and to the caller's on_message.  While messages are
 * traced, the pointers lead to functions of this file, which call the others.  So an untraced
 * message pays nothing, not even a test.  The rail of an arrival follows from the ledger, which
 * has just counted it.
 */
#include <string.h>

#include "rail/lane/eager_lane.h"
#include "rail/lane/lane.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/open/trace.h"
#include "rail/message/rndv.h"
#include "rail/message/stripe.h"

static int eager_traced(struct rail_tx *tx, const struct rail_header *header, const void *payload,
			size_t bytes)
{
	int rc = tx->untraced(tx, header, payload, bytes);
	const struct rail_lane *lane = tx->lane;

	if (rc > 0)
		lane->ctx->cfg.on_eager(lane->ctx->cfg.user, lane->peer->index, true, lane->rail,
					header, bytes);
	return rc;
}

void rail_trace_tx(struct rail_tx *tx)
{
	tx->untraced = tx->eager;
	tx->eager = eager_traced;
	tx->eager_slot = NULL;		/* every message takes `eager` */
}

static void message_traced(void *user, const struct rail_message *msg)
{
	struct rail_ctx *ctx = msg->peer->ctx;

	for (int r = 0; r < RAIL_ALL && msg->payload; r++)
		if (ctx->traced[r] != ctx->rail[r].ledger.rx_messages) {
			ctx->traced[r] = ctx->rail[r].ledger.rx_messages;
			ctx->cfg.on_eager(user, msg->index, false, r, msg->header, msg->bytes);
		}
	ctx->untraced(user, msg);
}

void rail_trace_start(struct rail_ctx *ctx)
{
	ctx->untraced = ctx->cfg.on_message;
	ctx->cfg.on_message = message_traced;
}

/* ---- Rendezvous --------------------------------------------------------- */

static void chunks_by_plan(const struct op *op, struct rail_traced *out)
{
	struct rail_stripe s;

	rndv_plan(op, &s);
	out->any = s.pull;
	for (int k = 0; k < s.rail_count && !s.pull; k++)
		out->chunks[op->peer->rail[k]] = (uint8_t)s.piece[k].count;
}

/* The posted requests without control messages. */
static void chunks_by_cursor(const struct op *op, struct rail_traced *out)
{
	for (int k = 0; k < op->peer->rail_count; k++)
		out->chunks[op->peer->rail[k]] =
			(uint8_t)(op->cursor[k] - (op->cursor[k] && op->rndv_flags & RNDV_CONTROL));
}

void rail_op_traced(const struct rail_op *outer, bool sent, struct rail_traced *out)
{
	const struct op *op = op_of_const(outer);

	memset(out, 0, sizeof(*out));
	out->index = op->peer->index;
	out->eager = sent && op->stage == STAGE_EAGER;
	if (out->eager)
		return;
	out->bytes = op->bytes;
	out->both = op->rndv_flags & RNDV_BOTH;
	out->read = op->rndv_flags & RNDV_READ && !out->both;
	out->ring = op->rndv_flags & RNDV_RING && !out->both && !out->read;
	out->in_parts = op->in_parts;
	if (!op->bytes || op->in_parts)
		return;
	if (out->ring)
		out->chunks[op->peer->rail[0]] = 1;
	else if (!out->both && (sent || out->read))
		chunks_by_cursor(op, out);
	else
		chunks_by_plan(op, out);
}

struct rail_peer *rail_op_peer(const struct rail_op *op)
{
	return op_of_const(op)->peer;
}

unsigned rail_op_index(const struct rail_op *op)
{
	return rail_op_peer(op)->index;
}

const struct rail_header *rail_op_header(const struct rail_op *op)
{
	return &op_of_const(op)->header;
}
