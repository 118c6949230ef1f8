/* topo.h - railgauge topo. */
#ifndef CLI_TOPO_H
#define CLI_TOPO_H

#include "cli/cli.h"

int cli_topo(int argc, char **argv);

#endif
