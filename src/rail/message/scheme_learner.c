/* scheme_learner.c - the schemes of receivers as cells: loads, and classes of sizes. */
#include <stdio.h>

#include "rail/message/scheme.h"
#include "rail/message/scheme_learner.h"
#include "rail/open/rail_ctx.h"

static const char *const names[RAIL_SCHEMES] = {
	[SCHEME_READ] = "read", [SCHEME_HALVES] = "halves", [SCHEME_TURNS] = "turns",
	[SCHEME_RING] = "ring", [SCHEME_RING_SHORT] = "ring-short", [SCHEME_RING_LONG] = "ring-long",
};

static const char *const loads[RAIL_LOADS] = {
	[LOAD_ALONE] = "alone", [LOAD_QUEUED] = "queued", [LOAD_CROSSING] = "crossing",
	[LOAD_CROSSING_MIXED] = "crossing-mixed", [LOAD_QUEUED_MIXED] = "queued-mixed",
};

static void scheme_get(const struct rail_ctx *ctx, const struct rail_cell_at *at, struct rail_learned *out)
{
	const struct rail_scheme_cell *cell =
		&ctx->schemes.cell[rail_load_at(at->place, at->load)][at->class];
	bool tried;
	const int best = (int)rail_scheme_best(cell, &tried);

	out->why = cell->given ? RAIL_LEARNED_GIVEN : cell->settled ? RAIL_LEARNED_MEASURED :
		   tried ? RAIL_LEARNED_RACING : RAIL_LEARNED_ASSUMED;
	for (int s = 0; s < RAIL_SCHEMES; s++) {
		if (!(cell->possible >> s & 1))
			continue;
		if (s == best)
			out->chosen = out->schemes;
		snprintf(out->scheme[out->schemes].name, sizeof(out->scheme[0].name), "%s", names[s]);
		out->scheme[out->schemes].cost_ns = rail_scheme_cost(cell, s);
		out->scheme[out->schemes++].samples = cell->samples[s];
	}
}

static bool scheme_give(struct rail_ctx *ctx, const struct rail_cell_at *at, unsigned scheme,
			const uint32_t *cost_ns)
{
	return rail_scheme_give(&ctx->schemes.cell[rail_load_at(at->place, at->load)][at->class], scheme,
				cost_ns);
}

const struct rail_learner rail_scheme_learner = {
	.table = "receive",
	.load = loads, .scheme = names,
	.loads = RAIL_LOADS, .schemes = RAIL_SCHEMES, .classes = SCHEME_CLASSES,
	.first_bytes = SCHEME_FIRST_BYTES, .open = true,
	.get = scheme_get,
	.give = scheme_give,
};
