/* learned.h - schemes that a launch has learned, in a line, from its end record. */
#ifndef REPORT_LEARNED_H
#define REPORT_LEARNED_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

enum { LEARNED_TEXT = 1024 };

/*
 * Rank 0's of an end record, or NULL, as far as it is measured or given and fits:
 * "host receive alone read to 16K, halves to 2M; host send row eager to 64K; allreduce of 2 ranks over single
 * ring to 1M".  "": nothing was learned.
 */
void learned_text(const json_t *end, char *text, size_t size);

/* The line below a table, of a program and of `railgauge report` alike; launches: of how many the table is. */
void learned_line(const json_t *end, int launches, FILE *out);

#endif
