/* plot_kind.h - kinds of figures: each writes its data and the part of the script that draws them. */
#ifndef REPORT_PLOT_KIND_H
#define REPORT_PLOT_KIND_H

#include "report/plot_rows.h"

struct plot_kind {
	int width, height;	/* of the canvas, in SVG's pixels */
	/* Write NAME.dat: a block per way, then other blocks. */
	void (*data)(const struct plot *p, FILE *out);
	/* Write axes, scales and their ticks. */
	void (*axes)(const struct plot *p, FILE *out);
	/* Write the commands between `set output` and its end: executed once per picture. */
	void (*draw)(const struct plot *p, FILE *out);
};

/* Coordinate and value, a curve for each way. */
struct plot_kind plot_curve_kind(const struct plot *p);
/* Sender and receiver: a heat map for each way. */
struct plot_kind plot_matrix_kind(const struct plot *p);
/* A program that is timed as a whole: a bar for each way. */
struct plot_kind plot_bars_kind(const struct plot *p);

#endif
