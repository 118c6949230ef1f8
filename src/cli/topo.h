/* topo.h - railgauge topo. */
#ifndef CLI_TOPO_H
#define CLI_TOPO_H

#include "cli/cli.h"
#include "cli/topo_report.h"

int cli_topo(int argc, char **argv);

/* PIX or farther between different ports, also of one adapter; X only on the diagonal. */
enum topo_path topo_rail_path(const struct topo_report *r, int a, int b);

#endif
