/* peer.h - a peer: its lanes, their memory, and its operations under way. */
#ifndef RAIL_PEER_H
#define RAIL_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/lane/eager_lane.h"
#include "rail/lane/lane.h"
#include "rail/message/eager_choice.h"
#include "rail/message/late.h"
#include "rail/message/op_queue.h"
#include "rail/peer/endpoint_info.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/rate_estimate.h"
#include "rail/message/slices.h"

struct ibv_mr;
struct rail_demand;

enum { LANDINGS = 256 };		/* rendezvous messages under way from one peer */

/* A message that is landing. */
struct rail_landing {
	struct op *op;		/* NULL: free */
	uint64_t missing;		/* chunks or control messages, one bit each */
	uint8_t generation, next_free;
};

struct rail_peer {
	struct rail_ctx *ctx;
	unsigned index;
	int error, cause;		/* failed: -ECONNRESET, and why */
	char *why;			/* the reason, for people; NULL: no memory */
	bool connected, gone;
	bool reported;			/* the failure has been told, or need not be */
	bool told;			/* on_peer_error has been called */
	int inboxes;			/* eager lanes that the block has memory for */
	unsigned local_rank;		/* the peer's, from its address */
	int rx_k;			/* the rail that it sends on, when this end is made; -1: unknown */
	struct rail_demand *demand;		/* state of a connection on demand (on_demand.c) */
	struct rail_crossing crossing;	/* what this end has told, if it leads (scheme.h) */
	struct rail_late late;		/* the peer's answers as a sender */
	struct rail_peer *next_watched;
	bool reads_next;		/* the mover of the last of several: rndv_receive.c, take_both */
	bool working;			/* in the context's list of peers with something to do */
	struct rail_peer *next_working;
	uint32_t ops;			/* in flight with this peer */
	uint32_t offers;		/* rendezvous that the peer has not answered */
	uint32_t eager_most;		/* bytes of messages that may go eagerly by choice; 0: none */
	struct rail_row row;		/* of messages above the eager limit to it */
	uint64_t heard, controls;	/* its records at the last one; its records that are no messages */
	struct rail_tx *route[RAIL_POLICIES];
	struct rail_tx tx[LANE_ROLES];
	struct rail_rx rx[LANE_ROLES];
	int tx_count, rx_count;
	struct rail_geometry geometry;	/* lanes towards this end */
	/*
	 * The peer's rails, in an order that both ends share and the wire uses.  rail[k]: index
	 * among the context's rails.
	 */
	int rail_count, qps;
	uint8_t rail[RAIL_MAX];
	struct vrb_ud_address there[RAIL_MAX];	/* the peer's ports, for lines: lid, gid */
	uint64_t chunk;			/* bytes of a request of a large message */
	uint64_t chunk_most;		/* the longest request that either end's rails carry */
	uint64_t table_bytes;		/* bytes that one table of chunks moves at most */
	bool polled;			/* eager lanes: memory polled */
	bool copies;			/* the processors of both ends move the data, on all rails */
	struct rail_lane eager[RAIL_MAX];
	struct rail_lane *bulk;		/* peer_bulk(): qps of them per rail */
	uint8_t next_lane;		/* lane of the next message's first chunk */
	struct rail_op_queue accepting;	/* accepted, but receives or a landing are missing */
	struct rail_op_queue cutting;	/* CTS here, chunks not all posted */
	struct rail_op_queue pulling;	/* the same, chunks for any rail that is free ... */
	uint32_t unpulled;		/* ... so many */
	struct rail_op_queue slicing;	/* ASK here, slices not all posted */
	uint32_t slice_bytes[SLICINGS];	/* rail_slice_lengths */
	struct rail_estimate writing, reading;	/* rates of its rails */
	struct rail_landing landing[LANDINGS];
	int landings_used;
	uint8_t landing_free;		/* first of a list, when not all are used */
	/* Rings, receive buffers and grants, registered on all adapters. */
	unsigned char *block;
	size_t block_bytes;
	struct ibv_mr *block_mr[RAIL_ALL];	/* index: adapter */
};

static inline struct rail_lane *peer_bulk(const struct rail_peer *peer, int k, int q)
{
	return &peer->bulk[k * peer->qps + q];
}

/* The lane on the rail bound to the peer, which may be the first. */
static inline struct rail_tx *peer_bound_tx(struct rail_peer *peer)
{
	return &peer->tx[peer->tx_count - 1];
}

/* The index among the peer's rails of rail r of the context; 0 if the peer does not have it. */
static inline int peer_rail(const struct rail_peer *peer, int r)
{
	for (int k = 0; k < peer->rail_count; k++)
		if (peer->rail[k] == r)
			return k;
	return 0;
}

static inline bool peer_is_local(const struct rail_peer *peer)
{
	return peer->rail[0] == peer->ctx->local;
}

static inline int peer_adapter(const struct rail_peer *peer, int k)
{
	return peer->ctx->rail[peer->rail[k]].adapter;
}

/* The next rail_progress works on this peer. */
static inline void peer_work(struct rail_peer *peer)
{
	struct rail_ctx *ctx = peer->ctx;

	if (peer->working)
		return;
	peer->working = true;
	peer->next_working = ctx->working;
	ctx->working = peer;
}

/* Make a peer, cheaply; later its lanes, block and endpoint info.  0, or -errno after a line. */
int rail_peer_new(struct rail_ctx *ctx, unsigned index, struct rail_peer **out);
int rail_peer_prepare(struct rail_peer *peer, unsigned char info[ENDPOINT_INFO_BYTES]);
/* rail_on_demand_forget comes before it, for a peer of rail_peer_add. */
void rail_peer_free(struct rail_peer *peer);
void rail_lane_drop(struct rail_lane *lane);
/* The rail that carries whole messages, as an index among the peer's rails. */
int rail_peer_bound(const struct rail_peer *peer);
/* The parts of the block. */
unsigned char *rail_block_grant_in(const struct rail_peer *peer, int role);
unsigned char *rail_block_grant_out(const struct rail_peer *peer, int role);
unsigned char *rail_block_ring(const struct rail_peer *peer, int role);

#endif
