/* eager_learner.c - a sender's choices as cells: loads, and classes of sizes. */
#include <stdio.h>

#include "rail/message/eager_choice.h"
#include "rail/message/eager_learner.h"
#include "rail/open/rail_ctx.h"

static const char *const names[EAGER_SCHEMES] = { [EAGER_OFFERED] = "offer", [EAGER_SENT] = "eager" };

static const char *const loads[EAGER_LOADS] = {
	[EAGER_ALONE] = "alone", [EAGER_IN_ROW] = "row",
	[EAGER_CROSSING] = "crossing",
	[EAGER_ROW_MIXED] = "row-mixed", [EAGER_CROSSING_MIXED] = "crossing-mixed",
};

static void eager_get(const struct rail_ctx *ctx, const struct rail_cell_at *at, struct rail_learned *out)
{
	const struct rail_eager_cell *cell =
		&ctx->eager_choice.cell[at->place * EAGER_LOADS + at->load][at->class];

	const uint32_t offered_ns = rail_eager_cost(cell, EAGER_OFFERED), sent_ns = rail_eager_cost(cell, EAGER_SENT);

	out->why = cell->given ? RAIL_LEARNED_GIVEN :
		   cell->settled ? RAIL_LEARNED_MEASURED :
		   offered_ns && sent_ns ? RAIL_LEARNED_RACING : RAIL_LEARNED_ASSUMED;
	out->chosen = cell->settled ? cell->scheme : sent_ns && sent_ns < offered_ns ? EAGER_SENT : EAGER_OFFERED;
	out->schemes = EAGER_SCHEMES;
	for (int s = 0; s < EAGER_SCHEMES; s++) {
		snprintf(out->scheme[s].name, sizeof(out->scheme[0].name), "%s", names[s]);
		out->scheme[s].cost_ns = rail_eager_cost(cell, s);
		out->scheme[s].samples = cell->samples[s];
	}
}

static bool eager_give(struct rail_ctx *ctx, const struct rail_cell_at *at, unsigned scheme,
		       const uint32_t *cost_ns)
{
	rail_eager_give(&ctx->eager_choice.cell[at->place * EAGER_LOADS + at->load][at->class], scheme,
			cost_ns);
	return true;
}

const struct rail_learner rail_eager_learner = {
	.table = "send",
	.load = loads, .scheme = names,
	.loads = EAGER_LOADS, .schemes = EAGER_SCHEMES, .classes = EAGER_CLASSES,
	.first_bytes = EAGER_CHOICE_BYTES >> (EAGER_CLASSES - 1),
	.get = eager_get,
	.give = eager_give,
};
