/* check.h - checks of records that were read.  Each returns NULL or the error. */
#ifndef REPORT_CHECK_H
#define REPORT_CHECK_H

#include "report/report.h"

enum { CHECK_WHY = 160 };	/* bytes of `why`, at least */

/* Sets f->schema and f->metric.  The error is in `why`, with "damaged: " where it is damage. */
const char *check_run(const json_t *run, struct report_file *f, char *why, size_t why_size);
/* Sets *out; its strings belong to the run record. */
const char *check_row(const json_t *run, const json_t *record, struct report_row *out);
/* The error may be in `why`. */
const char *check_end(const json_t *end, size_t row_count, char *why, size_t why_size);

#endif
