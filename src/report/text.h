/* text.h - the table as text. */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include "report/report.h"

struct text_table {
	FILE *out;			/* NULL: none */
	struct report_table table;
	bool head_printed, cut_seen;
	int row_count, open_count;	/* rows printed; of these, rows that have not converged */
	int filled;			/* columns of `row` received */
	struct report_row row[REPORT_WAYS_MAX];
};

void text_open(struct text_table *t, const struct report_table *table);
void text_row(struct text_table *t, const struct report_row *row);
void text_close(struct text_table *t);

#endif
