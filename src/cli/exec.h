/* exec.h - railgauge exec: run an unmodified MPI program over rails. */
#ifndef CLI_EXEC_H
#define CLI_EXEC_H

#include "cli/cli.h"

int cli_exec(int argc, char **argv);

#endif
