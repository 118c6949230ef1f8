/*
 * test_pilot.c - comparisons of campaigns whose launches are drawn from a recorded pilot, with and
 * without a shift.  A share of the 1,000 tries; RG_LONG=1: all.  RG_SEED: other draws.
 */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "stats/shift.h"

enum { TRIES = 1000, TRIES_FEW = 100, ROWS = 512, LAUNCHES = 64, BLOCKS = 16, DRAWN = 400 };

struct pilot_row {
	char name[64];
	bool up_is_worse;
	int launches;
	double value[LAUNCHES];		/* logarithms */
	double sd;
};

static struct pilot { struct pilot_row row[ROWS]; int rows, begin[BLOCKS + 1], blocks; } all, quiet;

static double sd_of(const struct pilot_row *r)
{
	double mean = 0, square = 0;

	for (int i = 0; i < r->launches; i++)
		mean += r->value[i] / r->launches;
	for (int i = 0; i < r->launches; i++)
		square += (r->value[i] - mean) * (r->value[i] - mean);
	return sqrt(square / (r->launches - 1));
}

static void pilot_add(struct pilot *p, const struct pilot_row *row, bool first)
{
	if (first)
		p->begin[p->blocks++] = p->rows;
	p->row[p->rows++] = *row;
	p->begin[p->blocks] = p->rows;
}

/* Lines of tests/stats/pilot.txt: program, metric, way, bytes, medians. */
static int pilot_load(void **state)
{
	char path[512], line[4096], program[32], before[2][32] = { "", "" };
	FILE *in;

	snprintf(path, sizeof(path), "%s/tests/stats/pilot.txt", getenv("srcdir") ? getenv("srcdir") :
		 ".");
	in = fopen(path, "r");
	if (!in)
		return -1;
	while (fgets(line, sizeof(line), in)) {
		struct pilot_row row = { .launches = 0 };
		char metric[32], way[32], bytes[32], *at;
		int used;

		if (*line == '#' || sscanf(line, "%31s %31s %31s %31s%n", program, metric, way, bytes,
					   &used) != 4)
			continue;
		snprintf(row.name, sizeof(row.name), "%s %s %s", program, way, bytes);
		row.up_is_worse = strcmp(metric, "latency") == 0;
		for (at = line + used; *at && *at != '\n' && row.launches < LAUNCHES;)
			row.value[row.launches++] = log(strtod(at, &at));
		row.sd = sd_of(&row);
		pilot_add(&all, &row, strcmp(before[0], program) != 0);
		strcpy(before[0], program);
		if (row.sd > 0.01)
			continue;
		pilot_add(&quiet, &row, strcmp(before[1], program) != 0);
		strcpy(before[1], program);
	}
	fclose(in);
	return all.rows > 0 ? 0 : -1;
}

/* ---- One try ----------------------------------------------------------------------- */

struct try {
	int launches[2];
	int shifted;		/* a row; -1: none, ROWS: all */
	double factor;		/* of its times */
};

struct outcome {
	int exit, count[SHIFT_VERDICTS];
	enum shift_verdict verdict[ROWS];
	int needed;		/* launches that would decide all */
};

static double value_of(const struct pilot *p, int row, int launch, int side, const struct try *t)
{
	const struct pilot_row *r = &p->row[row];
	double shift = side && (t->shifted == row || t->shifted == ROWS) ? log(t->factor) : 0;

	return r->value[launch] + (r->up_is_worse ? shift : -shift);
}

/* Launches of a program are drawn whole. */
static void draw_launches(const struct pilot *p, int b, int side, const struct try *t,
			  uint64_t *state, double *value)
{
	int n = t->launches[side];

	for (int i = 0; i < n; i++) {
		int from = (int)random_below(state, (uint64_t)p->row[p->begin[b]].launches);

		for (int r = p->begin[b]; r < p->begin[b + 1]; r++)
			value[(r - p->begin[b]) * n + i] = value_of(p, r, from, side, t);
	}
}

static void judge(const struct pilot *p, const struct shift_row *row, double critical,
		  struct outcome *o)
{
	double margin = log1p(0.03);

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

struct shares { int exit[3], named, all_named; double needed; };

static struct shares run(const char *what, const struct pilot *p, int n, int shifted)
{
	struct shares s = { .named = 0 };

	for (int i = 0; i < tries(); i++) {
		struct try t = { { n, n }, shifted == -2 ? i % p->rows : shifted, 1.03 };
		struct outcome o;

		try_once(p, &t, seed_of(i), &o);
		s.exit[o.exit]++;
		s.named += t.shifted >= 0 && o.verdict[t.shifted == ROWS ? i % p->rows : t.shifted] ==
			SHIFT_WORSE;
		s.all_named += o.count[SHIFT_WORSE] == p->rows;
		s.needed += (double)o.needed / tries();
	}
	print_message("%s, %d rows, %d launches: exit 0 %d, 1 %d, 2 %d; named %d, all %d of %d; %.0f needed\n",
		      what, p->rows, n, s.exit[0], s.exit[1], s.exit[2], s.named, s.all_named, tries(),
		      s.needed);
	return s;
}

static void test_explore(void **state)
{
	static const int n[] = { 5, 6, 8, 10, 12, 15, 20, 40 };

	for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		run("quiet, equal", &quiet, n[i], -1);
		run("quiet, one", &quiet, n[i], -2);
		run("quiet, all", &quiet, n[i], ROWS);
		run("all, equal", &all, n[i], -1);
		run("all, one", &all, n[i], -2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_explore) };

	return cmocka_run_group_tests_name("pilot", tests, pilot_load, NULL);
}
