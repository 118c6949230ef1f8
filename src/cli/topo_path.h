/* topo_path.h - the path between two rails of a report. */
#ifndef CLI_TOPO_PATH_H
#define CLI_TOPO_PATH_H

#include "cli/topo_report.h"

/* PIX or farther between different ports, also of one adapter; X only on the diagonal. */
enum topo_path topo_rail_path(const struct topo_report *r, int a, int b);

#endif
