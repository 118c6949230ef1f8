/* pool.h - the SRQs of an adapter, if it has them, and receive buffers. */
#ifndef RAIL_POOL_H
#define RAIL_POOL_H

struct ibv_srq;
struct ibv_wc;
struct rail_ctx;
struct rail_geometry;
struct rail_lane;

/* Room for the receives of a lane.  *out: NULL, the lane gets receives of its own. */
int rail_pool_take(struct rail_lane *lane, const struct rail_geometry *g, struct ibv_srq **out);
/* The lane goes away, or has failed to be made. */
void rail_pool_give(struct rail_lane *lane);
/* Add the buffers of the lane.  0 or -errno. */
int rail_pool_add(struct rail_lane *lane);
/* A receive has completed.  Returns the lane whose receive was flushed, or NULL. */
struct rail_lane *rail_pool_arrived(struct rail_ctx *ctx, const struct ibv_wc *wc);
void rail_pools_free(struct rail_ctx *ctx);

#endif
