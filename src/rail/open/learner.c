/* learner.c - the tables of learned choices, as one list of cells. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rail/rail.h"
#include "rail/message/eager_learner.h"
#include "rail/message/scheme_learner.h"
#include "rail/open/learner.h"
#include "rail/open/rail_ctx.h"

static const struct rail_learner *const learners[] = {
	&rail_scheme_learner,
	&rail_eager_learner,
};

enum { LEARNERS = sizeof(learners) / sizeof(*learners) };

bool rail_learned(const struct rail_ctx *ctx, unsigned cell, struct rail_learned *out)
{
	for (int l = 0; l < LEARNERS; l++) {
		if (cell < learners[l]->cells) {
			memset(out, 0, sizeof(*out));
			snprintf(out->table, sizeof(out->table), "%s", learners[l]->table);
			learners[l]->get(ctx, cell, out);
			return true;
		}
		cell -= learners[l]->cells;
	}
	return false;
}

int rail_learner_give(struct rail_ctx *ctx, const struct rail_learned *cell)
{
	for (int l = 0; l < LEARNERS; l++)
		if (strcmp(learners[l]->table, cell->table) == 0)
			return learners[l]->give(ctx, cell) ? 0 : -EINVAL;
	return 0;
}
