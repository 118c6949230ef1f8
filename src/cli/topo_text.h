/* topo_text.h - railgauge topo as tables. */
#ifndef CLI_TOPO_TEXT_H
#define CLI_TOPO_TEXT_H

#include <stdio.h>

#include "cli/topo_report.h"

/* 0 or -EIO after one line. */
int topo_print_text(const struct topo_report *r, FILE *out);

#endif
