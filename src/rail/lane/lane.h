/* lane.h - lanes: one queue pair each, what has been posted on it, and posting on an eager one. */
#ifndef RAIL_LANE_H
#define RAIL_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/likely.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"

struct rail_cq;
struct rail_rx;
struct rail_tx;

enum { EAGER_SIGNAL = 32 };	/* eager: every so many requests are signalled, to reclaim them */

/* A request on a bulk lane. */
struct rail_sent {
	struct rail_op *op;
	uint32_t bytes;
};

/* One queue pair. */
struct rail_lane {
	struct rail_ctx *ctx;
	struct rail_peer *peer;
	struct vrb_qp qp;
	uint32_t id;
	bool numbered;			/* ctx->lane[id] is this one */
	int rail;			/* of the context */
	int k;				/* the same among the peer's rails */
	struct rail_ledger *ledger;	/* of its rail */
	struct rail_cq *cq;		/* where it has cq_entries of its own */
	uint32_t cq_entries;
	uint32_t sq_depth;
	uint32_t sq_posted, sq_done, sq_signalled;	/* counted for ever */
	uint32_t rq_free;		/* bulk: receives that stand and are not promised */
	uint32_t rq_owed;		/* ... that were taken and not posted again yet */
	uint32_t pulled;		/* bulk: chunks under way that any lane could have taken */
	bool landed;			/* bulk: something has come */
	struct rail_rx *rx;		/* eager, by SEND: the end that arrivals belong to */
	struct rail_sent *sent;		/* bulk: what request n is, at n % sq_depth */
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

/* Post `count` chained requests, `last` signalled, which else are not.  1, or -ECONNRESET. */
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

/* A write of nothing, signalled: tests whether the other side lives and all before it is out. */
int rail_lane_probe(struct rail_lane *lane);
/* Has it carried anything, in either direction? */
bool rail_lane_is_used(const struct rail_lane *lane);

/* Room for one more record in the peer's ring or receive queue? */
bool rail_tx_refresh(struct rail_tx *tx);
/* Grant the sender what has been read; now, or as soon as the lane has room. */
void rail_rx_grant(struct rail_rx *rx);

#endif
