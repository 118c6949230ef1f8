/* eager.h - a message's first step at both ends, and the queue of what waits for room. */
#ifndef RAIL_EAGER_H
#define RAIL_EAGER_H

#include <stdbool.h>
#include <stddef.h>

struct rail_op;
struct rail_record;
struct rail_rx;
struct rail_tx;

/* One record has come. */
void rail_record_arrived(struct rail_rx *rx, unsigned kind, const struct rail_record *record,
			 const void *payload, size_t bytes);
/* op waits for room on the lane, behind the operations that wait there already. */
void rail_tx_wait(struct rail_tx *tx, struct rail_op *op);
/* Send what waits.  True while anything still waits. */
bool rail_tx_advance(struct rail_tx *tx);

#endif
