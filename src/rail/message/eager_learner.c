/* eager_learner.c - a sender's choices as cells: loads, and classes of sizes. */
#include <stdio.h>
#include <string.h>

#include "rail/message/eager_choice.h"
#include "rail/message/eager_learner.h"
#include "rail/open/rail_ctx.h"

static const char *const names[EAGER_SCHEMES] = { [EAGER_OFFERED] = "offer", [EAGER_SENT] = "eager" };

static const char *const loads[EAGER_LOADS] = { [EAGER_ALONE] = "alone", [EAGER_IN_ROW] = "row" };

static uint64_t class_bytes(unsigned c)
{
	return EAGER_CHOICE_BYTES >> (EAGER_CLASSES - 1 - c);
}

static void eager_get(const struct rail_ctx *ctx, enum rail_place place, unsigned n,
		      struct rail_learned *out)
{
	const unsigned load = n / EAGER_CLASSES;
	const struct rail_eager_cell *cell =
		&ctx->eager_choice.cell[place * EAGER_LOADS + load][n % EAGER_CLASSES];

	snprintf(out->load, sizeof(out->load), "%s", loads[load]);
	out->bytes = class_bytes(n % EAGER_CLASSES);
	out->why = cell->given ? RAIL_LEARNED_GIVEN :
		   cell->settled ? RAIL_LEARNED_MEASURED : RAIL_LEARNED_ASSUMED;
	out->chosen = cell->settled ? cell->scheme : EAGER_OFFERED;
	out->schemes = EAGER_SCHEMES;
	for (int s = 0; s < EAGER_SCHEMES; s++) {
		snprintf(out->scheme[s].name, sizeof(out->scheme[0].name), "%s", names[s]);
		out->scheme[s].cost_ns = rail_eager_cost(cell, s);
		out->scheme[s].samples = cell->samples[s];
	}
}

static int scheme_named(const char *name)
{
	for (int s = 0; s < EAGER_SCHEMES; s++)
		if (strcmp(names[s], name) == 0)
			return s;
	return -1;
}

/* The cell of a load and a class at a place; NULL: no such cell. */
static struct rail_eager_cell *cell_named(struct rail_eager_choice *choice, enum rail_place place,
					  const struct rail_learned *in)
{
	for (int load = 0; load < EAGER_LOADS; load++)
		for (unsigned c = 0; c < EAGER_CLASSES; c++)
			if (strcmp(in->load, loads[load]) == 0 && class_bytes(c) == in->bytes)
				return &choice->cell[place * EAGER_LOADS + load][c];
	return NULL;
}

static bool eager_give(struct rail_ctx *ctx, enum rail_place place, const struct rail_learned *in, bool over)
{
	struct rail_eager_cell *cell = cell_named(&ctx->eager_choice, place, in);
	const int scheme = scheme_named(in->scheme[in->chosen].name);
	uint32_t cost_ns[EAGER_SCHEMES] = { 0 };

	for (unsigned i = 0; i < in->schemes; i++) {
		int s = scheme_named(in->scheme[i].name);

		if (s < 0)
			return false;
		cost_ns[s] = in->scheme[i].cost_ns;
	}
	if (cell && (over || !cell->given))
		rail_eager_give(&ctx->eager_choice, cell, scheme, cost_ns);
	return cell;
}

const struct rail_learner rail_eager_learner = {
	.table = "send",
	.cells = EAGER_LOADS * EAGER_CLASSES,
	.get = eager_get,
	.give = eager_give,
};
