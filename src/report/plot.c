/*
 * plot.c - the figure of one result file, drawn by gnuplot.
 *
 * DIR/NAME.dat and DIR/NAME.gp are kept with the pictures, so that a user can edit the script.
 * Text from the file goes into the script in single quotes only, in which gnuplot expands nothing.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/err.h"
#include "report/experiment.h"
#include "report/axis.h"
#include "util/units.h"

struct plot {
	const struct report_file *file;
	const char *dir;
	char name[128];
	int way_count;
	double top;		/* largest value of the ways that share the fabric */
	double largest;		/* largest value of all */
	struct report_axis axis;
	bool has_axis;		/* false: x is the message size */
	double x_min, x_max;	/* range of values above 0 */
	bool x_zero;		/* a value is 0 or negative */
	int quoted[REPORT_WAYS_MAX];	/* drawn values of a paper, by way */
};

/*
 * Okabe and Ito's colours: all readers can distinguish them, in grey by the symbols.  Small filled
 * symbols lie on large open ones, so that equal curves are both seen.
 */
static const struct { const char *colour; int symbol; double size; } styles[] = {
	{ "#000000", 3, 0.9 }, { "#d55e00", 5, 0.8 }, { "#0072b2", 6, 1.5 }, { "#009e73", 9, 0.8 },
	{ "#cc79a7", 4, 1.4 }, { "#e69f00", 11, 0.8 }, { "#56b4e9", 12, 1.4 },
};
enum { STYLE_COUNT = sizeof(styles) / sizeof(styles[0]), CAPTION_COLUMNS = 108 };
#define SCALE_ROOM 1.12	/* the axis ends this far above the largest value */

static const char *way_name(const struct plot *p, int way)
{
	return json_string_value(json_array_get(json_object_get(p->file->run, "ways"),
						(size_t)way));
}

/*
 * Does the way run on another fabric than the others?  Such a way is drawn in grey, in the
 * background.
 */
static bool way_foreign(const struct plot *p, int way)
{
	const json_t *foreign = json_object_get(p->file->run, "foreign_ways"), *name;
	size_t i;

	json_array_foreach(foreign, i, name)
		if (json_is_string(name) && !strcmp(json_string_value(name), way_name(p, way)))
			return true;
	return false;
}

/* ---- Values of a paper ------------------------------------------------------------ */

static const json_t *quoted_of(const struct plot *p)
{
	return json_object_get(json_object_get(p->file->run, "experiment"), "quoted_from_paper");
}

/* Is the i-th value one of this way, in a unit of the figure? */
static bool point_of_way(const struct plot *p, size_t i, int way, struct experiment_point *point)
{
	return experiment_point(quoted_of(p), i, point) && point->value > 0 &&
	       !strcmp(point->way, way_name(p, way)) &&
	       experiment_scale(p->file->metric, point->unit) > 0;
}

static int plot_open(const struct plot *p, const char *suffix, FILE **out)
{
	char *path;
	int rc = 0;

	if (asprintf(&path, "%s/%s%s", p->dir, p->name, suffix) < 0)
		return -ENOMEM;
	*out = fopen(path, "we");
	if (!*out) {
		rc = -errno;
		rg_error("%s: cannot be written: %s", path, strerror(errno));
	}
	free(path);
	return rc;
}

static int plot_finish(const struct plot *p, FILE *out)
{
	bool failed = ferror(out);

	if (fclose(out) == 0 && !failed)
		return 0;
	rg_error("%s/%s: cannot be written: %s", p->dir, p->name, strerror(errno));
	return -EIO;
}

/* "dir/bw.jsonl" -> "bw", without characters that a shell or gnuplot interprets. */
static void plot_name(struct plot *p)
{
	const char *slash = strrchr(p->file->path, '/');
	const char *base = slash ? slash + 1 : p->file->path, *dot = strrchr(base, '.');
	size_t length = dot && dot > base ? (size_t)(dot - base) : strlen(base), i;

	for (i = 0; i < length && i + 1 < sizeof(p->name); i++)
		p->name[i] = isalnum((unsigned char)base[i]) || strchr("-_.", base[i]) ?
			base[i] : '_';
	p->name[i] = '\0';
}

