/* scheme_learner.c - the schemes of receivers as cells: loads, and classes of sizes. */
#include <stdio.h>
#include <string.h>

#include "rail/message/scheme.h"
#include "rail/message/scheme_learner.h"
#include "rail/open/rail_ctx.h"

static const char *const names[RAIL_SCHEMES] = {
	[SCHEME_READ] = "read", [SCHEME_HALVES] = "halves", [SCHEME_TURNS] = "turns",
};

static const char *const loads[RAIL_LOADS] = {
	[LOAD_ALONE] = "alone", [LOAD_QUEUED] = "queued", [LOAD_CROSSING] = "crossing",
};

static uint64_t class_bytes(unsigned c)
{
	return c < SCHEME_CLASSES - 1 ? SCHEME_FIRST_BYTES << c : 0;
}

static void scheme_get(const struct rail_ctx *ctx, enum rail_place place, unsigned n,
		       struct rail_learned *out)
{
	const enum rail_load load = n / SCHEME_CLASSES;
	const struct rail_scheme_cell *cell =
		&ctx->schemes.cell[rail_load_at(place, load)][n % SCHEME_CLASSES];

	snprintf(out->load, sizeof(out->load), "%s", loads[load]);
	out->bytes = class_bytes(n % SCHEME_CLASSES);
	out->why = cell->given ? RAIL_LEARNED_GIVEN :
		   cell->settled ? RAIL_LEARNED_MEASURED : RAIL_LEARNED_ASSUMED;
	for (int s = 0; s < RAIL_SCHEMES; s++) {
		if (!(cell->possible >> s & 1))
			continue;
		if (s == (cell->settled ? cell->scheme : cell->assumed))
			out->chosen = out->schemes;
		snprintf(out->scheme[out->schemes].name, sizeof(out->scheme[0].name), "%s", names[s]);
		out->scheme[out->schemes].cost_ns = rail_scheme_cost(cell, s);
		out->scheme[out->schemes++].samples = cell->samples[s];
	}
}

static int scheme_named(const char *name)
{
	for (int s = 0; s < RAIL_SCHEMES; s++)
		if (strcmp(names[s], name) == 0)
			return s;
	return -1;
}

/* The cell of a load and a class at a place; NULL: no such cell. */
static struct rail_scheme_cell *cell_named(struct rail_schemes *schemes, enum rail_place place,
					   const struct rail_learned *in)
{
	for (enum rail_load load = 0; load < RAIL_LOADS; load++)
		for (unsigned c = 0; c < SCHEME_CLASSES; c++)
			if (strcmp(in->load, loads[load]) == 0 && class_bytes(c) == in->bytes)
				return &schemes->cell[rail_load_at(place, load)][c];
	return NULL;
}

static bool scheme_give(struct rail_ctx *ctx, enum rail_place place, const struct rail_learned *in, bool over)
{
	struct rail_scheme_cell *cell = cell_named(&ctx->schemes, place, in);
	const int scheme = scheme_named(in->scheme[in->chosen].name);
	uint32_t cost_ns[RAIL_SCHEMES] = { 0 };

	for (unsigned i = 0; i < in->schemes; i++) {
		int s = scheme_named(in->scheme[i].name);

		if (s < 0)
			return false;
		cost_ns[s] = in->scheme[i].cost_ns;
	}
	return cell && ((cell->given && !over) || rail_scheme_give(cell, scheme, cost_ns));
}

const struct rail_learner rail_scheme_learner = {
	.table = "receive",
	.cells = RAIL_LOADS * SCHEME_CLASSES,
	.get = scheme_get,
	.give = scheme_give,
};
