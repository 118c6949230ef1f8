/* rail_op.h - operations: the stages of one, its beginning and its end. */
#ifndef RAIL_OP_H
#define RAIL_OP_H

#include "rail/message/op_queue.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"

enum rail_stage {
	STAGE_EAGER,		/* waits for room on the eager lane */
	STAGE_KEYS,		/* KEYS wait for room */
	STAGE_RTS,		/* the RTS waits for room */
	STAGE_RTS_SENT,
	STAGE_EDGES,		/* EDGES wait for room, chunks follow */
	STAGE_CUTTING,		/* in a queue of the peer until all chunks are posted */
	STAGE_POSTED,
	STAGE_ACCEPTED,		/* receiver: waits for receive requests and a landing */
	STAGE_CTS,		/* the CTS waits for room */
	STAGE_LANDING,
	/* The last step of an operation: */
	STAGE_FIN,		/* the FIN waits for room */
	STAGE_CANCEL,		/* a record without a message (cancel.c) waits for room */
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

/* Let the next rail_progress call op->done: for operations that end where no upcall is allowed. */
static inline void op_end_later(struct rail_op *op, int status)
{
	op->status = status;
	queue_push(&op->peer->ctx->completed, op);
}

#endif
