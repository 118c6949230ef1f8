/*
 * learner.h - tables of learned choices (learned.h), of which --ledger, results and --costs know.
 *
 * To add a table: a row in learner.c, with two functions in a file of the table's own.
 */
#ifndef RAIL_LEARNER_H
#define RAIL_LEARNER_H

#include <stdbool.h>

#include "rail/learned.h"

struct rail_ctx;

struct rail_learner {
	const char *table;
	unsigned cells;			/* a place's */
	/* All but `table` and `place`, which the caller has set; the rest is 0. */
	void (*get)(const struct rail_ctx *ctx, enum rail_place place, unsigned cell,
		    struct rail_learned *out);
	/*
	 * Take over a cell of a file, for good; unless `over`, one that was given before stays.
	 * False: the table has no such cell or schemes.
	 */
	bool (*give)(struct rail_ctx *ctx, enum rail_place place, const struct rail_learned *cell,
		     bool over);
};

/*
 * Hand a cell to its table; one of place "host" is for each place that has none.  0, also for a table of another library; -EINVAL: the table has no such
 * cell.
 */
int rail_learner_give(struct rail_ctx *ctx, const struct rail_learned *cell);

#endif
