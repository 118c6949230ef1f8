/* report.h - railgauge report: print and draw results again. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/cli.h"

int cli_report(int argc, char **argv);

#endif
