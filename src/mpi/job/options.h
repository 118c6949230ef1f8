/* options.h - the layer's options: their values and their table. */
#ifndef RAILMPI_OPTIONS_H
#define RAILMPI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/rail.h"
#include "util/opt.h"

/* Values of the layer's option table.  `rail` is first: librail's rows have offsets into it. */
struct world_settings {
	struct rail_settings rail;
	uint64_t nodes;
	int over;		/* enum railmpi_way of MPI_COMM_WORLD, or WORLD_OVER_AUTO */
	const char *coll;	/* algorithms of collectives, see coll.h; NULL: by their table */
	const char *trace;	/* a file for each rank, see trace.h; NULL: none */
	int dump_signal;	/* see dump.h; 0: none */
	uint64_t start_limit_ns;	/* see handshake.c */
	bool ledger;		/* printed at the end; see call_count.h */
	bool quiet;		/* no lines at the start and at the end; see tell.h */
};
enum { WORLD_OVER_AUTO = -1 };

extern struct world_settings world_settings;
extern struct opt_table world_table;

/* Read the environment once, unless a program has set the options itself.  0 or -EINVAL. */
int world_options(void);

struct rail_way world_way(const struct world_settings *s, int way);

#endif
