/*
 * edges.h - bytes before and after the whole pages of a receive buffer that is mapped (mapped.h).
 *
 * The first and the last page of such a buffer are not mapped, since they hold other data, too.
 * Bytes of the message on these pages would cost a system call each.  The edges come as a record
 * of the eager lane (EDGES), before the chunks, which leave them out.  Edges that exceed an eager
 * message or fit a slot, and those of a message with control messages, go with the chunks.
 */
#ifndef RAIL_EDGES_H
#define RAIL_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/message/stripe.h"

struct op;
struct rail_tx;

/* Set op->head and op->tail, from the address of the receiver's buffer. */
void rail_edges_find(struct op *op, uint64_t address);
/* Do the edges go as a record?  Also checks the head and tail that a peer implies. */
bool rail_edges_fit(const struct op *op);
/* Post the record, with the results of rail_rndv_post. */
int rail_edges_post(struct rail_tx *tx, const struct op *op);
/* Chunk n of the table, perhaps empty, without edges that go as a record. */
struct rail_chunk rndv_chunk(const struct op *op, const struct rail_stripe *s, uint32_t n);

#endif
