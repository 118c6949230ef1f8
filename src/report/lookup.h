/* lookup.h - rows of a file by way and coordinate: a table of hashes. */
#ifndef REPORT_LOOKUP_H
#define REPORT_LOOKUP_H

#include "report/report.h"

struct lookup {
	size_t *place;		/* index of a row + 1; 0: free */
	size_t mask;
};

/* The first of several rows with equal keys is kept.  0 or -ENOMEM. */
int lookup_build(struct lookup *l, const struct report_row *row, size_t count);
/* `way` is the pointer of the rows; NULL: no such row. */
const struct report_row *lookup_find(const struct lookup *l, const struct report_row *row,
				     const char *way, double x);
void lookup_free(struct lookup *l);

#endif
