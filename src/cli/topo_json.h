/* topo_json.h - railgauge topo as JSON. */
#ifndef CLI_TOPO_JSON_H
#define CLI_TOPO_JSON_H

#include <stdio.h>

#include "cli/topo_report.h"

/* 0 or -EIO after one line. */
int topo_print_json(const struct topo_report *r, FILE *out);

#endif
