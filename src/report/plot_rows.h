/*
 * plot_rows.h - a figure that is being made: the rows of a file as values to draw, and facts that they
 * have in common.
 */
#ifndef REPORT_PLOT_ROWS_H
#define REPORT_PLOT_ROWS_H

#include "report/axis.h"
#include "report/report.h"

/* Marks of a point; the legend explains them. */
enum plot_mark {
	PLOT_GOOD,
	PLOT_DOUBTFUL,		/* hollow: cut, not converged or disturbed */
	PLOT_FAILED,		/* crossed: validation failed */
};

enum { PLOT_CUT = 1, PLOT_UNCONVERGED = 2, PLOT_DISTURBED = 4 };

struct plot_row {
	int way;
	double x;
	double value;		/* NaN: none */
	double low, high;	/* the interval of the value; NaN: none */
	unsigned doubts;	/* bits of PLOT_CUT and the like */
	enum plot_mark mark;
	int from, to;		/* nodes of a matrix */
	double total_s, talk_s;	/* of a program that is timed as a whole: means over the ranks */
};

struct plot {
	const struct report_file *file;
	char name[128];			/* of its files, without directory and suffix */
	const char *way[REPORT_WAYS_MAX];
	int way_count;
	struct plot_row *row;		/* in the order of the file */
	size_t row_count;
	bool mean;			/* values are means: the file has no medians */
	bool has_interval;
	bool over_launches;		/* intervals are over launches, not within one */
	unsigned doubts;		/* of all rows */
	bool failed;			/* a row failed its validation */
	struct report_axis axis;
	bool has_axis;			/* false: x is the message size */
	double x_min, x_max;		/* range of values above 0 */
	bool x_zero;			/* a value is 0 or negative */
	double value_max;		/* of all rows and their intervals */
};

/* Read the rows of a file.  0 or -errno after one error line; plot_unload frees. */
int plot_load(struct plot *p, const struct report_file *file);
void plot_unload(struct plot *p);

/* Does the way run on another fabric than the others? */
bool plot_way_foreign(const struct plot *p, int way);
/* "median", "mean" */
const char *plot_statistic(const struct plot *p);
/* The quantity with its unit: "Bandwidth (MB/s)". */
char *plot_quantity(const struct plot *p, char *buf, size_t size);
enum { PLOT_TEXT = 256 };

#endif
