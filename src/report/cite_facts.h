/* cite_facts.h - facts of a run record, and the rows that are cited. */
#ifndef REPORT_CITE_FACTS_H
#define REPORT_CITE_FACTS_H

#include "report/report.h"

#define CITE_UNKNOWN "not recorded"

enum { CITE_TEXT = 1024, CITE_ROWS_MAX = 2 * REPORT_WAYS_MAX };

struct cite_facts {
	const char *program, *title;
	const char *version, *commit;
	bool dirty;			/* built from a tree with changes */
	char date[16];			/* "2026-11-27" */
	int year, month;		/* 0: not recorded */
	int ranks, hosts;		/* 0: not recorded */
	const char *placement;		/* "4 ranks on one host; 2 pairs at once"; NULL */
	char fabric[CITE_TEXT];		/* with its label, "- software, not hardware" */
	const char *mpi, *clock_source;
	bool oversubscribed;
};

/* Strings belong to the record. */
void cite_facts_load(struct cite_facts *c, const json_t *run);

struct cite_row {
	const struct report_row *row;
	json_t *record;
	double value, low, high;	/* NaN: none */
};

struct cite_rows {
	struct cite_row row[CITE_ROWS_MAX];
	int count;
	bool mean;			/* the file has no medians */
	double x;			/* the coordinate of all rows */
};

/* The rows of a size, by way; of a matrix the slowest and the fastest pair of each way. */
int cite_rows_load(struct cite_rows *c, const struct report_file *f, const char *size);
void cite_rows_unload(struct cite_rows *c);

/* Text of a record on one line: control characters become blanks. */
void cite_text(FILE *out, const char *text);

/* An option's value in the run record, or NULL; *given: it is no default. */
const char *cite_option(const json_t *run, const char *name, bool *given);

#endif
