/* map_learner.c - the choices of a process with --map-buffers as cells: classes of sizes; no load has its own. */
#include <stdio.h>

#include "rail/memory/map_choice.h"
#include "rail/memory/map_learner.h"
#include "rail/memory/mapped.h"
#include "rail/open/rail_ctx.h"

/* The cost of a move is shown and given as that of a scheme, which is never chosen. */
enum { MOVE = MAP_SCHEMES, NAMES };

static const char *const names[NAMES] = {
	[MAP_PLAIN] = "plain", [MAP_WRITTEN] = "written", [MAP_HALVES] = "halves", [MOVE] = "move",
};

static const char *const loads[] = { "all" };

static struct rail_map_cell *cell_at(const struct rail_ctx *ctx, const struct rail_cell_at *at)
{
	return &rail_mapped_choice(ctx)->cell[at->place][at->class];
}

static bool map_is_used(const struct rail_ctx *ctx)
{
	return ctx->mapped;
}

static void map_get(const struct rail_ctx *ctx, const struct rail_cell_at *at, struct rail_learned *out)
{
	const struct rail_map_cell *cell = cell_at(ctx, at);
	bool tried;

	out->chosen = (unsigned)rail_scheme_best(&cell->race, &tried);
	out->why = cell->race.given ? RAIL_LEARNED_GIVEN : cell->race.settled ? RAIL_LEARNED_MEASURED :
		   tried ? RAIL_LEARNED_RACING : RAIL_LEARNED_ASSUMED;
	out->schemes = NAMES;
	for (int s = 0; s < NAMES; s++) {
		const bool moves = s == MOVE;

		snprintf(out->scheme[s].name, sizeof(out->scheme[0].name), "%s", names[s]);
		out->scheme[s].cost_ns = moves ? rail_map_move_cost(cell) :
					 rail_scheme_cost(&cell->race, (enum rail_scheme)s);
		out->scheme[s].samples = moves ? cell->moves : cell->race.samples[s];
	}
}

static bool map_give(struct rail_ctx *ctx, const struct rail_cell_at *at, unsigned scheme, const uint32_t *cost_ns)
{
	if (scheme == MOVE)
		return false;
	if (ctx->mapped)
		rail_map_give(cell_at(ctx, at), (enum rail_map_scheme)scheme, cost_ns, cost_ns[MOVE]);
	return true;
}

const struct rail_learner rail_map_learner = {
	.table = "map",
	.load = loads, .scheme = names,
	.loads = sizeof(loads) / sizeof(*loads), .schemes = NAMES, .classes = SCHEME_CLASSES,
	.first_bytes = SCHEME_FIRST_BYTES, .open = true,
	.is_used = map_is_used,
	.get = map_get,
	.give = map_give,
};
