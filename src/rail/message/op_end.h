/* op_end.h - the beginning and the end of an operation. */
#ifndef RAIL_OP_END_H
#define RAIL_OP_END_H

#include "rail/message/op_queue.h"
#include "rail/message/rail_op.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"

static inline void op_begin(struct op *op)
{
	op->peer->ops++;
	op->peer->ctx->ops++;
}

static inline void op_end(struct op *op, int status)
{
	op->peer->ops--;
	op->peer->ctx->ops--;
	op->peer->ctx->events++;
	op->done(op_outer(op), status);
}

/* Let the next rail_progress call op->done: for operations that end where no upcall is allowed. */
static inline void op_end_later(struct op *op, int status)
{
	op->status = status;
	queue_push(&op->peer->ctx->completed, op);
}

#endif
