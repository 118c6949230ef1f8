/*
 * bound_rail.c - the rail that carries the whole messages of a process.
 *
 * The bound rail follows from the local rank, or is the nearest rail (--bind near).  For --bind
 * near each process finds the rails nearest to its cores, and sends them to all others with its
 * address.  All processes spread the ranks of a node over these rails alike (topo_spread).
 */
#include <errno.h>
#include <stdlib.h>

#include "rail/peer/bound_rail.h"
#include "util/err.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "topo/topo.h"
#include "verbs/vrb.h"

int rail_bound_find(struct rail_ctx *ctx)
{
	const char *device[RAIL_MAX];
	struct topo *topo;
	int rc;

	ctx->bound = ctx->cfg.local_rank;
	ctx->near = (1u << ctx->rail_count) - 1;
	if (ctx->settings.bind != RAIL_BIND_NEAR)
		return 0;
	ctx->near_of = calloc(ctx->cfg.peer_count, sizeof(*ctx->near_of));
	if (!ctx->near_of)
		return -ENOMEM;
	rc = topo_open(TOPO_RAILS, &topo);
	if (rc)
		return rc;
	for (int r = 0; r < ctx->rail_count; r++)
		device[r] = ibv_get_device_name(ctx->rail[r].port->device);
	rc = topo_near(topo, device, ctx->rail_count, NULL, &ctx->near);
	if (rc)
		rg_error("--bind near: the CPUs of this process are not known");
	topo_close(topo);
	return rc;
}

/* The nearest rail of process `index`, among its neighbours; -1: the topology tells none. */
static int near_rail(const struct rail_ctx *ctx, unsigned index)
{
	unsigned count = ctx->cfg.peer_count, neighbours = 0, its = 0;
	uint32_t *mask = malloc(count * sizeof(*mask));
	int *rail = mask ? malloc(count * sizeof(*rail)) : NULL, found = -1;

	for (unsigned i = 0; rail && i < count; i++) {
		if (i != index && !(ctx->cfg.node_of &&
				    ctx->cfg.node_of[i] == ctx->cfg.node_of[index]))
			continue;
		if (i == index)
			its = neighbours;
		mask[neighbours++] = ctx->near_of[i];
	}
	if (rail) {
		topo_spread(mask, (int)neighbours, rail);
		found = rail[its];
	}
	free(mask);
	free(rail);
	return found;
}

void rail_bound_settle(struct rail_ctx *ctx)
{
	const int rail = ctx->near_of ? near_rail(ctx, ctx->cfg.index) : -1;

	if (rail >= 0)
		ctx->bound = (unsigned)rail;
}

int rail_bound_of(const struct rail_ctx *ctx, unsigned index, unsigned local_rank)
{
	int rail;

	if (!ctx->near_of)
		return (int)local_rank;
	if (ctx->added < ctx->cfg.peer_count)
		return -1;
	rail = near_rail(ctx, index);
	return rail >= 0 ? rail : (int)local_rank;
}
