/* run.h - railgauge run: a campaign of launches. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "cli/cli.h"

int cli_run(int argc, char **argv);

#endif