static void plot_quote(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++)
		if (*text == '\'')
			fputs("''", out);
		else
			fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
	fputc('\'', out);
}

/* ---- Data --------------------------------------------------------------------- */

static double plot_value(const struct plot *p, int way, double x)
{
	const struct report_row *row = report_file_row(p->file, way_name(p, way), x);

	return row ? row->stat[STATS_MEAN] : NAN;
}

static void plot_data_line(struct plot *p, FILE *out, double x)
{
	char text[AXIS_TEXT];

	fprintf(out, "%s", axis_text(x, text, sizeof(text)));
	for (int w = 0; w < p->way_count; w++) {
		double value = plot_value(p, w, x);

		if (isnan(value)) {
			fprintf(out, " ?");
			continue;
		}
		fprintf(out, " %.9g", value);
		p->largest = fmax(p->largest, value);
		if (!way_foreign(p, w))
			p->top = fmax(p->top, value);
	}
	fputc('\n', out);
	if (x > 0 && (p->x_min == 0 || x < p->x_min))
		p->x_min = x;
	p->x_max = fmax(p->x_max, x);
	p->x_zero = p->x_zero || x <= 0;
}

/* Write the paper's values for this way's curve as a block. */
static void plot_quoted(struct plot *p, FILE *out, int way)
{
	const json_t *quoted = quoted_of(p);
	struct experiment_point point;
	char text[AXIS_TEXT];

	for (size_t i = 0; i < json_array_size(quoted); i++) {
		double value;

		if (!point_of_way(p, i, way, &point))
			continue;
		if (!p->quoted[way]++)
			fprintf(out, "\n\n# quoted from the paper, %s\n", way_name(p, way));
		value = point.value / experiment_scale(p->file->metric, point.unit);
		fprintf(out, "%s %.9g\n", axis_text(point.x, text, sizeof(text)), value);
		p->top = fmax(p->top, value);
	}
}

static int plot_data(struct plot *p)
{
	double last = NAN;
	FILE *out;
	int rc = plot_open(p, ".dat", &out);

	if (rc)
		return rc;
	fprintf(out, "# %s, then %s of", p->has_axis ? p->axis.title : "message size in bytes",
		report_metric_unit(p->file->metric));
	for (int w = 0; w < p->way_count; w++)
		fprintf(out, " %s", way_name(p, w));
	fputc('\n', out);
	report_each(row, p->file) {
		if (row->x != last)
			plot_data_line(p, out, row->x);
		last = row->x;
	}
	if (p->top == 0)
		p->top = p->largest;
	for (int w = 0; w < p->way_count; w++)
		plot_quoted(p, out, w);
	return plot_finish(p, out);
}

/* ---- Script --------------------------------------------------------------------- */

static void script_sizes(const struct plot *p, FILE *out)
{
	uint64_t first = (uint64_t)p->x_min, last = (uint64_t)p->x_max;
	int doublings = 0, i = 0, step;

	for (uint64_t s = first; s && s < last; s *= 2)
		doublings++;
	step = doublings > 14 ? 2 : 1;
	fprintf(out, "set logscale x 2\nset xrange [%.6g:%.6g]\nset xtics (",
		p->x_min / 1.3, p->x_max * 1.3);
	for (uint64_t s = first; s && s <= last && i <= doublings; s *= 2, i++) {
		char text[RG_UNIT_TEXT];

		if (i % step == 0)
			fprintf(out, "%s'%s' %llu", i ? ", " : "",
				rg_format_size(s, text, sizeof(text)), (unsigned long long)s);
	}
	fprintf(out, ") nomirror\nset xlabel 'Message size (bytes; K = 1024)'\n");
}

