/* acceptance.h - the text view of an acceptance: the member `acceptance` of the end record. */
#ifndef REPORT_ACCEPTANCE_H
#define REPORT_ACCEPTANCE_H

#include <jansson.h>
#include <stdio.h>

/* end: the end record; NULL, or one without an acceptance: nothing is printed. */
void acceptance_print_estimate(const json_t *end, FILE *out);
/* A line for each node: the rates of its ports in both directions, and their errors. */
void acceptance_print_map(const json_t *end, FILE *out);
/* Faults, and the nodes to drain: the last lines. */
void acceptance_print_faults(const json_t *end, FILE *out);

#endif
