/* compare_judge.c - rows of two campaigns are matched and judged. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare_judge.h"
#include "stats/stats.h"
#include "util/err.h"

/* The draws of intervals: the same input gives the same verdict. */
enum { SEED = 1 };

/* ---- Differences of settings ------------------------------------------------------ */

struct differences { struct comparison *c; const char *program; bool no_memory; };

static bool is_known(const struct comparison *c, const char *what, const char *a, const char *b)
{
	for (int i = 0; i < c->unlike_count; i++) {
		const struct compare_unlike *u = &c->unlike[i];

		if (strcmp(u->what, what) == 0 && strcmp(u->value[0], a) == 0 &&
		    strcmp(u->value[1], b) == 0)
			return true;
	}
	return false;
}

static void unlike_free(struct compare_unlike *u)
{
	free(u->program);
	free(u->what);
	free(u->value[0]);
	free(u->value[1]);
}

/* Most differences are those of all programs: the first names it. */
static void unlike_add(void *user, enum unlike_kind kind, const char *what, const char *a,
		       const char *b)
{
	struct differences *d = user;
	struct comparison *c = d->c;
	struct compare_unlike *more, new;

	if (is_known(c, what, a, b))
		return;
	new = (struct compare_unlike){ kind, strdup(d->program), strdup(what),
				       { strdup(a), strdup(b) } };
	more = reallocarray(c->unlike, (size_t)c->unlike_count + 1, sizeof(c->unlike[0]));
	if (more)
		c->unlike = more;
	if (!more || !new.program || !new.what || !new.value[0] || !new.value[1]) {
		unlike_free(&new);
		d->no_memory = true;
		return;
	}
	c->unlike[c->unlike_count++] = new;
}

/* ---- Rows of both ----------------------------------------------------------------- */

static const struct launches_row *partner(const struct launches_program *p,
					  const struct launches_row *row, size_t expected)
{
	for (size_t k = 0; k < p->row_count; k++) {
		const struct launches_row *r = &p->row[(expected + k) % p->row_count];

		if (r->x == row->x && strcmp(r->way, row->way) == 0 && r->from == row->from &&
		    r->to == row->to)
			return r;
	}
	return NULL;
}

static double median_of(const struct launches_row *row, int count)
{
	double *value = malloc((size_t)count * sizeof(value[0])), median;
	size_t n = 0;

	if (!value)
		return NAN;
	for (int i = 0; i < count; i++)
		if (!isnan(row->median[i]))
			value[n++] = row->median[i];
	median = stats_median_of(value, n);
	free(value);
	return median;
}

static int rows_match(struct comparison *c, struct compare_program *p)
{
	const struct launches_program *a = p->side[0], *b = p->side[1];

	p->row = calloc(a->row_count + 1, sizeof(p->row[0]));
	if (!p->row)
		return -ENOMEM;
	for (size_t i = 0; i < a->row_count; i++) {
		const struct launches_row *other = partner(b, &a->row[i], i);

		if (!other)
			continue;
		p->row[p->row_count++] = (struct compare_row){
			.row = &a->row[i],
			.median = { median_of(&a->row[i], a->count), median_of(other, b->count) },
		};
	}
	c->alone[0] += (int)a->row_count - p->row_count;
	c->alone[1] += (int)b->row_count - p->row_count;
	c->row_count += p->row_count;
	return 0;
}

static const struct launches_program *program_find(const struct launches *l, const char *name)
{
	for (int i = 0; i < l->program_count; i++)
		if (strcmp(l->program[i].name, name) == 0)
			return &l->program[i];
	return NULL;
}

