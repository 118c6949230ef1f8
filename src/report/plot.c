/*
 * plot.c - the figure of one result file, drawn by gnuplot.
 *
 * DIR/NAME.dat and DIR/NAME.gp are kept with the pictures, so that a user can edit the script.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "report/plot_files.h"
#include "report/plot_kind.h"
#include "report/plot_svg.h"
#include "report/plot_text.h"

#define FONT "DejaVu Sans,13"
enum { USUAL_WIDTH = 800 };

/*
 * "dir/bw.jsonl" -> "bw", without characters that a shell or gnuplot interprets; of merged launches
 * "bw-launches", by the first.
 */
static void plot_name(const struct report_file *f, char *name, size_t size)
{
	static const char more[] = "-launches";
	const char *slash = strrchr(f->path, '/');
	const char *base = slash ? slash + 1 : f->path, *dot = strrchr(base, '.');
	size_t length = dot && dot > base ? (size_t)(dot - base) : strlen(base), i;

	for (i = 0; i < length && i + sizeof(more) < size; i++)
		name[i] = isalnum((unsigned char)base[i]) || strchr("-_.", base[i]) ?
			base[i] : '_';
	snprintf(name + i, size - i, "%s", f->launches > 1 ? more : "");
}

static int plot_data(const struct plot *p, const struct plot_kind *kind,
		     const struct plot_files *files)
{
	FILE *out;
	int rc = plot_files_create(files, ".dat", &out);

	if (rc)
		return rc;
	kind->data(p, out);
	return plot_files_finish(files, ".dat", out);
}

/* gnuplot may lack cairo; its own terminal for PNG has no sizes of fonts. */
static void script_pictures(const struct plot *p, const struct plot_kind *kind, FILE *out)
{
	fprintf(out, "do for [kind in 'svg png'] {\n"
		"\tif (kind eq 'svg') {\n"
		"\t\tset terminal svg size %d,%d font '" FONT "' background '#ffffff'\n"
		"\t} else { if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {\n"
		"\t\tset terminal pngcairo size %d,%d font '" FONT "' "
		"fontscale 1.7 linewidth 2 pointscale 2\n"
		"\t} else {\n\t\tset terminal png size %d,%d\n\t} }\n"
		"\tset output '%s.'.kind\n", kind->width, kind->height, 2 * kind->width,
		2 * kind->height, 2 * kind->width, 2 * kind->height, p->name);
	plot_head_labels(p, out, (double)kind->width / USUAL_WIDTH);
	kind->draw(p, out);
	fprintf(out, "\tunset output\n}\n");
}

static int plot_script(const struct plot *p, const struct plot_kind *kind,
		       const struct plot_files *files)
{
	FILE *out;
	int rc = plot_files_create(files, ".gp", &out);

	if (rc)
		return rc;
	fprintf(out, "# Draws %s.svg and %s.png: gnuplot %s.gp\n", p->name, p->name, p->name);
	plot_head(p, out, (double)kind->width / USUAL_WIDTH);
	fprintf(out, "set datafile missing '?'\nset grid lc rgb '#dddddd' lt 1\nset border 3\n"
		"set xtics nomirror\nset ytics nomirror\nset tmargin head\n");
	kind->axes(p, out);
	script_pictures(p, kind, out);
	return plot_files_finish(files, ".gp", out);
}

static struct plot_kind kind_of(const struct plot *p)
{
	if (json_object_get(p->file->run, "matrix"))
		return plot_matrix_kind(p);
	if (json_object_get(p->file->run, "app"))
		return plot_bars_kind(p);
	return plot_curve_kind(p);
}

static int plot_make(const struct plot *p, const char *dir)
{
	struct plot_kind kind = kind_of(p);
	struct plot_files files;
	int rc;

	kind.height += plot_head_more(p, (double)kind.width / USUAL_WIDTH);
	rc = plot_files_open(&files, dir, p->name);

	if (rc)
		return rc;
	rc = plot_data(p, &kind, &files);
	if (!rc)
		rc = plot_script(p, &kind, &files);
	if (!rc)
		rc = plot_files_draw(&files);
	if (!rc)
		rc = plot_svg_describe(p, &files);
	if (!rc)
		rc = plot_files_publish(&files);
	plot_files_close(&files);
	return rc;
}

int report_plot(const struct report_file *f, const char *dir)
{
	struct plot p = { .file = NULL };
	int rc = plot_load(&p, f);

	if (rc)
		return rc;
	plot_name(f, p.name, sizeof(p.name));
	if (p.value_max > 0) {
		rc = plot_make(&p, dir);
	} else {
		rg_error("%s: no rows with values, nothing to draw", f->path);
		rc = -ENODATA;
	}
	plot_unload(&p);
	return rc;
}

void report_plot_path(const struct report_file *f, const char *dir, const char *suffix, char *buf,
		      size_t size)
{
	char name[sizeof(((struct plot *)0)->name)];

	plot_name(f, name, sizeof(name));
	snprintf(buf, size, "%s/%s%s", dir, name, suffix);
}
