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
#include <sys/types.h>

#include "report/citable.h"
#include "report/metric.h"
#include "stats/stats.h"

#define REPORT_SCHEMA 2	/* the schema that is written; 1 is read, too */

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
	bool sparse;			/* most cells are not measured: printed with `full` only */
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
	struct redact *redact;		/* placeholders in records (redact.h); NULL: none */
	/*
	 * The first kept_rows rows of a run of the same table that was ended; they come with the run
	 * record, in one step.
	 */
	const struct report_file *kept;	/* must outlive the report */
	size_t kept_rows;		/* 0: none */
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
 * A matrix is recorded as `matrix` (names, labels, slow); its rows have `from` and `to`.  The end
 * record of an acceptance has `acceptance`, which is printed as heat map and accusations.
 * An existing file is replaced in one step, after the run record has been written.
 * 0 or -errno after one error line; *out only on success.
 */
int report_open(const struct report_table *table, json_t *run, struct report **out);

/*
 * Is old the file of a job with this table and run record (merge.h), so that its rows may be kept?
 * Else *why names the difference.
 */
bool report_is_of(const struct report_file *old, const struct report_table *table, json_t *run,
		  const char **why);

/*
 * Rows of one size, or of one value of the axis, must come in way order; the text line is printed
 * with the last.
 * 0 or -errno after one error line (of the first failure only).
 */
int report_row(struct report *r, const struct report_row *row);

/* Print a '#' line, in the text view only, for facts that are unknown when `run` is written. */
void report_note(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Write the `end` record with `status`, the exit code of the program, the verdict (citable, why:
 * citable.h) and the members of extra (its reference is taken over; may be NULL).  Frees r.  0, or
 * the first -errno of all calls.
 */
int report_close(struct report *r, int status, json_t *extra);

/* A JSON string from any bytes: bytes that are not UTF-8 become '?'. */
json_t *report_string(const char *text);

/* Machine, software and launch: the provenance in every result file. */
json_t *report_provenance(int argc, char *const *argv);
/* Facts of this machine that are equal on machines of one kind; null: not known. */
json_t *report_machine(void);
/* [1, 5, 15 minutes], or null */
json_t *report_load_average(void);
/* Versions of ucx, libfabric and rdma_core, as loaded or installed; "not known". */
json_t *report_libraries(void);

/* ---- Reading --------------------------------------------------------------- */

struct report_file {
	char *path;
	int schema;			/* 1 to REPORT_SCHEMA */
	int launches;			/* 1; of merged files (merge.h) their number */
	json_t *run;			/* checked: has program, title, metric, ways */
	enum report_metric metric;
	/*
	 * Checked rows in the order of the file.  Each has its coordinate in x, the message size
	 * where the table has no axis; extra is NULL: report_file_record has further members.
	 */
	struct report_row *row;
	size_t row_count;
	json_t *end;			/* NULL: the job did not finish */
	struct citable citable;		/* of all records of the file */
	off_t *row_at;			/* private, by row: the place of its line */
	struct report_source *source;	/* private; stays open */
};

/* for each row of a file */
#define report_each(r, f) \
	for (const struct report_row *r = (f)->row; r < (f)->row + (f)->row_count; r++)

/*
 * Read a file.  0, or -EINVAL (damaged: no run record or an incomplete one, a newer schema, a line
 * in the middle that is no record, fewer or more rows than the end record counts) or another
 * -errno, after one error line that names file and line.  An incomplete last line is dropped with
 * a warning.  A missing end record causes a warning, too.
 */
int report_read(const char *path, struct report_file *out);

/*
 * The same without keeping rows: `each` gets every row in turn, with the run record in f->run and
 * the row's whole record; another value than 0 ends the reading and is returned.  *out has no row
 * array.
 */
typedef int report_row_fn(void *user, const struct report_file *f, const struct report_row *row,
			  const json_t *record);
int report_read_each(const char *path, report_row_fn *each, void *user, struct report_file *out);
/* The same of an open stream that can be sought; it is taken over, also on error. */
int report_read_stream(FILE *in, const char *name, report_row_fn *each, void *user,
		       struct report_file *out);
void report_file_free(struct report_file *f);

/* The first row of a way at a coordinate, or NULL.  A look-up, no search. */
const struct report_row *report_file_row(const struct report_file *f, const char *way, double x);
/* The record of a row of f, with all members, read again: json_decref it.  NULL: an error line. */
json_t *report_file_record(const struct report_file *f, const struct report_row *row);

/* Print the program's table again, from the records. */
int report_print(const struct report_file *f, FILE *text, bool full);

/*
 * Draw f into DIR/NAME.{dat,gp,svg,png}, with NAME from the file's own name: curves, a heat map of a
 * matrix, bars of a program that is timed as a whole.  0 or -errno after one error line; then the
 * files of an earlier figure are unchanged.  Without gnuplot: -EIO, with .dat and .gp in place.
 */
int report_plot(const struct report_file *f, const char *dir);
/* "DIR/NAME.svg" */
void report_plot_path(const struct report_file *f, const char *dir, const char *suffix, char *buf,
		      size_t size);

#endif
