/* sbatch.h - railgauge sbatch: a campaign as a batch job of Slurm's. */
#ifndef CLI_SBATCH_H
#define CLI_SBATCH_H

#include "cli/cli.h"

int cli_sbatch(int argc, char **argv);

#endif
