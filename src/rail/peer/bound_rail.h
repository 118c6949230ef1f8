/* bound_rail.h - the rail that carries the whole messages of a process. */
#ifndef RAIL_BOUND_RAIL_H
#define RAIL_BOUND_RAIL_H

struct rail_ctx;

/* At rail_open, by the local rank and the cores of this process.  0, or -errno after a line. */
int rail_bound_find(struct rail_ctx *ctx);
/* When all peers have been added: also by their addresses. */
void rail_bound_settle(struct rail_ctx *ctx);
/* The bound rail of another process, not yet modulo rails; -1: some addresses are missing. */
int rail_bound_of(const struct rail_ctx *ctx, unsigned index, unsigned local_rank);

#endif
