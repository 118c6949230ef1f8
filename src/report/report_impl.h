/* report_impl.h - the internal interface of src/report. */
#ifndef RG_REPORT_IMPL_H
#define RG_REPORT_IMPL_H

#include "report.h"

/* ---- record.c: one record, one line, one write ---- */

struct record_file {
	int fd;			/* -1: none */
	const char *path;	/* for error lines */
	int error;		/* the first -errno; nothing is written after it */
};

/*
 * Write `first` to a new file beside path and rename it to path.  If path is not a regular
 * file (a pipe, /dev/stdout), it is opened directly.  0 or -errno after an error line.
 */
int record_open(struct record_file *f, const char *path, const json_t *first);
int record_write(struct record_file *f, const json_t *record);
int record_close(struct record_file *f);

/* {"schema": 1, "type": type} */
json_t *record_new(const char *type);

/* ---- text.c: the table as text ---- */

struct text_table {
	FILE *out;			/* NULL: none */
	struct report_table table;
	bool head_printed, cut_seen;
	int filled;			/* columns of `row` received */
	struct report_row row[REPORT_WAYS_MAX];
};

void text_open(struct text_table *t, const struct report_table *table);
void text_row(struct text_table *t, const struct report_row *row);
void text_close(struct text_table *t);

/* ---- matrix.c: the same for rows that belong to two nodes ---- */

struct matrix {
	const struct report_table *table;
	const struct report_matrix *matrix;
	double *cell;		/* by way, from, to; NaN: none */
	unsigned char *slow;	/* by node, of the current way */
	uint64_t bytes;
	int checked, failed, cut;
};

/* table must stay valid until matrix_close, which prints once, and frees. */
int matrix_open(struct matrix *m, const struct report_table *table);
void matrix_row(struct matrix *m, const struct report_row *row);
void matrix_close(struct matrix *m);
void matrix_free(struct matrix *m);

/* Check records.  Returns NULL or the error; a run without a matrix is valid. */
const char *matrix_check(const json_t *run);
const char *matrix_row_check(const json_t *run, const json_t *row);
/* Strings still belong to the record.  0 or -ENOMEM after an error line. */
int matrix_load(struct report_matrix *out, const json_t *run);
void matrix_unload(struct report_matrix *m);

/* ---- app.c: the same for programs that are timed as a whole ---- */

struct app_table {
	FILE *out;
	json_t *problem;	/* of the run record; NULL: not such a program, no effect */
	json_t *rows;		/* received so far */
};

void app_table_open(struct app_table *t, FILE *out, const json_t *run);
void app_table_row(struct app_table *t, json_t *row);		/* a record */
void app_table_close(struct app_table *t);			/* further calls have no effect */

/* Check records.  Returns NULL or the error; a run without an app is valid. */
const char *app_run_check(const json_t *run);
const char *app_row_check(const json_t *run, const json_t *row);

/* ---- axis.c: what rows are told apart by, where it is not the message size ---- */

json_t *axis_record(const struct report_axis *axis);
json_t *axis_row_record(const struct report_axis *axis, double value);
/* Check records.  Returns NULL or the error; a run without an axis is valid. */
const char *axis_check(const json_t *run);
const char *axis_row_check(const json_t *run, const json_t *row);
/* True, with strings that belong to the record: the run has an axis. */
bool axis_load(struct report_axis *out, const json_t *run);
/* "64", "0.25": in as few digits as tell it. */
char *axis_text(double value, char *buf, size_t size);
enum { AXIS_TEXT = 32 };

/* ---- print.c ---- */
void report_print_notes(FILE *text, const json_t *run);

#endif
