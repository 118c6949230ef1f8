/*
 * edges.h - what lies beside whole pages of a receive buffer that is mapped (mapped.h).
 *
 * The first and the last page of such a buffer are not mapped, since they hold other data, too.
 * What of the message lies there comes as a record of the eager lane (EDGES), before the chunks,
 * from which it is left out: each of the two would be a system call of its own.  Not if it is more
 * than an eager message or fits a slot, nor with control messages: then it goes with the chunks.
 */
#ifndef RAIL_EDGES_H
#define RAIL_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/message/stripe.h"

struct rail_op;
struct rail_tx;

/* Sets op->head and op->tail, from the address of the receiver's buffer. */
void rail_edges_find(struct rail_op *op, uint64_t address);
/* Are they for a record?  Also of what a peer says. */
bool rail_edges_fit(const struct rail_op *op);
/* As rail_rndv_post. */
int rail_edges_post(struct rail_tx *tx, const struct rail_op *op);
/* Chunk n of the table, without edges, if they have a record: it may be empty. */
struct rail_chunk rndv_chunk(const struct rail_op *op, const struct rail_stripe *s, uint32_t n);

#endif
