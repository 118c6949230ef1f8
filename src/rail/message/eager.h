/* eager.h - a message's first step at both ends, and the queue of operations without room. */
#ifndef RAIL_EAGER_H
#define RAIL_EAGER_H

#include <stdbool.h>
#include <stddef.h>

#include "rail/lane/eager_lane.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "util/compiler.h"

struct op;

/* Does a message of this peer have a taker?  None has, once closing or after a told failure. */
static inline bool rail_peer_listens(const struct rail_peer *peer)
{
	return likely(!peer->ctx->closing && !peer->told);
}

/* A whole message has come, with a taker. */
static inline void rail_message_arrived(struct rail_rx *rx, const struct rail_record *record,
					const void *payload, size_t bytes)
{
	struct rail_peer *peer = rx->lane->peer;
	struct rail_ledger *ledger = lane_ledger(rx->lane);
	const struct rail_message msg = {
		.peer = peer,
		.index = peer->index,
		.header = &record->header,
		.bytes = bytes,
		.payload = payload,
	};

	ledger->rx_messages++;
	ledger->rx_bytes += bytes;
	peer->ctx->cfg.on_message(peer->ctx->cfg.user, &msg);
}

/* The last message of a sample of eager_choice.h was offered, and ends. */
void rail_eager_offer_ended(struct op *op, int status);
/* A record has come. */
void rail_record_arrived(struct rail_rx *rx, unsigned kind, const struct rail_record *record,
			 const void *payload, size_t bytes);
/* Let op wait for room on the lane, after the operations that wait already. */
void rail_tx_enqueue(struct rail_tx *tx, struct op *op);
/* Send the waiting operations.  True while any still waits. */
bool rail_tx_advance(struct rail_tx *tx);

#endif
