/*
 * sheet.h - medians of one or more jobs as one table: a line per coordinate, a column per way of
 * each job.  Text, CSV (a line per row, all statistics) or LaTeX.
 */
#ifndef REPORT_SHEET_H
#define REPORT_SHEET_H

#include "report/report.h"

struct sheet_column {
	const struct report_file *file;
	const char *way;
	char label[96];
};

struct sheet {
	const struct report_file *const *job;	/* of one metric and one axis */
	int job_count;
	struct sheet_column *column;
	int column_count;
	double *x;			/* coordinates of all jobs, ascending */
	size_t x_count;
};

/* May both be columns of one table: the same metric, quantity and axis, and no matrix? */
bool sheet_fits(const struct report_file *a, const struct report_file *b);

/* Make a table; job and its files must outlive it.  0 or -ENOMEM after an error line. */
int sheet_make(const struct report_file *const *job, int count, struct sheet *out);
void sheet_free(struct sheet *s);

/* full: mean, extremes and counts as well. */
void sheet_text(const struct sheet *s, FILE *out, bool full);
void sheet_latex(const struct sheet *s, FILE *out);

/* CSV: the line of names, then the rows of a job. */
void sheet_csv_head(FILE *out);
void sheet_csv(const struct report_file *job, FILE *out);

#endif
