/* pool.h - the SRQ of an adapter, if it has them, and receive buffers. */
#ifndef RAIL_POOL_H
#define RAIL_POOL_H

struct ibv_srq;
struct ibv_wc;
struct rail_ctx;
struct rail_geometry;
struct rail_lane;

/* *out: NULL, each lane gets receives of its own. */
int rail_pool_srq(struct rail_ctx *ctx, int adapter, const struct rail_geometry *g,
		  struct ibv_srq **out);
/* Add the buffers of one more lane.  0 or -errno. */
int rail_pool_add(struct rail_lane *lane);
/* A receive has completed.  Returns the lane whose receive was flushed, or NULL. */
struct rail_lane *rail_pool_arrived(struct rail_ctx *ctx, const struct ibv_wc *wc);
void rail_pools_free(struct rail_ctx *ctx);

#endif
