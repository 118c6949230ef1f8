/* lane.h - lanes, each with one queue pair: the posted requests, and posting on an eager lane. */
#ifndef RAIL_LANE_H
#define RAIL_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"
#include "util/compiler.h"

struct rail_cq;
struct rail_pool;
struct rail_rx;
struct rail_tx;

enum { EAGER_SIGNAL = 32 };	/* eager: every so many requests are signalled, to reclaim them */

/* A request on a bulk lane. */
struct rail_sent {
	struct op *op;
	uint32_t bytes;
};

/* A lane: a queue pair to a peer. */
struct rail_lane {
	struct rail_ctx *ctx;
	struct rail_peer *peer;
	struct vrb_qp qp;
	uint32_t id;
	bool numbered;			/* ctx->lane[id] is this lane */
	int rail;			/* index among the context's rails */
	int k;				/* the same among the peer's rails */
	struct rail_ledger *ledger;	/* the rail's */
	struct rail_cq *cq;		/* the lane has cq_entries of it */
	uint32_t cq_entries;
	uint32_t sq_depth;
	uint32_t sq_posted, sq_done, sq_signalled;	/* counted for ever */
	uint32_t rq_free;		/* bulk: posted receives without a promise */
	uint32_t rq_owed;		/* bulk: taken receives, to be posted again */
	uint32_t pulled;		/* bulk: chunks under way that any lane could have taken */
	bool landed;			/* bulk: something has come */
	uint64_t probe_addr;		/* the peer's memory that an empty write names */
	uint32_t probe_rkey;
	struct rail_rx *rx;		/* eager, by SEND: the receiving end */
	struct rail_pool *pool;		/* ... and its receives; NULL: none */
	struct rail_sent *sent;		/* bulk: request n is at n % sq_depth */
};

static inline struct rail_ledger *lane_ledger(const struct rail_lane *lane)
{
	return lane->ledger;
}

/* A message has left whole. */
static inline void lane_sent(const struct rail_lane *lane, uint64_t bytes)
{
	lane->ledger->tx_messages++;
	lane->ledger->tx_bytes += bytes;
}

static inline bool lane_has_room(const struct rail_lane *lane, uint32_t requests)
{
	return lane->sq_posted - lane->sq_done + requests <= lane->sq_depth;
}

/* The device has refused a request: the peer has failed.  -ECONNRESET. */
int rail_lane_refused(struct rail_lane *lane, int error);

/* Post `count` chained requests, the last one signalled.  1, or -ECONNRESET. */
int rail_lane_post_signalled(struct rail_lane *lane, struct ibv_send_wr *first,
			     struct ibv_send_wr *last, uint32_t count);

/*
 * Post `count` chained requests, of which `last` may be signalled, on an eager
 * lane.  The caller has checked lane_has_room.  1, or -ECONNRESET.
 */
static inline int lane_post(struct rail_lane *lane, struct ibv_send_wr *first,
			    struct ibv_send_wr *last, uint32_t count)
{
	struct ibv_send_wr *bad;
	int rc;

	if (unlikely(lane->sq_posted + count - lane->sq_signalled >= EAGER_SIGNAL))
		return rail_lane_post_signalled(lane, first, last, count);
	lane->sq_posted += count;
	rc = ibv_post_send(lane->qp.qp, first, &bad);
	return likely(!rc) ? 1 : rail_lane_refused(lane, rc);
}

/* Signalled in any case: the completion frees a staging buffer. */
int rail_lane_post_staged(struct rail_lane *lane, struct ibv_send_wr *first,
			  struct ibv_send_wr *last, uint32_t count, uint32_t buffer);

/* An empty write, signalled: tests that the other side lives, and that all before it is out. */
int rail_lane_probe(struct rail_lane *lane);
/* Has the lane carried anything, in either direction? */
bool rail_lane_is_used(const struct rail_lane *lane);

/* Room for one more record in the peer's ring or receive queue? */
bool rail_tx_refresh(struct rail_tx *tx);
/* Grant the sender all records read; now, or as soon as the lane has room. */
void rail_rx_grant(struct rail_rx *rx);

#endif
