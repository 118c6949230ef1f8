/* tune.h - railgauge tune: rg_tune, by a launcher. */
#ifndef CLI_TUNE_H
#define CLI_TUNE_H

#include "cli/cli.h"

int cli_tune(int argc, char **argv);

#endif
