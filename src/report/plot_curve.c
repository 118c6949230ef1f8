/* plot_curve.c - a figure of curves: coordinate and value, by way, with intervals and marks. */
#include <math.h>
#include <string.h>

#include "report/experiment.h"
#include "report/plot_kind.h"
#include "report/plot_style.h"
#include "report/plot_text.h"
#include "report/plot_ticks.h"
#include "util/text.h"

/* Large symbols are drawn first, so that equal curves are both seen. */
#define SYMBOL_LARGE 1.4
#define SYMBOL_SMALL 0.9
#define BAND 0.22	/* a band covers this much of what is below it; less where many overlap */

struct range { double least, most; };

/* ---- Values of a paper ------------------------------------------------------------ */

static const json_t *quoted_of(const struct plot *p)
{
	return json_object_get(json_object_get(p->file->run, "experiment"), "quoted_from_paper");
}

/* Is the i-th value one of this way, in a unit of the figure?  *value in that unit. */
static bool quoted_value(const struct plot *p, size_t i, int way, double *x, double *value)
{
	struct experiment_point point;

	if (!experiment_point(quoted_of(p), i, &point) || point.value <= 0 ||
	    strcmp(point.way, p->way[way]) ||
	    experiment_scale(p->file->metric, point.unit) <= 0)
		return false;
	*x = point.x;
	*value = point.value / experiment_scale(p->file->metric, point.unit);
	return true;
}

static int quoted_count(const struct plot *p, int way)
{
	double x, value;
	int count = 0;

	for (size_t i = 0; i < json_array_size(quoted_of(p)); i++)
		count += quoted_value(p, i, way, &x, &value);
	return count;
}

static void quoted_data(const struct plot *p, FILE *out, int way)
{
	char text[AXIS_TEXT];
	double x, value;

	fprintf(out, "\n\n# quoted from the paper, ");
	plot_comment(out, p->way[way]);
	for (size_t i = 0; i < json_array_size(quoted_of(p)); i++)
		if (quoted_value(p, i, way, &x, &value))
			fprintf(out, "%s %.9g\n",
				axis_text(plot_ticks_place(p, x), text, sizeof(text)), value);
}

/* ---- Data --------------------------------------------------------------------- */

/* A value that a logarithmic axis cannot show is missing. */
static void data_number(const struct plot *p, FILE *out, double value)
{
	if (!isfinite(value) || (p->file->metric == REPORT_LATENCY && value <= 0))
		fprintf(out, " ?");
	else
		fprintf(out, " %.9g", value);
}

static void data_row(const struct plot *p, FILE *out, const struct plot_row *row)
{
	char text[AXIS_TEXT];

	fprintf(out, "%s %.9g", axis_text(row->x, text, sizeof(text)), plot_ticks_place(p, row->x));
	data_number(p, out, row->value);
	data_number(p, out, row->low);
	data_number(p, out, row->high);
	fprintf(out, " %d\n", (int)row->mark);
}

static void curve_data(const struct plot *p, FILE *out)
{
	char quantity[PLOT_TEXT];

	fprintf(out, "# x, its place in the figure, %s, ci_low, ci_high, mark (0 good, 1 doubtful, 2 failed "
		"validation)\n# x: ", plot_statistic(p));
	plot_comment(out, p->has_axis ? p->axis.title : "message size in bytes");
	fprintf(out, "# %s: ", plot_statistic(p));
	plot_comment(out, plot_quantity(p, quantity, sizeof(quantity)));
	for (int w = 0; w < p->way_count; w++) {
		bool apart = false, empty = true;

		fprintf(out, "%s# way ", w ? "\n\n" : "");
		plot_comment(out, p->way[w]);
		for (size_t i = 0; i < p->row_count; i++) {
			if (p->row[i].way != w)
				continue;
			/* A blank line interrupts the curve. */
			if (apart && !plot_ticks_apart(p, p->row[i].x))
				fputc('\n', out);
			apart = plot_ticks_apart(p, p->row[i].x);
			empty = false;
			data_row(p, out, &p->row[i]);
		}
		/* gnuplot counts no block without a line. */
		if (empty)
			fprintf(out, "NaN NaN ? ? ? 0\n");
	}
	for (int w = 0; w < p->way_count; w++)
		if (quoted_count(p, w))
			quoted_data(p, out, w);
}

