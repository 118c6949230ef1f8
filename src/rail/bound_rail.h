/* bound_rail.h - the rail of what is not cut. */
#ifndef RAIL_BOUND_RAIL_H
#define RAIL_BOUND_RAIL_H

struct rail_ctx;

/* What is known at once; and when all peers have been added. */
int rail_bound_find(struct rail_ctx *ctx);
void rail_bound_settle(struct rail_ctx *ctx);

#endif
