/* plot_ticks.c - axes of a figure: sizes by powers of two, values by 1, 2, 5. */
#include <math.h>

#include "report/plot_text.h"
#include "report/plot_ticks.h"
#include "util/units.h"

enum { LABEL_COLUMNS = 40, TICKS_MAX = 9 };
#define ROOM 1.3	/* a logarithmic axis ends this far from the data */
#define ZERO_STEP 4	/* 0 is drawn this far left of the smallest size */

/* A coordinate other than the size is linear, unless its values double from row to row. */
static bool is_log(const struct plot *p)
{
	return !p->has_axis || (p->x_max >= 16 * p->x_min && !p->x_zero);
}

bool plot_ticks_apart(const struct plot *p, double x)
{
	return is_log(p) && x <= 0;
}

double plot_ticks_place(const struct plot *p, double x)
{
	if (!plot_ticks_apart(p, x))
		return x;
	return (p->x_min > 0 ? p->x_min : 1) / ZERO_STEP;
}

static void size_tick(FILE *out, double size, const char **between)
{
	char text[RG_UNIT_TEXT];

	fprintf(out, "%s'%s' %.9g", *between, rg_format_size((uint64_t)size, text, sizeof(text)),
		size);
	*between = ", ";
}

/* Powers of 2, 4, 8, ...: at most TICKS_MAX.  Returns their number. */
static int size_powers(const struct plot *p, FILE *out, const char **between)
{
	int first = (int)ceil(log2(p->x_min)), last = (int)floor(log2(p->x_max)), step = 1;
	int ticks = 0;

	while ((last - first) / step >= TICKS_MAX)
		step++;
	/* Multiples of the step: 1, 8, 64. */
	for (int power = (first + step - 1) / step * step; power <= last; power += step, ticks++)
		if (out)
			size_tick(out, exp2(power), between);
	return ticks;
}

/* The sizes of rows, where they have no two powers of two between them. */
static void size_rows(const struct plot *p, FILE *out, const char **between)
{
	double last = 0;
	int ticks = 0;

	for (size_t i = 0; i < p->row_count && ticks < TICKS_MAX; i++) {
		if (p->row[i].x <= last)
			continue;
		size_tick(out, p->row[i].x, between);
		last = p->row[i].x;
		ticks++;
	}
}

static void sizes(const struct plot *p, FILE *out)
{
	const char *between = "";
	double zero = plot_ticks_place(p, 0);

	fprintf(out, "set logscale x 2\nset xrange [%.6g:%.6g]\nset xtics (",
		(p->x_zero ? zero : p->x_min) / ROOM, fmax(p->x_max, zero) * ROOM);
	if (p->x_zero) {
		fprintf(out, "'0' %.9g", zero);
		between = ", ";
	}
	if (p->x_max > 0 && size_powers(p, NULL, &between) >= 2)
		size_powers(p, out, &between);
	else
		size_rows(p, out, &between);
	/* The second line keeps the legend apart. */
	fprintf(out, ") nomirror\nset xlabel 'Message size (bytes; K = 1024%s)'.\"\\n \" noenhanced\n",
		p->file->metric == REPORT_BANDWIDTH ? ", MB = 10^6 bytes" : "");
	if (p->x_zero && p->x_max > 0)
		fprintf(out, "set label 1000 '//' at %.6g, graph 0 center front font ',11'\n"
			"set arrow 1000 from %.6g, graph 0 to %.6g, graph 1 nohead dt 3 lc rgb "
			"'#888888'\n", p->x_min / 2, p->x_min / 2, p->x_min / 2);
}

void plot_ticks_x(const struct plot *p, FILE *out)
{
	if (!p->has_axis) {
		sizes(p, out);
		return;
	}
	if (is_log(p))
		fprintf(out, "set logscale x 2\nset xrange [%.6g:%.6g]\n", p->x_min / ROOM,
			p->x_max * ROOM);
	else
		fprintf(out, "set xrange [%.6g:%.6g]\n", (p->x_zero ? 0 : p->x_min) - 0.03 * p->x_max,
			1.03 * p->x_max);
	fprintf(out, "set xtics nomirror\nset xlabel ");
	plot_quote(out, p->axis.title);
	fprintf(out, ".\"\\n \" noenhanced\n");
}

/* 1, 2, 5, 10 to the next below or above. */
static double step_beyond(double value, bool above)
{
	static const double steps[] = { 1, 2, 5, 10 };
	double decade = pow(10, floor(log10(value)));

	for (int i = 0; i < 4; i++)
		if (steps[i] * decade >= value * (above ? 1 : 1 + 1e-9))
			return above ? steps[i] * decade : steps[i - 1] * decade;
	return above ? 20 * decade : 5 * decade;
}

/* 1, 2, 5, 10; where the range is long, 1, 10, 100. */
static void decades(FILE *out, double least, double most)
{
	static const double steps[] = { 1, 2, 5 };
	double low = step_beyond(least / ROOM, false), high = step_beyond(most * ROOM, true);
	int first = (int)floor(log10(low)), last = (int)ceil(log10(high));
	int count = last - first > 4 ? 1 : 3;
	const char *between = "";

	fprintf(out, "set logscale y 10\nset yrange [%.6g:%.6g]\nset ytics (", low, high);
	for (int power = first; power <= last; power++)
		for (int i = 0; i < count; i++) {
			double value = steps[i] * pow(10, power);

			if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9))
				continue;
			fprintf(out, "%s'%.*f' %.9g", between, power < 0 ? -power : 0, value, value);
			between = ", ";
		}
	fprintf(out, ") nomirror\n");
}

/* 0, 500k, 1M, 1.5M */
static void large_numbers(FILE *out, double most)
{
	double step = step_beyond(most / TICKS_MAX, true);
	const char *between = "";

	fprintf(out, "set ytics (");
	for (int i = 0; i * step <= most; i++) {
		double value = i * step;

		fprintf(out, "%s'%g%s' %.9g", between, value / (value >= 1e9 ? 1e9 : value >= 1e6 ? 1e6 :
			value >= 1e3 ? 1e3 : 1), value >= 1e9 ? "G" : value >= 1e6 ? "M" :
			value >= 1e3 ? "k" : "", value);
		between = ", ";
	}
	fprintf(out, ") nomirror\n");
}

void plot_ticks_y(const struct plot *p, FILE *out, double least, double most)
{
	char label[PLOT_TEXT], text[PLOT_TEXT + 16];

	snprintf(text, sizeof(text), "%s, %s", plot_quantity(p, label, sizeof(label)),
		 plot_statistic(p));
	fprintf(out, "set ylabel ");
	plot_quote_lines(out, text, LABEL_COLUMNS);
	fprintf(out, " noenhanced\n");
	if (p->file->metric == REPORT_LATENCY) {
		decades(out, least, most);
		return;
	}
	fprintf(out, "set yrange [0:%.6g]\n", most * PLOT_TICKS_ABOVE);
	if (most >= 1e5)
		large_numbers(out, most * PLOT_TICKS_ABOVE);
	else
		fprintf(out, "set format y '%s'\n", most < 10 ? "%g" : "%.0f");
}
