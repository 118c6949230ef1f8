/*
 * plot_files.h - the files of a figure: made in a directory of their own, checked, and renamed.
 *
 * A figure that cannot be drawn leaves the earlier files as they are.
 */
#ifndef REPORT_PLOT_FILES_H
#define REPORT_PLOT_FILES_H

#include <stdio.h>

struct plot_files {
	const char *dir, *name;		/* DIR/NAME.dat and so on */
	char *temporary;		/* a directory in `dir` */
};

/* Each returns 0, or -errno after one error line. */
int plot_files_open(struct plot_files *f, const char *dir, const char *name);
int plot_files_create(const struct plot_files *f, const char *suffix, FILE **out);
int plot_files_finish(const struct plot_files *f, const char *suffix, FILE *out);
/*
 * Run gnuplot on NAME.gp and check that NAME.svg and NAME.png are whole.  Without gnuplot, script and
 * data are published before the error.
 */
int plot_files_draw(const struct plot_files *f);
/* Replace the files of an earlier figure. */
int plot_files_publish(const struct plot_files *f);
/* Remove what is left in the temporary directory. */
void plot_files_close(struct plot_files *f);

/* "TEMPORARY/NAME.svg", or NULL; free() it. */
char *plot_files_path(const struct plot_files *f, const char *suffix);

#endif
