/* plot_style.h - colour and symbol of a way, the same in every figure. */
#ifndef REPORT_PLOT_STYLE_H
#define REPORT_PLOT_STYLE_H

struct plot_style {
	const char *colour;	/* "#0072b2" */
	int hollow, filled;	/* gnuplot's symbols */
	int dash;		/* gnuplot's dash type */
};

/*
 * The style of ways[way].  The colour follows from the name alone.  A way whose colour an earlier way of the
 * figure has differs by symbol and dash.
 */
struct plot_style plot_style_of(const char *const ways[], int way);

#endif
