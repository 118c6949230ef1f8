/* topo_json.h - railgauge topo as JSON. */
#ifndef CLI_TOPO_JSON_H
#define CLI_TOPO_JSON_H

#include <jansson.h>

#include "cli/topo_report.h"

/* A new reference; NULL: no memory. */
json_t *topo_json(const struct topo_report *r);

#endif
