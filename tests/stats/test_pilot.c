/*
 * test_pilot.c - comparisons of campaigns whose launches are drawn from a pilot, with and without a
 * shift of 3 %.  The pilot is tests/stats/pilot.txt, or PILOT=DIR: a campaign, or a directory of result
 * files.  A share of the 1,000 tries; RG_LONG=1: all.  RG_SEED: other draws.
 */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "report/launches.h"
#include "stats/shift.h"
#include "util/err.h"

enum { TRIES = 1000, TRIES_FEW = 100, ROWS = 400, LAUNCHES = 256, BLOCKS = 16, DRAWN = 400 };
#define SHIFT 0.03

struct pilot_row {
	char program[32];
	bool up_is_worse;
	int launches;
	double value[LAUNCHES];		/* logarithms */
	double sd;
};

/* Rows by program: block b begins at begin[b]. */
struct pilot { struct pilot_row row[ROWS]; int rows, begin[BLOCKS + 1], blocks; };

static struct pilot all, quiet, middle;	/* of deviations to 1 %, and to 3 % */

static double sd_of(const struct pilot_row *r)
{
	double mean = 0, square = 0;
	int n = 0;

	for (int i = 0; i < r->launches; i++) {
		if (isnan(r->value[i]))
			continue;
		n++;
		square += (r->value[i] - mean) * (r->value[i] - mean) * (n - 1) / n;
		mean += (r->value[i] - mean) / n;
	}
	return sqrt(square / (n - 1));
}

/* ---- Pilots ------------------------------------------------------------------------ */

static int row_add(struct pilot *p, const struct pilot_row *row, bool first)
{
	first = first || !p->blocks;
	if (p->rows == ROWS || (first && p->blocks == BLOCKS))
		return -1;
	if (first)
		p->begin[p->blocks++] = p->rows;
	p->row[p->rows++] = *row;
	p->begin[p->blocks] = p->rows;
	return 0;
}

static int row_take(struct pilot_row *row)
{
	static char program[3][32];
	struct pilot *const pilots[] = { &all, &middle, &quiet };
	const double most[] = { INFINITY, 0.03, 0.01 };
	int rc = 0;

	row->sd = sd_of(row);
	for (int i = 0; i < 3 && !rc; i++) {
		if (!(row->sd <= most[i]))
			continue;
		rc = row_add(pilots[i], row, strcmp(program[i], row->program) != 0);
		strcpy(program[i], row->program);
	}
	return rc;
}

/* Lines of tests/stats/pilot.txt: program, metric, way, bytes, medians. */
static int pilot_load(FILE *in)
{
	char line[4096], metric[32];
	int rc = 0;

	while (!rc && fgets(line, sizeof(line), in)) {
		struct pilot_row row = { .launches = 0 };
		char *at = line;
		int used;

		if (*line == '#' || sscanf(line, "%31s %31s %*s %*s%n", row.program, metric, &used) != 2)
			continue;
		row.up_is_worse = strcmp(metric, "latency") == 0;
		for (at += used; *at && *at != '\n' && row.launches < LAUNCHES;)
			row.value[row.launches++] = log(strtod(at, &at));
		rc = row_take(&row);
	}
	return rc;
}

static int campaign_load(const char *operand)
{
	struct launches l;
	int rc = launches_read(operand, &l);

	if (rc)
		return rc;
	for (int i = 0; i < l.program_count && !rc; i++)
		for (size_t r = 0; r < l.program[i].row_count && !rc; r++) {
			struct pilot_row row = { .launches = l.program[i].count };

			if (row.launches > LAUNCHES)
				row.launches = LAUNCHES;
			snprintf(row.program, sizeof(row.program), "%s", l.program[i].name);
			row.up_is_worse = l.program[i].metric == REPORT_LATENCY;
			for (int k = 0; k < row.launches; k++)
				row.value[k] = log(l.program[i].row[r].median[k]);
			rc = row_take(&row);
		}
	launches_free(&l);
	return rc;
}

