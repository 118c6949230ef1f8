/* record.h - one record, one line, one write. */
#ifndef REPORT_RECORD_H
#define REPORT_RECORD_H

#include "report/report.h"

struct record_file {
	int fd;			/* -1: none */
	const char *path;	/* for error lines */
	int error;		/* the first -errno; nothing is written after it */
};

/*
 * Write `first` and the records of the array `more` (NULL: none) to a new file in the directory of
 * path and rename it to path.  If path is not a regular file (a pipe, /dev/stdout), it is opened
 * directly.  0 or -errno after an error line.
 */
int record_open(struct record_file *f, const char *path, const json_t *first, const json_t *more);
int record_write(struct record_file *f, const json_t *record);
int record_close(struct record_file *f);

/* A number as it is in a record: with RECORD_DIGITS digits. */
enum { RECORD_DIGITS = 9 };
double record_number(double value);
/* The same for all numbers of a record, in place: views of it and of its file agree to the last digit. */
void record_round(json_t *record);

/* {"schema": 2, "type": type} */
json_t *record_new(const char *type);

#endif
