/* print.h - see print.c. */
#ifndef REPORT_PRINT_H
#define REPORT_PRINT_H

#include "report/report.h"

void report_print_notes(FILE *text, const json_t *run);

#endif
