/* compare.h - railgauge compare: two campaigns, judged row by row. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "cli/cli.h"

int cli_compare(int argc, char **argv);

#endif
