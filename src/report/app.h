/* app.h - the text view of programs that are timed as a whole. */
#ifndef REPORT_APP_H
#define REPORT_APP_H

#include "report/report.h"

struct app_table {
	FILE *out;
	json_t *problem;	/* member of the run record; NULL: another program, no effect */
	json_t *rows;		/* received so far */
};

void app_table_open(struct app_table *t, FILE *out, const json_t *run);
void app_table_row(struct app_table *t, json_t *row);		/* a record */
void app_table_close(struct app_table *t);			/* further calls have no effect */

/* Check records.  Returns NULL or the error; a run without an app is valid. */
const char *app_run_check(const json_t *run);
const char *app_row_check(const json_t *run, const json_t *row);

#endif