/* ---- Axes ------------------------------------------------------------------------- */

static void range_add(struct range *r, double value)
{
	if (!isfinite(value) || value <= 0)
		return;
	r->least = fmin(r->least, value);
	r->most = fmax(r->most, value);
}

/* A foreign way, such as shared memory, would squeeze the curves of a linear axis. */
static struct range values_of(const struct plot *p, bool foreign)
{
	struct range r = { INFINITY, 0 };
	double x, value;

	for (size_t i = 0; i < p->row_count; i++) {
		const struct plot_row *row = &p->row[i];

		if (!foreign && plot_way_foreign(p, row->way))
			continue;
		range_add(&r, row->value);
		range_add(&r, row->low);
		range_add(&r, row->high);
	}
	for (int w = 0; w < p->way_count; w++)
		for (size_t i = 0; i < json_array_size(quoted_of(p)); i++)
			if (quoted_value(p, i, w, &x, &value))
				range_add(&r, value);
	return r;
}

static struct range range_shown(const struct plot *p)
{
	struct range r = values_of(p, p->file->metric == REPORT_LATENCY);

	return r.most > 0 ? r : values_of(p, true);
}

static void curve_axes(const struct plot *p, FILE *out)
{
	struct range r = range_shown(p);

	plot_ticks_x(p, out);
	plot_ticks_y(p, out, r.least, r.most);
	/* Below the graph the legend covers no data. */
	fprintf(out, "set key below center horizontal Left reverse samplen 2.5 font ',11'\n");
}

/* ---- Curves ------------------------------------------------------------------------- */

/* Values of the way above the axis, whose curve leaves the graph. */
static double beyond(const struct plot *p, int way)
{
	double most = range_shown(p).most * PLOT_TICKS_ABOVE, reached = 0;

	for (size_t i = 0; i < p->row_count; i++)
		if (p->row[i].way == way && p->row[i].value > most)
			reached = fmax(reached, p->row[i].value);
	return reached;
}

static void curve_title(const struct plot *p, FILE *out, int way)
{
	char label[PLOT_TEXT], most[PLOT_NUMBER];
	double reached = beyond(p, way);

	snprintf(label, sizeof(label), "%.80s%s", p->way[way],
		 plot_way_foreign(p, way) ? reached > 0 ? " (other fabric, " : " (other fabric)" :
		 reached > 0 ? " (" : "");
	if (reached > 0)
		rg_text_add(label, sizeof(label), "up to %s)", plot_number(reached, most, sizeof(most)));
	plot_quote(out, label);
	fprintf(out, " noenhanced");
}

static void draw_band(const struct plot *p, FILE *out, int way)
{
	const char *colour = plot_style_of(p->way, way).colour;

	fprintf(out, "'%s.dat' index %d using 2:4:5 with filledcurves fc rgb '%s' fs transparent "
		"solid %.2f noborder notitle, \\\n\t", p->name, way, colour,
		BAND * fmin(1, 4.0 / p->way_count));
	/* A point without neighbours has no band. */
	fprintf(out, "'' index %d using 2:3:4:5 with yerrorbars pt 0 lw 0.7 lc rgb '%s' notitle, \\\n\t",
		way, colour);
}