static int setup(void **state)
{
	const char *operand = getenv("PILOT"), *srcdir = getenv("srcdir");
	char path[512];
	FILE *in;
	int rc;

	if (operand && *operand)
		return campaign_load(operand);
	snprintf(path, sizeof(path), "%s/tests/stats/pilot.txt", srcdir ? srcdir : ".");
	in = fopen(path, "r");
	if (!in)
		return -1;
	rc = pilot_load(in);
	fclose(in);
	return rc || all.rows == 0 ? -1 : 0;
}

/* ---- One try ----------------------------------------------------------------------- */

enum { NO_ROW = -1, ONE_ROW = -2, ALL_ROWS = ROWS };

struct try {
	int launches[2];
	int shifted;		/* a row, NO_ROW or ALL_ROWS */
	double factor;		/* of its times */
	bool in_order;		/* the pilot's launches, not drawn */
};

struct outcome {
	int exit, count[SHIFT_VERDICTS];
	enum shift_verdict verdict[ROWS];
	int needed;		/* launches that would decide all */
};

static double value_of(const struct pilot *p, int row, int launch, int side, const struct try *t)
{
	const struct pilot_row *r = &p->row[row];
	double shift = side && (t->shifted == row || t->shifted == ALL_ROWS) ? log(t->factor) : 0;

	return r->value[launch] + (r->up_is_worse ? shift : -shift);
}

/* Launches of a program are drawn whole. */
static void draw_launches(const struct pilot *p, int b, int side, const struct try *t,
			  uint64_t *state, double *value)
{
	int n = t->launches[side];

	for (int i = 0; i < n; i++) {
		int most = p->row[p->begin[b]].launches;
		int from = t->in_order ? i % most : (int)random_below(state, (uint64_t)most);

		for (int r = p->begin[b]; r < p->begin[b + 1]; r++)
			value[(r - p->begin[b]) * n + i] = value_of(p, r, from, side, t);
	}
}

static void judge(const struct pilot *p, const struct shift_row *row, double critical,
		  struct outcome *o)
{
	double margin = log1p(SHIFT);

	*o = (struct outcome){ .needed = 0 };
	for (int r = 0; r < p->rows; r++) {
		int n = shift_launches(&row[r], false, critical, margin);

		o->verdict[r] = shift_judge(&row[r], margin, p->row[r].up_is_worse);
		o->count[o->verdict[r]]++;
		o->needed = n > o->needed ? n : o->needed;
	}
	o->exit = shift_exit(o->count);
}

static void try_once(const struct pilot *p, const struct try *t, uint64_t seed, struct outcome *o)
{
	static double value[2][ROWS * DRAWN];
	static struct shift_cell work[2 * ROWS * DRAWN + 1];
	struct shift_block block[BLOCKS];
	struct shift_row row[ROWS];
	double critical;

	for (int b = 0; b < p->blocks; b++) {
		block[b] = (struct shift_block){ .rows = p->begin[b + 1] - p->begin[b] };
		for (int side = 0; side < 2; side++) {
			double *at = value[side] + (size_t)p->begin[b] * DRAWN;

			draw_launches(p, b, side, t, &seed, at);
			block[b].launches[side] = t->launches[side];
			block[b].value[side] = at;
		}
	}
	critical = shift_intervals(block, p->blocks, 1, work, row);
	judge(p, row, critical, o);
}

/* ---- Many tries --------------------------------------------------------------------- */

static int tries(void)
{
	return getenv("RG_LONG") && *getenv("RG_LONG") ? TRIES : TRIES_FEW;
}

static uint64_t seed_of(int i)
{
	const char *seed = getenv("RG_SEED");

	return (seed ? strtoull(seed, NULL, 10) : 1) * 1000003 + (uint64_t)i * 7919;
}

/* `named`: the shifted row is worse, or one of all that are; by turns. */
struct shares { int count, exit[3], named; };

static void share_add(struct shares *s, const struct pilot *p, const struct try *t, int number,
		      const struct outcome *o)
{
	int row = t->shifted == ALL_ROWS ? number % p->rows : t->shifted;

	s->count++;
	s->exit[o->exit]++;
	s->named += row >= 0 && o->exit == 1 && o->verdict[row] == SHIFT_WORSE;
}

static struct shares run(const char *what, const struct pilot *p, int n, int shifted)
{
	struct shares s = { .count = 0 };

