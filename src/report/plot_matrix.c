/*
 * plot_matrix.c - a heat map for each way: a line is a sender, a column a receiver.
 *
 * All maps share one scale of colours, from orange (low) to blue (high): readers who see no red or no
 * green distinguish them, and black text is readable on all.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/matrix.h"
#include "report/plot_kind.h"
#include "report/plot_text.h"

enum {
	PANELS_ACROSS = 2,
	NAMES_MAX = 16,			/* more nodes have numbers on the axes */
	VALUES_MAX = 10,		/* more nodes have no values in the cells */
	NAME_HEAD = 15, NAME_TAIL = 6,	/* characters of a long name; .dat has the names */
	SMOOTH_MAX = 64,		/* more nodes are an image without vectors */
};
#define LINE_PIXELS 16.5		/* of a line of text, at the usual font */

static const json_t *matrix_of(const struct plot *p)
{
	return json_object_get(p->file->run, "matrix");
}

static int node_count(const struct plot *p)
{
	return (int)json_array_size(json_object_get(matrix_of(p), "names"));
}

static const char *name_of(const struct plot *p, const char *list, int i)
{
	return json_string_value(json_array_get(json_object_get(matrix_of(p), list), (size_t)i));
}

static int panels_across(const struct plot *p)
{
	return p->way_count < PANELS_ACROSS ? p->way_count : PANELS_ACROSS;
}

static int panels_down(const struct plot *p)
{
	return (p->way_count + PANELS_ACROSS - 1) / PANELS_ACROSS;
}

static int canvas_height(const struct plot *p)
{
	return 120 + 430 * panels_down(p);
}

/* The median of the way's cells. */
static double way_median(const struct plot *p, int way)
{
	double *values = malloc((p->row_count + 1) * sizeof(values[0])), median = NAN;
	size_t count = 0;

	for (size_t i = 0; values && i < p->row_count; i++)
		if (p->row[i].way == way && isfinite(p->row[i].value))
			values[count++] = p->row[i].value;
	if (values)
		median = stats_median_of(values, count);
	free(values);
	return median;
}

/* ---- Data -------------------------------------------------------------------------- */

static void data_cell(const struct plot *p, FILE *out, int from, int to, const struct plot_row *row,
		      double slow_below)
{
	(void)p;
	fprintf(out, "%d %d", from, to);
	if (!row || !isfinite(row->value)) {
		fprintf(out, " NaN ? ? 0 0\n");
		return;
	}
	fprintf(out, " %.9g", row->value);
	if (isnan(row->low))
		fprintf(out, " ? ?");
	else
		fprintf(out, " %.9g %.9g", row->low, row->high);
	fprintf(out, " %d %d\n", (int)row->mark, row->value < slow_below);
}

/* The grid of a way, whose rows come in any order. */
static void data_way(const struct plot *p, FILE *out, int way, const struct plot_row **cell)
{
	int n = node_count(p);
	double below = json_number_value(json_object_get(matrix_of(p), "slow")) * way_median(p, way);

	memset(cell, 0, (size_t)n * (size_t)n * sizeof(cell[0]));
	for (size_t i = 0; i < p->row_count; i++)
		if (p->row[i].way == way)
			cell[p->row[i].from * n + p->row[i].to] = &p->row[i];
	fprintf(out, "%s# way ", way ? "\n\n" : "");
	plot_comment(out, name_of(p, "labels", way));
	for (int from = 0; from < n; from++) {
		if (from)
			fputc('\n', out);
		for (int to = 0; to < n; to++)
			data_cell(p, out, from, to, cell[from * n + to], below);
	}
}

static void matrix_data(const struct plot *p, FILE *out)
{
	size_t n = (size_t)node_count(p);
	const struct plot_row **cell = calloc(n * n, sizeof(cell[0]));
	char quantity[PLOT_TEXT];

	fprintf(out, "# sender, receiver, %s, ci_low, ci_high, mark (0 good, 1 doubtful, 2 failed "
		"validation), slow\n# %s: ", plot_statistic(p), plot_statistic(p));
	plot_comment(out, plot_quantity(p, quantity, sizeof(quantity)));
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "# node %zu: ", i);
		plot_comment(out, name_of(p, "names", (int)i));
	}
	for (int w = 0; cell && w < p->way_count; w++)
		data_way(p, out, w, cell);
	free(cell);
}

/* ---- Script -------------------------------------------------------------------------- */

static bool inside_character(char c)
{
	return (c & 0xc0) == 0x80;
}

/* "virtual node 12...r.org" */
static void name_quote(FILE *out, const char *name)
{
	size_t length = strlen(name), head = plot_line(name, NAME_HEAD), tail = length;
	char text[4 * (NAME_HEAD + NAME_TAIL) + 8];

	for (int i = 0; i < NAME_TAIL && tail > 0; i++)
		do
			tail--;
		while (tail > 0 && inside_character(name[tail]));
	if (head + 3 >= tail)
		plot_quote(out, name);
	else {
		snprintf(text, sizeof(text), "%.*s...%.*s", (int)head, name, 4 * NAME_TAIL,
			 name + tail);
		plot_quote(out, text);
	}
}

