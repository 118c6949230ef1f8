/* reproduce.h - railgauge reproduce: repeat experiments of papers. */
#ifndef CLI_REPRODUCE_H
#define CLI_REPRODUCE_H

#include "cli/cli.h"

int cli_reproduce(int argc, char **argv);

#endif
