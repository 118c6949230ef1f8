/* rail_op.h - operations: the stages of one, its beginning and its end. */
#ifndef RAIL_OP_H
#define RAIL_OP_H

#include "rail/message/op_queue.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"

enum rail_stage {
	STAGE_EAGER,		/* waits for room on the eager lane */
	STAGE_KEYS,		/* its KEYS do */
	STAGE_RTS,		/* its RTS does */
	STAGE_RTS_SENT,		/* RTS sent */
	STAGE_EDGES,		/* its EDGES wait for room, all else after them */
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

#endif