/* Any other coordinate is linear, unless its values double from row to row. */
static void script_axis(const struct plot *p, FILE *out)
{
	if (p->x_max >= 16 * p->x_min && !p->x_zero)
		fprintf(out, "set logscale x 2\nset xrange [%.6g:%.6g]\n", p->x_min / 1.3,
			p->x_max * 1.3);
	fprintf(out, "set xtics nomirror\nset xlabel ");
	plot_quote(out, p->axis.title);
	fprintf(out, " noenhanced\n");
}

static void script_values(const struct plot *p, FILE *out)
{
	static const char *const labels[REPORT_METRIC_COUNT] = {
		[REPORT_LATENCY] = "One-way latency (us)",
		[REPORT_BANDWIDTH] = "Bandwidth (MB/s, MB = 10^6 bytes)",
		[REPORT_RATE] = "Messages per second",
		[REPORT_MOPS] = "Mop/s",
	};

	const char *quantity = json_string_value(json_object_get(p->file->run, "quantity"));
	char label[96];

	snprintf(label, sizeof(label), "%s", labels[p->file->metric]);
	if (quantity)
		snprintf(label, sizeof(label), "%.60s (%s)", quantity,
			 report_metric_unit(p->file->metric));
	fprintf(out, "set ylabel ");
	plot_quote(out, label);
	fprintf(out, " noenhanced\nset ytics nomirror\n");
	if (p->file->metric == REPORT_LATENCY)
		fprintf(out, "set logscale y 10\n");
	else
		fprintf(out, "set yrange [0:%.6g]\n", p->top * SCALE_ROOM);
}

/* The end of a line of at most CAPTION_COLUMNS, at a blank if it has one. */
static size_t caption_break(const char *text)
{
	size_t length = strlen(text), at = CAPTION_COLUMNS;

	if (length <= CAPTION_COLUMNS)
		return length;
	while (at > CAPTION_COLUMNS / 2 && text[at] != ' ')
		at--;
	return at;
}

/* The caption is between title and graph; its height is known at its end. */
static void script_title(const struct plot *p, FILE *out)
{
	const json_t *caption = json_object_get(p->file->run, "caption"), *text;
	int lines = 0;
	size_t i;

	json_array_foreach(caption, i, text) {
		const char *at = json_is_string(text) ? json_string_value(text) : "";

		while (*at) {
			char line[CAPTION_COLUMNS + 1];
			size_t length = caption_break(at);

			snprintf(line, sizeof(line), "%.*s", (int)length, at);
			fprintf(out, "caption%d = ", ++lines);
			plot_quote(out, line);
			fputc('\n', out);
			at += length + strspn(at + length, " ");
		}
	}
	for (int n = 1; n <= lines; n++)
		fprintf(out, "set label %d caption%d at graph 0.5, graph 1 center offset 0, %.1f "
			"font ',10' noenhanced\n", n, n, 0.9 * (lines - n) + 0.8);
	fprintf(out, "set title ");
	plot_quote(out, json_string_value(json_object_get(p->file->run, "title")));
	fprintf(out, " font ',16' offset 0, %.1f noenhanced\nset tmargin %.1f\n",
		0.9 * lines - 0.3, 0.9 * lines + 2.2);
}

static void script_curve(const struct plot *p, FILE *out, int way)
{
	const __typeof__(styles[0]) *style = &styles[way % STYLE_COUNT];
	bool foreign = way_foreign(p, way);
	char label[256];

	snprintf(label, sizeof(label), "%s%s", way_name(p, way),
		 foreign ? " (shared memory, not this fabric)" : "");
	fprintf(out, "%s'%s.dat' index 0 using 1:%d ", way ? ", \\\n\t" : "plot ", p->name,
		way + 2);
	if (foreign)
		fprintf(out, "with lines lw 2 dt 2 lc rgb '#888888' title ");
	else
		fprintf(out, "with linespoints lw 1.6 ps %.1f pt %d lc rgb '%s' title ",
			style->size, style->symbol, style->colour);
	plot_quote(out, label);
	fprintf(out, " noenhanced");
}

