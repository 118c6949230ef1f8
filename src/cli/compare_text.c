/* compare_text.c - a comparison as text. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "cli/compare_judge.h"
#include "report/learned.h"
#include "report/metric.h"
#include "util/text.h"

enum { ROW_TEXT = 128 };

/* A shift of logarithms as a change: "+3.1" %. */
static double percent(double shift)
{
	return 100 * expm1(shift);
}

/* ---- Head ------------------------------------------------------------------------- */

static void side_print(const struct launches *l, char name, FILE *out)
{
	fprintf(out, "# %c: %s:", name, l->operand);
	for (int i = 0; i < l->program_count; i++)
		fprintf(out, "%s %d launch%s of %s", i ? "," : "", l->program[i].count,
			l->program[i].count == 1 ? "" : "es", l->program[i].name);
	fputc('\n', out);
	if (l->failed)
		fprintf(out, "# %c: %d launch%s left out, which failed or did not end\n", name,
			l->failed, l->failed == 1 ? "" : "es");
	if (l->copies)
		fprintf(out, "# %c: %d launch%s equal to others: fewer are independent than counted\n",
			name, l->copies, l->copies == 1 ? " is" : "es are");
	if (l->invalid)
		fprintf(out, "# %c: %d value%s left out, whose validation failed\n", name,
			l->invalid, l->invalid == 1 ? "" : "s");
}

static void head_print(const struct comparison *c, FILE *out)
{
	side_print(c->side[0], 'A', out);
	side_print(c->side[1], 'B', out);
	for (int i = 0; i < c->unlike_count; i++)
		fprintf(out, "# unlike %s: %s in A, %s in B\n", c->unlike[i].what,
			c->unlike[i].value[0], c->unlike[i].value[1]);
	for (int side = 0; side < 2; side++)
		if (c->alone[side])
			fprintf(out, "# in %c alone: %d row%s\n", side ? 'B' : 'A', c->alone[side],
				c->alone[side] == 1 ? "" : "s");
	if (!c->interleaved)
		fprintf(out, "# not interleaved: a difference may be the day's or the allocation's "
			"(railgauge run --with interleaves)\n");
	fprintf(out, "# effect: %g %%; change of B from A, in intervals that hold for all %d row%s "
		"together in 95 %%\n", 100 * c->effect, c->row_count, c->row_count == 1 ? "" : "s");
}

/* ---- Rows ------------------------------------------------------------------------- */

static const char *coordinate(const struct compare_program *p, const struct compare_row *row,
			      char *buf, size_t size)
{
	if (p->side[0]->is_matrix)
		snprintf(buf, size, "%d>%d", row->row->from, row->row->to);
	else
		snprintf(buf, size, "%.12g", row->row->x);
	return buf;
}

static void count_text(int launches, char *buf, size_t size)
{
	if (launches < SHIFT_NEEDED_MAX)
		snprintf(buf, size, "%d", launches);
	else
		snprintf(buf, size, "more than %d", SHIFT_NEEDED_MAX - 1);
}

static void row_print(const struct compare_program *p, const struct compare_row *row, FILE *out)
{
	char text[ROW_TEXT];

	fprintf(out, "%-12s %-16s %12.6g %12.6g", coordinate(p, row, text, sizeof(text)),
		row->row->way, row->median[0], row->median[1]);
	if (isnan(row->shift.shift)) {
		fprintf(out, " %9s %9s %9s  %s\n", "-", "-", "-",
			comparison_verdict(row->verdict));
		return;
	}
	fprintf(out, " %+9.2f %+9.2f %+9.2f  %s", percent(row->shift.shift),
		percent(row->shift.low), percent(row->shift.high),
		comparison_verdict(row->verdict));
	count_text(row->needed, text, sizeof(text));
	if (row->verdict == SHIFT_UNDECIDED)
		fprintf(out, ", about %s launches", text);
	fputc('\n', out);
}

/* The schemes that most launches of a side have learned, and how many. */
static void learned_print(const struct launches_program *p, char name, FILE *out)
{
	char text[2][LEARNED_TEXT], most[LEARNED_TEXT] = "";
	int alike = 0;

	for (int i = 0; i < p->count; i++) {
		int count = 0;

		learned_text(p->end[i], text[0], sizeof(text[0]));
		for (int k = i; k < p->count; k++) {
			learned_text(p->end[k], text[1], sizeof(text[1]));
			count += strcmp(text[0], text[1]) == 0;
		}
		if (*text[0] && count > alike) {
			alike = count;
			memcpy(most, text[0], sizeof(most));
		}
	}
	if (alike)
		fprintf(out, "# %c learned, %d of %d launch%s alike: %s\n", name, alike, p->count,
			p->count == 1 ? "" : "es", most);
}