/* Names of nodes at the ticks of both axes. */
static void node_ticks(const struct plot *p, FILE *out, const char *axis, const char *how)
{
	int n = node_count(p), step = 1;

	while (n / step > NAMES_MAX)
		step *= 2;
	fprintf(out, "set %stics %s(", axis, how);
	for (int i = 0; i < n; i += step) {
		const char *name = name_of(p, "names", i);
		char number[16];

		snprintf(number, sizeof(number), "%d", i);
		fputs(i ? ", " : "", out);
		if (n > NAMES_MAX)
			plot_quote(out, number);
		else
			name_quote(out, name);
		fprintf(out, " %d", i);
	}
	fprintf(out, ") nomirror noenhanced font ',10'\n");
}

static void range_of(const struct plot *p, double *least, double *most)
{
	*least = INFINITY;
	*most = 0;
	for (size_t i = 0; i < p->row_count; i++)
		if (isfinite(p->row[i].value)) {
			*least = fmin(*least, p->row[i].value);
			*most = fmax(*most, p->row[i].value);
		}
	/* A scale of colours has two ends. */
	if (!(*least < *most)) {
		*least *= 0.99;
		*most *= 1.01;
	}
}

static void matrix_axes(const struct plot *p, FILE *out)
{
	int n = node_count(p);
	char quantity[PLOT_TEXT], label[PLOT_TEXT + 16];
	double least, most;

	range_of(p, &least, &most);
	fprintf(out, "set xrange [-0.5:%.1f]\nset yrange [%.1f:-0.5]\nset size ratio 1\nunset grid\n"
		"set border 15\nset tics scale 0\n",
		n - 0.5, n - 0.5);
	node_ticks(p, out, "x", n > NAMES_MAX ? "" : "rotate by 35 right ");
	node_ticks(p, out, "y", "");
	fprintf(out, "set palette defined (0 '#e69f00', 0.5 '#fff6d5', 1 '#56b4e9')\n"
		"set cbrange [%.9g:%.9g]\nset format cb '%s'\nset cblabel ", least, most,
		most < 1000 ? "%.4g" : "%.0f");
	snprintf(label, sizeof(label), "%s, %s", plot_quantity(p, quantity, sizeof(quantity)),
		 plot_statistic(p));
	plot_quote_lines(out, label, 40);
	fprintf(out, " offset 1.2, 0 noenhanced\nset key off\nroom = head * %.6g\n", LINE_PIXELS / canvas_height(p));
}

static void panel_marks(const struct plot *p, FILE *out, int way)
{
	fprintf(out, ", \\\n\t'' index %d using ($7 > 0 ? $2 : NaN):1:(0.47):(0.47) with boxxyerror "
		"lc rgb '#d55e00' lw %.1f fs empty border lc rgb '#d55e00'", way,
		node_count(p) > VALUES_MAX ? 1 : 2.5);
	fprintf(out, ", \\\n\t'' index %d using ($6 == 1 ? $2 + 0.36 : NaN):($1 - 0.36) with points "
		"pt 6 ps 0.9 lc rgb '#000000'", way);
	fprintf(out, ", \\\n\t'' index %d using ($6 == 2 ? $2 : NaN):1 with points pt 2 ps 3 lw 1.5 "
		"lc rgb '#000000'", way);
}

static void draw_panel(const struct plot *p, FILE *out, int way)
{
	int n = node_count(p);

	fprintf(out, "set title ");
	plot_quote_lines(out, name_of(p, "labels", way), 48);
	fprintf(out, " noenhanced\nplot '%s.dat' index %d using 2:1:3 with image%s", p->name, way,
		n <= SMOOTH_MAX ? " pixels" : "");
	if (n <= VALUES_MAX)
		fprintf(out, ", \\\n\t'' index %d using 2:1:(strcol(3) eq 'NaN' ? '' : "
			"sprintf($3 < 1000 ? '%%.4g' : '%%.0f', $3)) with labels font ',11'", way);
	panel_marks(p, out, way);
	fputc('\n', out);
}

/* Titles are above all panels, marks below them. */
static void matrix_draw(const struct plot *p, FILE *out)
{
	int down = panels_down(p);

	fprintf(out, "set multiplot\n");
	fprintf(out, "set label 2000 'line: sender; column: receiver; framed: below %g of the median of "
		"the way%s%s' at screen 0.5, screen 0 center offset 0, 0.8 font ',10' noenhanced\n",
		json_number_value(json_object_get(matrix_of(p), "slow")),
		p->doubts ? "; circle: cut short, not converged or disturbed" : "",
		p->failed ? "; crossed: validation failed" : "");
	for (int w = 0; w < p->way_count; w++) {
		int column = w % panels_across(p), line = w / panels_across(p);

		fprintf(out, "set lmargin at screen %.4f\nset rmargin at screen %.4f\n",
			(column + 0.27) / panels_across(p), (column + 0.80) / panels_across(p));
		fprintf(out, "set tmargin at screen 1 - room - (1 - room) * %.4f\n"
			"set bmargin at screen 1 - room - (1 - room) * %.4f\n",
			(line + 0.09) / down, (line + 0.72) / down);
		draw_panel(p, out, w);
		if (w == 0)
			fprintf(out, "unset label\n");
	}
	fprintf(out, "unset multiplot\n");
}

struct plot_kind plot_matrix_kind(const struct plot *p)
{
	return (struct plot_kind){
		.width = p->way_count == 1 ? 800 : 1100,
		.height = canvas_height(p),
		.data = matrix_data, .axes = matrix_axes, .draw = matrix_draw,
	};
}