static int programs_match(struct comparison *c)
{
	const struct launches *a = c->side[0], *b = c->side[1];
	struct differences d = { .c = c };
	int rc = 0;

	c->program = calloc((size_t)a->program_count, sizeof(c->program[0]));
	if (!c->program)
		return -ENOMEM;
	for (int i = 0; i < a->program_count && !rc; i++) {
		const struct launches_program *other = program_find(b, a->program[i].name);

		if (!other) {
			c->alone[0] += (int)a->program[i].row_count;
			continue;
		}
		c->program[c->program_count] = (struct compare_program){
			.side = { &a->program[i], other } };
		d.program = other->name;
		report_unlike(a->program[i].run[0], other->run[0], unlike_add, &d);
		rc = d.no_memory ? -ENOMEM : rows_match(c, &c->program[c->program_count++]);
	}
	for (int i = 0; i < b->program_count; i++)
		if (!program_find(a, b->program[i].name))
			c->alone[1] += (int)b->program[i].row_count;
	return rc;
}

static bool is_one_campaign(const struct launches *a, const struct launches *b)
{
	return a->dir && b->dir && strcmp(a->dir, b->dir) == 0;
}

int comparison_match(const struct launches *a, const struct launches *b, struct comparison *out)
{
	struct comparison c = { .side = { a, b } };
	int rc;

	c.interleaved = is_one_campaign(a, b) && a->interleaved && strcmp(a->build, b->build);
	rc = programs_match(&c);
	if (rc)
		rg_error("no memory for %d programs", a->program_count);
	if (!rc && !c.row_count) {
		rg_error("%s and %s have no row in common", a->operand, b->operand);
		rc = -EINVAL;
	}
	if (rc)
		comparison_free(&c);
	else
		*out = c;
	return rc;
}

/* ---- Values ----------------------------------------------------------------------- */

/* Launches of both sides by number, as pairs of indices; returns their number. */
static int pairs_find(const struct launches_program *a, const struct launches_program *b,
		      int *first, int *second)
{
	int n = 0;

	for (int i = 0; i < a->count; i++)
		for (int k = 0; k < b->count; k++)
			if (a->number[i] == b->number[k]) {
				first[n] = i;
				second[n++] = k;
				break;
			}
	return n;
}

/* Logarithms of the rows' values in `n` launches, those of `index`; NULL: in all. */
static double *values_of(const struct compare_program *p, int side, const int *index, int n)
{
	double *value = calloc((size_t)p->row_count * (size_t)n + 1, sizeof(value[0])), *at = value;

	for (int r = 0; value && r < p->row_count; r++) {
		const struct launches_row *row = side ?
			partner(p->side[1], p->row[r].row, (size_t)r) : p->row[r].row;

		for (int i = 0; i < n; i++)
			*at++ = log(row->median[index ? index[i] : i]);
	}
	return value;
}

/* The program's launches as a block: pairs or groups. */
static int block_make(const struct compare_program *p, bool pairs, struct shift_block *b)
{
	int most = p->side[0]->count, *index[2] = { NULL, NULL };

	*b = (struct shift_block){ .rows = p->row_count, .paired = pairs,
				   .launches = { most, p->side[1]->count } };
	if (pairs) {
		index[0] = calloc((size_t)most, sizeof(int));
		index[1] = calloc((size_t)most, sizeof(int));
		if (index[0] && index[1])
			b->launches[0] = b->launches[1] =
				pairs_find(p->side[0], p->side[1], index[0], index[1]);
	}
	for (int side = 0; side < 2; side++)
		if (!pairs || (index[0] && index[1]))
			b->value[side] = values_of(p, side, index[side], b->launches[side]);
	free(index[0]);
	free(index[1]);
	return b->value[0] && b->value[1] ? 0 : -ENOMEM;
}

static void block_free(struct shift_block *b)
{
	for (int side = 0; side < 2; side++) {
		free((double *)(uintptr_t)b->value[side]);
		b->value[side] = NULL;
	}
}

/* Pairs where builds took turns and this narrows the intervals, else groups. */
static int block_choose(const struct comparison *c, struct compare_program *p,
			struct shift_block *b)
{
	int rc = block_make(p, c->interleaved, b);

	if (!rc && b->paired) {
		struct shift_cell *work = calloc(shift_work(b, 1), sizeof(work[0]));

		p->paired = work && shift_pairs_help(b, work);
		rc = work ? 0 : -ENOMEM;
		free(work);
		if (!rc && !p->paired) {
			block_free(b);
			rc = block_make(p, false, b);
		}
	}
	p->launches[0] = b->launches[0];
	p->launches[1] = b->launches[1];
	return rc;
}

