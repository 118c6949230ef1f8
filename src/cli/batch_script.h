/* batch_script.h - a batch script for Slurm that runs a campaign. */
#ifndef CLI_BATCH_SCRIPT_H
#define CLI_BATCH_SCRIPT_H

#include <stdio.h>

#include "cli/cli.h"

struct batch_job {
	int argc;			/* the command line that asked for the script */
	char *const *argv;
	const char *railgauge;		/* path of this command */
	const char *launcher, *launcher_why;
	const char *out;		/* directory; a relative one begins where sbatch is called */
	const char *time, *partition, *account;		/* in Slurm's words; the last two may be NULL */
	const char *preset;
	const char *run_words;		/* further options of railgauge run, blanks between, or NULL */
	char *const *program;		/* with its arguments, then NULL; NULL: the preset's programs */
	unsigned nodes, ranks_per_node, repeats;
	unsigned launches;		/* 0: the preset's */
};

void batch_script_write(const struct batch_job *job, FILE *out);

#endif
