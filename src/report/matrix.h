/* matrix.h - the text view of rows that belong to two nodes. */
#ifndef REPORT_MATRIX_H
#define REPORT_MATRIX_H

#include "report/report.h"

struct matrix {
	const struct report_table *table;
	const struct report_matrix *matrix;
	double *cell;		/* values by way, from, to; NaN: none */
	unsigned char *slow;	/* node is slow on the current way */
	uint64_t bytes;
	int checked, failed, cut;
};

/* Open a matrix.  table must stay valid until matrix_close, which prints once, and frees. */
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

#endif