/* ---- Verdicts --------------------------------------------------------------------- */

static void row_judge(struct comparison *c, const struct compare_program *p,
		      struct compare_row *row, const struct shift_row *shift)
{
	double margin = log1p(c->effect);

	row->shift = *shift;
	row->verdict = shift_judge(shift, margin, p->side[0]->metric == REPORT_LATENCY);
	row->needed = shift_launches(shift, p->paired, c->critical, margin);
	row->found = isnan(shift->shift) ? INFINITY : shift_found(shift, c->critical);
	c->count[row->verdict]++;
}

/* 0, or -EINVAL after an error line. */
static int counts_check(const struct comparison *c)
{
	for (int i = 0; i < c->program_count; i++)
		for (int side = 0; side < 2; side++)
			if (c->program[i].side[side]->count > SHIFT_LAUNCHES_MAX) {
				rg_error("%s: %d launches of %s (accepted: up to %d)",
					 c->side[side]->operand, c->program[i].side[side]->count,
					 c->program[i].side[side]->name, SHIFT_LAUNCHES_MAX);
				return -EINVAL;
			}
	return 0;
}

static int intervals_make(struct comparison *c, struct shift_block *block, struct shift_row *row)
{
	struct shift_cell *work;
	int rc = 0;

	for (int i = 0; i < c->program_count && !rc; i++)
		rc = block_choose(c, &c->program[i], &block[i]);
	work = rc ? NULL : calloc(shift_work(block, c->program_count), sizeof(work[0]));
	if (!work)
		return -ENOMEM;
	c->critical = shift_intervals(block, c->program_count, SEED, work, row);
	free(work);
	return 0;
}

int comparison_judge(struct comparison *c, double effect)
{
	struct shift_block *block = calloc((size_t)c->program_count + 1, sizeof(block[0]));
	struct shift_row *row = calloc((size_t)c->row_count + 1, sizeof(row[0])), *next = row;
	int rc = counts_check(c);

	c->effect = effect;
	if (!rc) {
		rc = block && row ? intervals_make(c, block, row) : -ENOMEM;
		if (rc)
			rg_error("no memory for %d rows", c->row_count);
	}
	for (int i = 0; i < c->program_count && !rc; i++)
		for (int r = 0; r < c->program[i].row_count; r++)
			row_judge(c, &c->program[i], &c->program[i].row[r], next++);
	for (int i = 0; block && i < c->program_count; i++)
		block_free(&block[i]);
	free(block);
	free(row);
	return rc;
}

/* ---- Names and memory ------------------------------------------------------------- */

const char *comparison_verdict(enum shift_verdict verdict)
{
	static const char *const names[SHIFT_VERDICTS] = {
		[SHIFT_SAME] = "same", [SHIFT_BETTER] = "better", [SHIFT_WORSE] = "worse",
		[SHIFT_UNDECIDED] = "undecided",
	};

	return names[verdict];
}

const char *comparison_row_text(const struct compare_program *p, const struct compare_row *row,
				char *buf, size_t size)
{
	const json_t *axis = json_object_get(p->side[0]->run[0], "x");
	const char *name = json_string_value(json_object_get(axis, "name"));

	if (p->side[0]->is_matrix)
		snprintf(buf, size, "%s, node %d to %d", row->row->way, row->row->from,
			 row->row->to);
	else if (name)
		snprintf(buf, size, "%s, %s %g", row->row->way, name, row->row->x);
	else
		snprintf(buf, size, "%s, %.0f bytes", row->row->way, row->row->x);
	return buf;
}

void comparison_free(struct comparison *c)
{
	for (int i = 0; i < c->program_count; i++)
		free(c->program[i].row);
	for (int i = 0; i < c->unlike_count; i++)
		unlike_free(&c->unlike[i]);
	free(c->program);
	free(c->unlike);
	*c = (struct comparison){ .side = { NULL, NULL } };
}
