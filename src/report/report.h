/*
 * report.h - one row, several views: text for people, JSON Lines for machines.
 *
 * Records: a `run` record first (provenance, options, fabric), one `row` per size and way,
 * an `end` record last.  Each is one line, written by one write(2), so that the file of a
 * killed job holds every finished row.
 */
#ifndef RG_REPORT_H
#define RG_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/metric.h"
#include "stats/stats.h"

#define REPORT_SCHEMA 1

/* ---- Writing ------------------------------------------------------------- */

enum { REPORT_WAYS_MAX = 16, REPORT_PERCENTILES_MAX = 8 };

/* A table whose rows belong to two nodes each: a sender and a receiver. */
enum { REPORT_MATRIX_MAX = 1024 };
struct report_matrix {
	const char *const *names;	/* names of nodes, for people */
	const char *const *labels;	/* names of ways, for people: "single:1 (mlx5_1:1)" */
	int count;			/* nodes, to REPORT_MATRIX_MAX */
	double slow;			/* fraction of a way's median; cells below are named */
	bool alike;			/* the ways should be equal: slow ones are named, too */
};

/* The coordinate of a table's rows. */
struct report_axis {
	const char *name;		/* "queue" */
	const char *unit;		/* "messages"; "": a plain number */
	const char *title;		/* title in a figure: "Queue length (messages)" */
};

enum report_layout {
	REPORT_LAYOUT_STANDARD,		/* mean, median and interval; medians of several ways */
	REPORT_LAYOUT_OSU,		/* the mean alone */
};

struct report_table {
	FILE *text;			/* gets the table; NULL: none */
	const char *json_path;		/* gets the records; NULL: none */
	const char *program;		/* "rg_bw" */
	const char *title;		/* "uni-directional bandwidth" */
	enum report_metric metric;
	const char *quantity;		/* name of a time that is no latency: "CPU time" */
	const char *const *ways;	/* in column order; must outlive the report */
	int way_count;			/* 1 to REPORT_WAYS_MAX */
	bool validate;			/* with a Pass/Fail column */
	bool full;			/* with all columns of STATISTICS (stats.h) */
	enum report_layout layout;
	const char *ci_of;		/* the origin of intervals; NULL: batches of one launch */
	const double *percentiles;	/* further percentiles, each in (0, 100) */
	int percentile_count;		/* 0 to REPORT_PERCENTILES_MAX */
	const struct report_axis *axis;	/* NULL: the message size; must outlive the report */
	/*
	 * Unless NULL: rows come in any order, and the matrix of their medians is printed at the
	 * end.
	 */
	const struct report_matrix *matrix;	/* must outlive the report */
};

/* The end of a row's measurement: by counts that were given, or by the rule of stats/stop.h. */
enum report_converged { REPORT_COUNTED, REPORT_CONVERGED, REPORT_NOT_CONVERGED };

struct report_row {
	const char *way;	/* "stripe" */
	uint64_t bytes;		/* message size */
	double x;		/* the coordinate, if the table has an axis */
	/*
	 * In the metric's unit; NaN where undefined.  Percentiles count from the good end:
	 * 99 % of the samples were at least as good as p99.
	 */
	double stat[STATS_ROWS];
	double percentile[REPORT_PERCENTILES_MAX];	/* in the table's order */
	int from, to;		/* nodes, where the table is a matrix */
	int valid;		/* -1 not checked, 0 Fail, 1 Pass */
	bool cut;		/* ended early by the time cap */
	enum report_converged converged;
	/* Latency of several pairs: the row is the median pair's.  Equal ranks: no such pair. */
	struct { int rank[2]; double median; } slowest;
	json_t *extra;		/* further members of the row or NULL; borrowed */
};

struct report;

/*
 * Open a report and write the run record: schema, type, program, title,
 * metric, unit, ways, then the members of `run` (its reference is taken over, also on
 * error).  Views use these members, all optional:
 *	notes		array of strings: '#' lines above the table
 *	experiment	the experiment of a paper that is repeated, with its quoted values
 *			(shown in `notes`)
 *	caption		array of strings: lines below the title of a figure
 *	foreign_ways	array of ways that do not run on the fabric of the others
 *	app		the program is timed as a whole: class, size, operation (strings),
 *			iterations, ranks (integers), operations (of all iterations).  Each way
 *			has one row, whose bytes are the size of the problem's data.  The row's
 *			member `app` has three arrays by rank: total_s, communication_s and
 *			sent_bytes, of the run with the median time
 * A table's quantity is recorded as `quantity`, its axis as `x` (name, unit, title); its rows have
 * `x` (name, value, unit) and, like all, bytes.  Without `x` the coordinate is the message size.
 * Members of a row in addition to its statistics: `converged` (true, false; null: counts were given),
 * `ci_of` (the values that the interval comes from: "batches" of the launch), `batches` (their
 * number), `slowest_pair` (ranks, median; latency of several pairs).
 * A matrix is recorded as `matrix` (names, labels, slow); its rows have `from` and `to`.
 * An existing file is replaced in one step, after the run record has been written.
 * 0 or -errno after one error line; *out only on success.
 */
int report_open(const struct report_table *table, json_t *run, struct report **out);

/*
 * Rows of one size, or of one value of the axis, must come in way order; the text line is printed
 * with the last.
 * 0 or -errno after one error line (of the first failure only).
 */
int report_row(struct report *r, const struct report_row *row);

/* Print a '#' line, in the text view only, for facts that are unknown when `run` is written. */
void report_note(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Write the `end` record with `status`, the exit code of the program, and the members of
 * extra (its reference is taken over; may be NULL).  Frees r.  0, or the first -errno of all
 * calls.
 */
int report_close(struct report *r, int status, json_t *extra);

/* A JSON string from any bytes: bytes that are not UTF-8 become '?'. */
json_t *report_string(const char *text);

/* Machine, software and launch: the provenance in every result file. */
json_t *report_provenance(int argc, char *const *argv);

/* ---- Reading --------------------------------------------------------------- */

struct report_file {
	char *path;
	json_t *run;			/* checked: has program, title, metric, ways */
	enum report_metric metric;
	json_t *rows;			/* array of checked row records */
	json_t *end;			/* NULL: the job did not finish */
};

/*
 * Read a file.  0, or -EINVAL (damaged: no run record or an incomplete one, another schema, a line
 * in the middle that is no record) or another -errno, after one error line that names file and
 * line.  An incomplete last line is dropped with a warning.  A missing end record causes a warning,
 * too.
 */
int report_read(const char *path, struct report_file *out);
void report_file_free(struct report_file *f);

/* The coordinate of a row: the value of its `x`, else its message size. */
double report_row_x(const json_t *row);
/* The row of a way at a coordinate, or NULL. */
json_t *report_file_row(const struct report_file *f, const char *way, double x);

/* Print the program's table again, from the records. */
int report_print(const struct report_file *f, FILE *text, bool full);

/*
 * Draw f into DIR/NAME.{dat,gp,svg,png}, with NAME from the file's own name.  Draws nothing
 * for a matrix or a program that is timed as a whole.  0 or -errno after one error line.
 * Needs gnuplot.
 */
int report_plot(const struct report_file *f, const char *dir);

#endif
