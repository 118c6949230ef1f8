/*
 * report.h - one row, several views: text for people, JSON Lines for machines.
 *
 * Records: a `run` record first (provenance, options, fabric), one `row` per
 * size and way, an `end` record last.  Each is one line, written by one
 * write(2) and flushed, so that a killed job keeps every finished row.
 */
#ifndef RG_REPORT_H
#define RG_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "stats.h"

#define REPORT_SCHEMA 1

enum report_metric {
	REPORT_LATENCY,		/* us, lower is better */
	REPORT_BANDWIDTH,	/* MB/s, MB = 10^6 */
	REPORT_RATE,		/* messages per second */
};

struct report_row {
	const char *way;	/* "stripe" */
	uint64_t bytes;		/* message size */
	double mean, median, min, max, p99, sd;	/* in the metric's unit; NaN where not defined */
	uint64_t n;
	int valid;		/* -1 not checked, 0 Fail, 1 Pass */
	bool cut;		/* ended early by the time cap */
	json_t *extra;		/* further members of the row or NULL; borrowed */
};

struct report;

/*
 * Open a report.  `text` gets the table (NULL: none), `json_path` the records
 * (NULL: none; the file is replaced only when the run record can be written).
 * ways: names in column order.  run: the provenance object, stolen.
 * 0 or -errno after one error line; *out only on success.
 */
int report_open(FILE *text, const char *json_path, const char *title,
		enum report_metric metric, const char *const *ways, int way_count,
		bool validate, bool full, json_t *run, struct report **out);

/* Rows of one size come in way order; the text line is printed with the last. */
int report_row(struct report *r, const struct report_row *row);

/* A '#' line in the text view only. */
void report_note(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The `end` record.  status: what the program will exit with.  Frees r. */
int report_close(struct report *r, int status, json_t *extra);

/* Machine, software and launch: what every result file says of where it was made. */
json_t *report_provenance(int argc, char **argv);

#endif
