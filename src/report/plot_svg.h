/* plot_svg.h - title and description of an SVG, for readers who do not see it. */
#ifndef REPORT_PLOT_SVG_H
#define REPORT_PLOT_SVG_H

#include "report/plot_rows.h"
#include "report/plot_files.h"

/* Add them to NAME.svg.  0 or -errno after one error line. */
int plot_svg_describe(const struct plot *p, const struct plot_files *files);

#endif
