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

/* A cell of a table. */
struct rail_cell_at {
	enum rail_place place;
	unsigned load, class;
};

struct rail_learner {
	const char *table;
	const char *const *load, *const *scheme;	/* names */
	unsigned loads, schemes, classes;
	uint64_t first_bytes;		/* of the first class; each next one has twice as many */
	bool open;			/* the last class is of any more */
	/* Has the process such choices?  NULL: each has. */
	bool (*is_used)(const struct rail_ctx *ctx);
	/* `why`, `chosen` and the schemes; the caller has set the rest. */
	void (*get)(const struct rail_ctx *ctx, const struct rail_cell_at *at, struct rail_learned *out);
	/* Take over a cell of a file, for good; costs by scheme.  False: the scheme is not possible there. */
	bool (*give)(struct rail_ctx *ctx, const struct rail_cell_at *at, unsigned scheme,
		     const uint32_t *cost_ns);
};

/*
 * Hand a cell to its table; a cell of place "host" is for each place that has none.  0, also for a table of
 * another library; -EINVAL: the table has no such cell or schemes.
 */
int rail_learner_give(struct rail_ctx *ctx, const struct rail_learned *cell);

#endif