static void draw_points(const struct plot *p, FILE *out, int way, enum plot_mark mark)
{
	struct plot_style style = plot_style_of(p->way, way);
	double size = SYMBOL_LARGE - (SYMBOL_LARGE - SYMBOL_SMALL) * way / fmax(1, p->way_count - 1);

	/* White hides the line in a hollow symbol. */
	if (mark != PLOT_GOOD)
		fprintf(out, ", \\\n\t'%s.dat' index %d using ($6 == %d ? $2 : NaN):3 with points pt %d "
			"ps %.2f lc rgb '#ffffff' notitle", p->name, way, (int)mark, style.filled, size);
	fprintf(out, ", \\\n\t'%s.dat' index %d using ($6 == %d ? $2 : NaN):3 with points pt %d "
		"ps %.2f lc rgb '%s' notitle", p->name, way, (int)mark,
		mark == PLOT_GOOD ? style.filled : style.hollow, size, style.colour);
	if (mark == PLOT_FAILED)
		fprintf(out, ", \\\n\t'' index %d using ($6 == %d ? $2 : NaN):3 with points pt 2 "
			"ps 1.8 lw 1.5 lc rgb '%s' notitle", way, (int)mark, style.colour);
}

static void draw_curve(const struct plot *p, FILE *out, int way)
{
	struct plot_style style = plot_style_of(p->way, way);
	int dash = plot_way_foreign(p, way) ? 2 : style.dash;

	if (p->has_interval)
		draw_band(p, out, way);
	fprintf(out, "'%s.dat' index %d using 2:3 with lines lw 1.6 dt %d lc rgb '%s' notitle, \\\n\t"
		"NaN with linespoints lw 1.6 dt %d pt %d ps 1 lc rgb '%s' title ", p->name, way, dash,
		style.colour, dash, style.filled, style.colour);
	curve_title(p, out, way);
}

/* The paper's values are large open circles in the colour of their curve. */
static void draw_quoted(const struct plot *p, FILE *out, int way, int index)
{
	char label[PLOT_TEXT];

	snprintf(label, sizeof(label), "%.80s, in the paper", p->way[way]);
	fprintf(out, ", \\\n\t'%s.dat' index %d using 1:2 with points lw 2 ps 2.4 pt 6 lc rgb '%s' "
		"title ", p->name, index, plot_style_of(p->way, way).colour);
	plot_quote(out, label);
	fprintf(out, " noenhanced");
}

/* Entries of the legend that belong to no way. */
static void draw_legend(const struct plot *p, FILE *out)
{
	char doubts[PLOT_TEXT] = "hollow:";

	if (p->has_interval) {
		fprintf(out, ", \\\n\tNaN with boxes fc rgb '#555555' fs solid 0.22 noborder title ");
		plot_quote(out, p->over_launches ? "95 % interval, over launches" : "95 % interval, within the launch");
	}
	if (p->doubts) {
		rg_text_add(doubts, sizeof(doubts), "%s%s%s",
			    p->doubts & PLOT_CUT ? " cut short" : "",
			    p->doubts & PLOT_UNCONVERGED ? p->doubts & PLOT_CUT ?
			    ", not converged" : " not converged" : "",
			    p->doubts & PLOT_DISTURBED ? p->doubts & (PLOT_DISTURBED - 1) ?
			    ", disturbed" : " disturbed" : "");
		fprintf(out, ", \\\n\tNaN with points pt 6 lc rgb '#555555' title '%s'", doubts);
	}
	if (p->failed)
		fprintf(out, ", \\\n\tNaN with points pt 2 ps 1.4 lw 1.5 lc rgb '#555555' title "
			"'crossed: validation failed'");
}

static void curve_draw(const struct plot *p, FILE *out)
{
	fprintf(out, "plot ");
	for (int w = 0; w < p->way_count; w++) {
		fprintf(out, "%s", w ? ", \\\n\t" : "");
		draw_curve(p, out, w);
	}
	for (int w = 0; w < p->way_count; w++)
		for (int mark = PLOT_GOOD; mark <= PLOT_FAILED; mark++)
			draw_points(p, out, w, (enum plot_mark)mark);
	for (int w = 0, index = p->way_count; w < p->way_count; w++)
		if (quoted_count(p, w))
			draw_quoted(p, out, w, index++);
	draw_legend(p, out);
	fputc('\n', out);
}

struct plot_kind plot_curve_kind(const struct plot *p)
{
	(void)p;
	return (struct plot_kind){
		.width = 800, .height = 560, .data = curve_data, .axes = curve_axes,
		.draw = curve_draw,
	};
}
