/* check.h - railgauge check. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "cli/cli.h"

int cli_check(int argc, char **argv);

#endif
