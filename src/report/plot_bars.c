/*
 * plot_bars.c - a bar for each way of a program that is timed as a whole: its time, divided into
 * communication and computation, means over the ranks of the run with the median time.
 */
#include <math.h>
#include <string.h>

#include "report/plot_kind.h"
#include "report/plot_style.h"
#include "report/plot_text.h"
#include "util/text.h"

static double longest(const struct plot *p)
{
	double most = 0;

	for (size_t i = 0; i < p->row_count; i++)
		most = fmax(most, p->row[i].total_s);
	return most;
}

/* ---- Data -------------------------------------------------------------------------- */

static void bars_data(const struct plot *p, FILE *out)
{
	fprintf(out, "# way, total, communication, computation (seconds, means over the ranks), Mop/s "
		"(%s), ci_low, ci_high, mark (0 good, 1 doubtful, 2 failed verification), name\n",
		plot_statistic(p));
	for (size_t i = 0; i < p->row_count; i++) {
		const struct plot_row *row = &p->row[i];

		fprintf(out, "%d %.9g %.9g %.9g %.9g", row->way, row->total_s, row->talk_s,
			row->total_s - row->talk_s, row->value);
		if (isnan(row->low))
			fprintf(out, " ? ?");
		else
			fprintf(out, " %.9g %.9g", row->low, row->high);
		fprintf(out, " %d # ", (int)row->mark);
		plot_comment(out, p->way[row->way]);
	}
}

/* ---- Script -------------------------------------------------------------------------- */

static void bars_axes(const struct plot *p, FILE *out)
{
	const char *between = "";

	fprintf(out, "set xrange [-0.6:%.1f]\nset yrange [0:%.6g]\nset xtics scale 0 (",
		p->way_count - 0.4, longest(p) * 1.25);
	for (int w = 0; w < p->way_count; w++) {
		fputs(between, out);
		plot_quote(out, p->way[w]);
		fprintf(out, " %d", w);
		between = ", ";
	}
	fprintf(out, ") nomirror noenhanced\nset xlabel 'way'.\"\\n \"\nset ylabel 'Time (s), mean over the ranks,'."
		"\"\\n\".'run with the median time'\nset boxwidth 0.6\n"
		"set key below center horizontal Left reverse samplen 2.5 font ',11'\n");
}

/* "123.4 Mop/s", with its interval and its doubts below. */
static void bar_label(FILE *out, const struct plot_row *row)
{
	char text[PLOT_TEXT], number[PLOT_NUMBER], high[PLOT_NUMBER];

	snprintf(text, sizeof(text), "%s Mop/s", plot_number(row->value, number, sizeof(number)));
	fprintf(out, "set label %d ", 3000 + row->way);
	plot_quote(out, text);
	if (!isnan(row->low)) {
		snprintf(text, sizeof(text), "(%s to %s)",
			 plot_number(row->low, number, sizeof(number)),
			 plot_number(row->high, high, sizeof(high)));
		fprintf(out, ".\"\\n\".");
		plot_quote(out, text);
	}
	if (row->mark != PLOT_GOOD)
		fprintf(out, ".\"\\n\".'%s'", row->mark == PLOT_FAILED ? "verification failed" :
			row->doubts & PLOT_UNCONVERGED ? "not converged" :
			row->doubts & PLOT_DISTURBED ? "disturbed" : "cut short");
	fprintf(out, " at %d, %.9g center offset 0, %.1f font ',11' noenhanced\n", row->way,
		row->total_s,
		0.7 + (row->mark != PLOT_GOOD) + !isnan(row->low));
}

static void bars_draw(const struct plot *p, FILE *out)
{
	for (size_t i = 0; i < p->row_count; i++)
		bar_label(out, &p->row[i]);
	fprintf(out, "plot ");
	for (int w = 0; w < p->way_count; w++) {
		const char *colour = plot_style_of(p->way, w).colour;

		/* Doubtful and failed bars are hatched. */
		fprintf(out, "'%s.dat' using ($1 == %d ? $1 : NaN):2 with boxes fc rgb '%s' "
			"fs solid 0.3 border lc rgb '%s' notitle, \\\n\t", p->name, w, colour, colour);
		fprintf(out, "'' using ($1 == %d && $8 == 0 ? $1 : NaN):4 with boxes fc rgb '%s' "
			"fs solid 0.85 border lc rgb '%s' notitle, \\\n\t", w, colour, colour);
		fprintf(out, "'' using ($1 == %d && $8 > 0 ? $1 : NaN):4 with boxes fc rgb '%s' "
			"fs pattern 4 border lc rgb '%s' notitle, \\\n\t", w, colour, colour);
	}
	fprintf(out, "NaN with boxes fc rgb '#555555' fs solid 0.3 border lc rgb '#555555' title 'communication, with "
		"the wait for other ranks', \\\n\tNaN with boxes fc rgb '#555555' fs solid 0.85 border lc rgb '#555555' "
		"title 'computation'");
	if (p->doubts || p->failed)
		fprintf(out, ", \\\n\tNaN with boxes fc rgb '#555555' fs pattern 4 border lc rgb '#555555' title "
			"'hatched: doubtful, as written above the bar'");
	fputc('\n', out);
}

struct plot_kind plot_bars_kind(const struct plot *p)
{
	return (struct plot_kind){
		.width = p->way_count <= 6 ? 800 : 1100, .height = 520,
		.data = bars_data, .axes = bars_axes, .draw = bars_draw,
	};
}