static void program_print(const struct compare_program *p, FILE *out)
{
	enum report_metric metric = p->side[0]->metric;

	fprintf(out, "# %s: %s (%s), medians over launches%s\n", p->side[0]->name,
		report_metric_name(metric), report_metric_unit(metric),
		p->paired ? "; launches of one number are pairs" : "");
	fprintf(out, "# %-10s %-16s %12s %12s %9s %9s %9s  %s\n", "Size", "Way", "A", "B",
		"Change(%)", "From", "To", "Verdict");
	for (int i = 0; i < p->row_count; i++)
		row_print(p, &p->row[i], out);
	learned_print(p->side[0], 'A', out);
	learned_print(p->side[1], 'B', out);
}

/* ---- What would decide ------------------------------------------------------------ */

struct choice { const struct compare_program *p; const struct compare_row *row; };

static double needed(const struct compare_row *row)
{
	return row->needed;
}

static double found(const struct compare_row *row)
{
	return row->found;
}

/* The row with the largest value, of those undecided or of all. */
static struct choice largest(const struct comparison *c,
			     double (*value)(const struct compare_row *), bool undecided)
{
	struct choice most = { NULL, NULL };

	for (int i = 0; i < c->program_count; i++)
		for (int r = 0; r < c->program[i].row_count; r++) {
			const struct compare_row *row = &c->program[i].row[r];

			if (undecided && row->verdict != SHIFT_UNDECIDED)
				continue;
			if (!most.row || value(row) > value(most.row))
				most = (struct choice){ &c->program[i], row };
		}
	return most;
}

static void few_print(const struct comparison *c, FILE *out)
{
	for (int i = 0; i < c->program_count; i++)
		for (int side = 0; side < 2; side++)
			if (c->program[i].launches[side] < SHIFT_LAUNCHES_MIN)
				fprintf(out, "# too few: %d launch%s of %s in %c; an interval needs %d\n",
					c->program[i].launches[side],
					c->program[i].launches[side] == 1 ? "" : "es",
					c->program[i].side[side]->name, side ? 'B' : 'A',
					SHIFT_LAUNCHES_MIN);
}

static void decide_print(const struct comparison *c, FILE *out)
{
	struct choice most = largest(c, needed, true);
	char row[ROW_TEXT], count[32];

	if (!most.row || isnan(most.row->shift.shift))
		return;
	count_text(most.row->needed, count, sizeof(count));
	fprintf(out, "# to decide all: about %s launches a side; most for %s, %s\n", count,
		most.p->side[0]->name, comparison_row_text(most.p, most.row, row, sizeof(row)));
}

static void found_print(const struct comparison *c, FILE *out)
{
	struct choice most = largest(c, found, false);
	double least = INFINITY;
	char row[ROW_TEXT];

	for (int i = 0; i < c->program_count; i++)
		for (int r = 0; r < c->program[i].row_count; r++)
			least = fmin(least, c->program[i].row[r].found);
	if (!isfinite(least))
		return;
	fprintf(out, "# smallest shift found in 95 %% of cases: %.2f %%", percent(least));
	if (most.row->found > least && isfinite(most.row->found))
		fprintf(out, " in the steadiest row, %.2f %% in %s, %s", percent(most.row->found),
			most.p->side[0]->name,
			comparison_row_text(most.p, most.row, row, sizeof(row)));
	fputc('\n', out);
}

/* ---- Summary ---------------------------------------------------------------------- */

static void shifted_print(const struct comparison *c, enum shift_verdict verdict, FILE *out)
{
	char row[ROW_TEXT];

	for (int i = 0; i < c->program_count; i++)
		for (int r = 0; r < c->program[i].row_count; r++) {
			const struct compare_row *at = &c->program[i].row[r];

			if (at->verdict == verdict)
				fprintf(out, "%s: %s, %s: %+.2f %% (%+.2f to %+.2f)\n",
					comparison_verdict(verdict), c->program[i].side[0]->name,
					comparison_row_text(&c->program[i], at, row, sizeof(row)),
					percent(at->shift.shift), percent(at->shift.low),
					percent(at->shift.high));
		}
}

void comparison_print(const struct comparison *c, FILE *out)
{
	static const char *const verdicts[] = { "no row is worse", "worse", "undecided" };

	head_print(c, out);
	for (int i = 0; i < c->program_count; i++)
		program_print(&c->program[i], out);
	few_print(c, out);
	decide_print(c, out);
	found_print(c, out);
	shifted_print(c, SHIFT_BETTER, out);
	shifted_print(c, SHIFT_WORSE, out);
	fprintf(out, "%s: of %d row%s %d worse, %d better, %d same, %d undecided\n",
		verdicts[shift_exit(c->count)], c->row_count, c->row_count == 1 ? "" : "s",
		c->count[SHIFT_WORSE], c->count[SHIFT_BETTER], c->count[SHIFT_SAME],
		c->count[SHIFT_UNDECIDED]);
}
