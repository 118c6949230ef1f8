/* plot_ticks.h - axes of a figure: scale, range, and ticks that people read. */
#ifndef REPORT_PLOT_TICKS_H
#define REPORT_PLOT_TICKS_H

#include "report/plot_rows.h"

#define PLOT_TICKS_ABOVE 1.12	/* a linear axis ends this far above the largest value */

/* Where a coordinate is drawn: on a logarithmic axis 0 has a place of its own. */
double plot_ticks_place(const struct plot *p, double x);
/* Is the point apart from the curve: 0 on a logarithmic axis? */
bool plot_ticks_apart(const struct plot *p, double x);

void plot_ticks_x(const struct plot *p, FILE *out);
/* `least`, `most`: range of the values that the axis shows. */
void plot_ticks_y(const struct plot *p, FILE *out, double least, double most);

#endif
