/* queues.c - the number of operations under way with a peer, and of operations without room. */
#include "rail/rail.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"

static unsigned queue_length(const struct rail_op_queue *q)
{
	unsigned n = 0;

	for (const struct op *op = q->head; op; op = op->next)
		n++;
	return n;
}

/* Answers of a receiver wait in the same queues as messages. */
void rail_queues(const struct rail_peer *peer, struct rail_queues *out)
{
	unsigned waiting = queue_length(&peer->accepting) + queue_length(&peer->cutting) +
			   queue_length(&peer->pulling);

	for (int i = 0; i < peer->tx_count; i++)
		waiting += queue_length(&peer->tx[i].waiting);
	*out = (struct rail_queues){
		.index = peer->index,
		.connected = peer->connected,
		/* A waiting CANCEL counts in addition to the message that it cancels. */
		.in_flight = peer->ops > waiting ? peer->ops - waiting : 0,
		.waiting = waiting,
	};
}