/* The paper's values are large open circles in the colour of their curve. */
static void script_quoted(const struct plot *p, FILE *out, int way, int index)
{
	char label[256];

	snprintf(label, sizeof(label), "%s, in the paper", way_name(p, way));
	fprintf(out, ", \\\n\t'%s.dat' index %d using 1:2 with points lw 2 ps 2.4 pt 6 lc rgb '%s' "
		"title ", p->name, index, styles[way % STYLE_COUNT].colour);
	plot_quote(out, label);
	fprintf(out, " noenhanced");
}

static int plot_script(const struct plot *p)
{
	FILE *out;
	int rc = plot_open(p, ".gp", &out);

	if (rc)
		return rc;
	fprintf(out, "# Draws %s.svg and %s.png: gnuplot %s.gp\n", p->name, p->name, p->name);
	script_title(p, out);
	if (p->has_axis)
		script_axis(p, out);
	else
		script_sizes(p, out);
	script_values(p, out);
	fprintf(out, "set datafile missing '?'\nset grid lc rgb '#dddddd' lt 1\nset border 3\n"
		"set key %s Left reverse samplen 3 width -4 font ',11'\n"
		"set terminal svg size 800,520 font 'DejaVu Sans,13' background '#ffffff'\n"
		"set output '%s.svg'\n", p->file->metric == REPORT_BANDWIDTH ? "bottom right" :
		p->file->metric == REPORT_RATE ? "top right" : "top left",
		p->name);
	for (int w = 0; w < p->way_count; w++)
		script_curve(p, out, w);
	for (int w = 0, index = 1; w < p->way_count; w++)
		if (p->quoted[w])
			script_quoted(p, out, w, index++);
	fprintf(out, "\nif (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {\n"
		"\tset terminal pngcairo size 1600,1040 font 'DejaVu Sans,13' "
		"fontscale 2 linewidth 2 pointscale 2\n} else {\n"
		"\tset terminal png size 1600,1040\n}\n"
		"set output '%s.png'\nreplot\n", p->name);
	return plot_finish(p, out);
}

/* ---- Drawing ----------------------------------------------------------------------- */

static int plot_draw(const struct plot *p)
{
	char script[sizeof(p->name) + 8];
	pid_t child;
	int status;

	snprintf(script, sizeof(script), "%s.gp", p->name);
	fflush(NULL);
	child = fork();
	if (child < 0) {
		status = errno;
		rg_error("gnuplot cannot be started: %s", strerror(status));
		return -status;
	}
	if (child == 0) {
		if (chdir(p->dir) == 0)
			execlp(RG_GNUPLOT, RG_GNUPLOT, script, (char *)NULL);
		_exit(127);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		rg_error("%s not found: %s/%s is written but not drawn (Debian: apt-get install "
			 "gnuplot-nox)", RG_GNUPLOT, p->dir, script);
	else
		rg_error("gnuplot failed on %s/%s", p->dir, script);
	return -EIO;
}

int report_plot(const struct report_file *f, const char *dir)
{
	struct plot p = { .file = f, .dir = dir };
	int rc;

	p.has_axis = axis_load(&p.axis, f->run);
	p.way_count = (int)json_array_size(json_object_get(f->run, "ways"));
	/* These have a single size and no curve. */
	if (json_object_get(f->run, "matrix") || json_object_get(f->run, "app"))
		return 0;
	plot_name(&p);
	if (f->row_count == 0) {
		rg_error("%s: no rows, nothing to draw", f->path);
		return -ENODATA;
	}
	rc = plot_data(&p);
	if (!rc && p.x_max == 0) {
		rg_error("%s: only %s 0, nothing to draw", f->path,
			 p.has_axis ? "an x of" : "messages of size");
		rc = -ENODATA;
	}
	if (!rc)
		rc = plot_script(&p);
	return rc ? rc : plot_draw(&p);
}
