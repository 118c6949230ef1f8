/* lane_ring.h - eager lanes whose receiver polls memory. */
#ifndef RAIL_LANE_RING_H
#define RAIL_LANE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rail/lane/eager_lane.h"
#include "rail/lane/lane.h"
#include "rail/message/rail_record.h"
#include "verbs/vrb.h"

struct rail_ctx;
struct rail_rx;
struct rail_tx;

enum {
	RING_SLOTS = 128,
};

/* The memory that rail_progress polls: all that it reads while nothing comes. */
struct rail_poll {
	const _Atomic uint64_t *mark;
	uint64_t seq;
	struct rail_rx *rx;
};

/* May the eager lanes of this adapter be rings that the receiver polls? */
static inline bool rail_adapter_polls(const struct vrb_adapter *adapter)
{
	return adapter->in_order && adapter->inline_bytes >= sizeof(struct rail_slot);
}

/* Is it known that a record may go at once?  Only tx_slot_free reads new credit. */
static inline bool rail_ring_ready(const struct rail_tx *tx)
{
	return likely(rail_ring_free((uint32_t)tx->seq, tx->granted, tx->slots)) &&
	       likely(lane_has_room(tx->lane, 1));
}

/* The requests, prepared once the fields above `wr` are set. */
void rail_ring_tx_init(struct rail_tx *tx);
/* Poll one more ring.  0 or -ENOMEM. */
int rail_poll_add(struct rail_ctx *ctx, const struct rail_poll *poll);
/*
 * Records of the hot rings, which are all of few ones, and of some others in turn; a batch of each
 * at most.  Returns how many.  The cost does not grow with the number of peers.
 */
uint32_t rail_rings_poll(struct rail_ctx *ctx);
/* The same of all rings. */
uint32_t rail_rings_poll_all(struct rail_ctx *ctx);

#endif
