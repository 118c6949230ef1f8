/*
 * costs.h - learned choices as text: lines of ledgers, and files of costs for --costs.
 *
 * A file, as rg_tune and railgauge tune write it, with rules for --coll (mpi/coll/coll_file.h) in the
 * same file; '#' begins a comment:
 *
 *	costs 1 PROCESSOR			first: version, and the processor's name
 *	cell TABLE PLACE LOAD BYTES SCHEME NAME=COST...
 *	costs-end CELLS				last: the number of cells
 *
 *	cell receive host alone 16K read read=812 halves=1300
 *
 * TABLE, PLACE, LOAD: see learned.h; a cell of place "host" is for each place that has none.  Lines may
 * end with CR LF.
 * BYTES: messages up to this size, 0: any more.  COST: nanoseconds of a message, 0: not measured.
 * The costs of another processor are refused, and so is a file without its end.
 */
#ifndef RAIL_COSTS_H
#define RAIL_COSTS_H

#include <stddef.h>

#include "rail/learned.h"

struct rail_ctx;

/* Read a line of rail_learned_text (rail.h); text is changed.  0, or -EINVAL with why. */
int rail_cell_parse(char *text, struct rail_learned *cell, char *why, size_t why_size);

/* Called for each cell of a file's text; nonzero ends the parsing. */
typedef int rail_cell_fn(void *user, const struct rail_learned *cell);
/* text: of `bytes` and then NUL, changed.  0; -EINVAL with "line 3: why"; or what `each` returned. */
int rail_costs_parse(char *text, size_t bytes, const char *processor, rail_cell_fn *each, void *user,
		     char *why, size_t why_size);

/* Settle cells by that file.  0, or -errno after one error line. */
int rail_costs_apply(struct rail_ctx *ctx, const char *path);

#endif
