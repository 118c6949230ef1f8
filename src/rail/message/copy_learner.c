/*
 * copy_learner.c - a process's choices of copies as cells: places in pages, and classes of sizes.  All peers
 * have the same choices, so each place of peers has each cell.
 */
#include <stdio.h>

#include "rail/message/copy_learner.h"
#include "rail/open/rail_ctx.h"
#include "util/copy.h"
#include "util/copy_choice.h"

static const char *const names[RG_COPY_WAYS] = { [RG_COPY_BLOCKS] = "blocks", [RG_COPY_WHOLE] = "whole" };

/* The distance of both ends in their pages. */
static const char *const loads[RG_COPY_PLACES] = { "far", "near" };

static struct rg_copy_cell *cell_at(const struct rail_cell_at *at)
{
	return rg_copy_choice(RG_COPY_PLACES * at->class + at->load);
}

/* Costs of the choice are of RG_COPY_MOST bytes, those of a cell of its class's most. */
static unsigned parts(const struct rail_cell_at *at)
{
	return RG_COPY_CLASSES / RG_COPY_PLACES - 1 - at->class;
}

/* Cells that are not settled are not read, since another thread may measure. */
static void copy_get(const struct rail_ctx *ctx, const struct rail_cell_at *at, struct rail_learned *out)
{
	const struct rg_copy_cell *cell = cell_at(at);
	const bool settled = atomic_load_explicit(&cell->settled, memory_order_acquire);

	(void)ctx;
	out->why = !settled ? RAIL_LEARNED_ASSUMED : cell->given ? RAIL_LEARNED_GIVEN : RAIL_LEARNED_MEASURED;
	out->chosen = settled ? atomic_load_explicit(&cell->way, memory_order_relaxed) : RG_COPY_BLOCKS;
	out->schemes = RG_COPY_WAYS;
	for (int w = 0; w < RG_COPY_WAYS; w++) {
		snprintf(out->scheme[w].name, sizeof(out->scheme[0].name), "%s", names[w]);
		out->scheme[w].cost_ns = settled ? rg_copy_cost(cell, (enum rg_copy_way)w) >> parts(at) : 0;
		out->scheme[w].samples = settled && !cell->given ? cell->samples[w] : 0;
	}
}

static bool copy_give(struct rail_ctx *ctx, const struct rail_cell_at *at, unsigned scheme, const uint32_t *cost_ns)
{
	uint32_t most_ns[RG_COPY_WAYS];

	(void)ctx;
	for (int w = 0; w < RG_COPY_WAYS; w++)
		most_ns[w] = cost_ns[w] << parts(at);
	rg_copy_give(cell_at(at), (enum rg_copy_way)scheme, most_ns);
	return true;
}

const struct rail_learner rail_copy_learner = {
	.table = "copy",
	.load = loads, .scheme = names,
	.loads = RG_COPY_PLACES, .schemes = RG_COPY_WAYS, .classes = RG_COPY_CLASSES / RG_COPY_PLACES,
	.first_bytes = 2 * RG_COPY_LEAST,
	.get = copy_get,
	.give = copy_give,
};
