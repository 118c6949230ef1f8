/* batch_launcher.h - a launcher for the programs of this build, in a job of Slurm's. */
#ifndef CLI_BATCH_LAUNCHER_H
#define CLI_BATCH_LAUNCHER_H

#include <limits.h>

#include "cli/cli.h"

/* A command with {n} in the place of the number of ranks, and a line about the choice. */
struct batch_launcher { char command[PATH_MAX + 64], why[160]; };

/* "mpirun", "srun", NULL (the better of both here) or a command with {n}. */
void batch_launcher_find(const char *wanted, struct batch_launcher *out);

#endif
