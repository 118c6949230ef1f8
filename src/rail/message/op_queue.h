/* op_queue.h - queues of operations, first in, first out, linked through struct op. */
#ifndef RAIL_OP_QUEUE_H
#define RAIL_OP_QUEUE_H

#include <stddef.h>

#include "rail/message/rail_op.h"

struct rail_op_queue {
	struct op *head, **tail;
};

static inline void queue_init(struct rail_op_queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
}

static inline void queue_push(struct rail_op_queue *q, struct op *op)
{
	op->next = NULL;
	*q->tail = op;
	q->tail = &op->next;
}

/* Take out *at, which is the head of the queue or the `next` of one of its operations. */
static inline void queue_unlink(struct rail_op_queue *q, struct op **at)
{
	*at = (*at)->next;
	if (!*at)
		q->tail = at;
}

static inline struct op *queue_pop(struct rail_op_queue *q)
{
	struct op *op = q->head;

	if (op)
		queue_unlink(q, &q->head);
	return op;
}

#endif
