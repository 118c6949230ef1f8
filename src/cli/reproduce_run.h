/* reproduce_run.h - see reproduce_run.c. */
#ifndef CLI_REPRODUCE_RUN_H
#define CLI_REPRODUCE_RUN_H

#include "cli/cli.h"

struct experiment_paper;

struct cli_reproduction {
	const char *launcher, *out;	/* out: directory of records and texts, which exists */
	uint64_t time_ns;		/* for all launches */
};

/* Run a paper's experiments and print their values with the paper's.  Returns an exit code. */
int cli_reproduction_run(const struct experiment_paper *p, const struct cli_reproduction *r);

#endif