	for (int i = 0; i < tries(); i++) {
		struct try t = { { n, n }, shifted == ONE_ROW ? i % p->rows : shifted, 1 + SHIFT };
		struct outcome o;

		try_once(p, &t, seed_of(i), &o);
		share_add(&s, p, &t, i, &o);
	}
	print_message("%d launches, %d rows, %s: exit code 0 in %d, 1 in %d, 2 in %d of %d; named %d\n",
		      n, p->rows, what, s.exit[0], s.exit[1], s.exit[2], s.count, s.named);
	return s;
}

/* Three deviations of a binomial: what few tries can show. */
static void assert_share(int got, int count, double least, double most)
{
	double slack = count >= TRIES ? 0 : 3 * sqrt(0.05 * 0.95 * count);

	if (got < least * count - slack || got > most * count + slack)
		fail_msg("%d of %d, not %g to %g", got, count, least, most);
}

/* ---- Tests -------------------------------------------------------------------------- */

static void test_equal(void **state)
{
	struct shares s;

	if (!quiet.rows)
		return;
	s = run("equal", &quiet, 20, NO_ROW);
	assert_share(s.exit[1], s.count, 0, 0.05);
	assert_share(s.exit[0], s.count, 0.9, 1);
}

static void test_shifted(void **state)
{
	struct shares s;

	if (!quiet.rows)
		return;
	s = run("3 % in one", &quiet, 20, ONE_ROW);
	assert_share(s.named, s.count, 0.95, 1);
	s = run("3 % in all", &quiet, 20, ALL_ROWS);
	assert_share(s.named, s.count, 0.95, 1);
}

/* Whatever the noise, and however few the launches: a false alarm in 5 %. */
static void test_false_alarms(void **state)
{
	static const int n[] = { 5, 6, 8, 12, 20 };

	for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		struct shares s = run("equal", &all, n[i], NO_ROW);

		assert_share(s.exit[1], s.count, 0, 0.05);
	}
}

/* Noisier rows: as many launches as a first comparison says decide the second. */
static void test_needed(void **state)
{
	struct shares equal = { .count = 0 }, one = { .count = 0 };
	double launches = 0;

	for (int i = 0; middle.rows && i < tries() / 4; i++) {
		struct try t = { { 20, 20 }, NO_ROW, 1 + SHIFT };
		struct outcome o;

		try_once(&middle, &t, seed_of(i), &o);
		t.launches[0] = t.launches[1] = o.needed < DRAWN ? o.needed : DRAWN;
		launches += t.launches[0];
		try_once(&middle, &t, seed_of(i + TRIES), &o);
		share_add(&equal, &middle, &t, i, &o);
		t.shifted = i % middle.rows;
		try_once(&middle, &t, seed_of(i + 2 * TRIES), &o);
		share_add(&one, &middle, &t, i, &o);
	}
	print_message("%.0f launches, as 20 said, %d rows: exit code 0 in %d, named %d of %d\n",
		      equal.count ? launches / equal.count : 0, middle.rows, equal.exit[0], one.named,
		      one.count);
	assert_share(equal.exit[0], equal.count, 0.9, 1);
	assert_share(one.named, one.count, 0.95, 1);
}

/* The pilot as it is, against itself with all its times 3 % longer. */
static void test_times(void **state)
{
	struct try t = { { all.row[0].launches, all.row[0].launches }, NO_ROW, 1 + SHIFT };
	struct outcome o;

	t.in_order = true;
	try_once(&all, &t, 1, &o);
	assert_int_equal(o.count[SHIFT_WORSE] + o.count[SHIFT_BETTER], 0);
	t.shifted = ALL_ROWS;
	try_once(&all, &t, 1, &o);
	if (quiet.rows)
		assert_int_equal(o.exit, 1);
	assert_true(o.count[SHIFT_WORSE] >= quiet.rows && o.count[SHIFT_BETTER] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal), cmocka_unit_test(test_shifted),
		cmocka_unit_test(test_false_alarms), cmocka_unit_test(test_needed),
		cmocka_unit_test(test_times),
	};

	rg_set_program("test_pilot");
	return cmocka_run_group_tests_name("pilot", tests, setup, NULL);
}
