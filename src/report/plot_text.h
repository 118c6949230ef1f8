/* plot_text.h - text of a file in a script: quoted, and broken into lines. */
#ifndef REPORT_PLOT_TEXT_H
#define REPORT_PLOT_TEXT_H

#include "report/plot_rows.h"

/*
 * Text goes into a script in single quotes, in which gnuplot expands nothing.  Control characters
 * become blanks, bytes that are not UTF-8 become '?'.
 */
void plot_quote(FILE *out, const char *text);

/* Four digits or more, without an exponent where the value is large: "1.999", "15940". */
char *plot_number(double value, char *buf, size_t size);
enum { PLOT_NUMBER = 48 };

/* Text as the rest of a comment in a script or in data. */
void plot_comment(FILE *out, const char *text);

/*
 * The bytes of the first line, of at most `columns` columns, at a blank if it has one in its second
 * half.  A character has a column, a wide one two.
 */
size_t plot_line(const char *text, int columns);

/* Lines of at most `columns` columns as one expression of gnuplot: 'a'."\n".'b'. */
void plot_quote_lines(FILE *out, const char *text, int columns);

/*
 * Title and caption, above the graph.  `wide`: the canvas in units of a usual figure's width.
 * plot_head defines captions and `head`, their height in lines; plot_head_labels places them.
 */
void plot_head(const struct plot *p, FILE *out, double wide);
void plot_head_labels(const struct plot *p, FILE *out, double wide);
/* Pixels that they need above those of a short title and caption. */
int plot_head_more(const struct plot *p, double wide);

#endif
