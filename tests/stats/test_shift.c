/*
 * test_shift.c - shifts and their intervals: against values worked out by hand, and on campaigns of
 * known distributions, as often as they should hold.  A share of the tries; RG_LONG=1: all 1,000.
 */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "stats/shift.h"

enum { TRIES = 1000, TRIES_FEW = 30, ROWS = 12, LAUNCHES = 40, BLOCKS = 2 };

static struct shift_cell work[2 * BLOCKS * ROWS * LAUNCHES + 1];

static void assert_close(double got, double want)
{
	if (!(fabs(got - want) <= 1e-6 * fabs(want)))
		fail_msg("%.17g instead of %.17g", got, want);
}

/* ---- By hand ------------------------------------------------------------------------ */

/* Below 8 launches nothing is trimmed: Welch's t. */
static void test_means(void **state)
{
	static const double a[] = { 1, 2, 3, 4, 5 }, b[] = { 4, 6, 8, 10, 12, 14 };
	struct shift_block block = { .rows = 1, .launches = { 5, 6 }, .value = { a, b } };
	struct shift_row row;
	double critical = shift_intervals(&block, 1, 1, work, &row);

	assert_close(row.shift, 6);
	assert_close(row.error, sqrt(2.5 / 5 + 14.0 / 6));
	assert_close(row.low, 6 - critical * row.error);
	assert_close(row.high, 6 + critical * row.error);
	assert_true(critical > 1.96 && critical < 4);
	assert_int_equal(row.launches[0], 5);
	assert_int_equal(row.launches[1], 6);
}

/* Of 8 launches the least and the greatest do not count; wherever they are. */
static void test_trimmed(void **state)
{
	static const double zero[8] = { 0 }, b[] = { 3, -1000, 1, 2, 4, 5, 6, 1000 };
	struct shift_block block = { .rows = 1, .launches = { 8, 8 }, .value = { zero, b } };
	struct shift_row row;
	double square = 2 * (2.5 * 2.5) + 2 * (2.5 * 2.5 + 1.5 * 1.5 + 0.5 * 0.5);

	shift_intervals(&block, 1, 1, work, &row);
	assert_close(row.shift, 3.5);
	assert_close(row.error, sqrt(square / (6 * 5)) * (1 + 0.3 / 5));
}

static void test_missing(void **state)
{
	static const double a[] = { 1, NAN, 2, 3, NAN, 4, 5, 1, 1, 1, NAN, NAN, NAN, NAN };
	struct shift_block block = { .rows = 2, .launches = { 7, 7 }, .value = { a, a } };
	struct shift_row row[2];

	assert_true(shift_intervals(&block, 1, 1, work, row) > 0);
	assert_int_equal(row[0].launches[0], 5);
	assert_true(row[0].shift == 0 && row[0].low < 0 && row[0].high > 0);
	assert_int_equal(row[1].launches[1], 3);
	assert_true(isnan(row[1].shift) && row[1].low == -INFINITY && row[1].high == INFINITY);
	assert_int_equal(shift_judge(&row[1], 0.03, true), SHIFT_UNDECIDED);
	block.rows = 1;
	block.launches[0] = 4;
	assert_true(isnan(shift_intervals(&block, 1, 1, work, row)));
}

/* Values without noise, as of a model's clock: an interval without width. */
static void test_exact(void **state)
{
	double a[20], b[20];
	struct shift_block block = { .rows = 2, .launches = { 10, 10 }, .value = { a, b } };
	struct shift_row row[2];

	for (int i = 0; i < 20; i++) {
		a[i] = log(1.23456789);
		b[i] = i < 10 ? a[i] : log(1.23456789 * 1.03);
	}
	shift_intervals(&block, 1, 1, work, row);
	assert_int_equal(shift_judge(&row[0], log1p(0.03), true), SHIFT_SAME);
	assert_int_equal(shift_judge(&row[1], log1p(0.03), true), SHIFT_WORSE);
	assert_int_equal(shift_judge(&row[1], log1p(0.03), false), SHIFT_BETTER);
	assert_int_equal(shift_judge(&row[1], log1p(0.031), false), SHIFT_SAME);
	assert_true(shift_found(&row[1], 3) == 0);
}

static void test_judge(void **state)
{
	static const struct { double low, high; enum shift_verdict up, down; } cases[] = {
		{ -0.02, 0.02, SHIFT_SAME, SHIFT_SAME }, { 0.01, 0.02, SHIFT_SAME, SHIFT_SAME },
		{ 0.01, 0.04, SHIFT_WORSE, SHIFT_BETTER }, { 0.04, 0.05, SHIFT_WORSE, SHIFT_BETTER },
		{ 0.01, 0.03, SHIFT_WORSE, SHIFT_BETTER }, { -0.04, -0.01, SHIFT_BETTER, SHIFT_WORSE },
		{ -0.01, 0.04, SHIFT_UNDECIDED, SHIFT_UNDECIDED },
		{ -0.04, 0.04, SHIFT_UNDECIDED, SHIFT_UNDECIDED },
		{ 0, 0.04, SHIFT_UNDECIDED, SHIFT_UNDECIDED },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shift_row row = { .low = cases[i].low, .high = cases[i].high };

		assert_int_equal(shift_judge(&row, 0.03, true), cases[i].up);
		assert_int_equal(shift_judge(&row, 0.03, false), cases[i].down);
	}
}

static void test_exit(void **state)
{
	static const struct { int count[SHIFT_VERDICTS], exit; } cases[] = {
		{ { [SHIFT_SAME] = 3 }, 0 }, { { [SHIFT_SAME] = 1, [SHIFT_BETTER] = 1 }, 0 },
		{ { [SHIFT_BETTER] = 1 }, 0 }, { { [SHIFT_SAME] = 1, [SHIFT_UNDECIDED] = 1 }, 2 },
		{ { [SHIFT_WORSE] = 1, [SHIFT_UNDECIDED] = 9 }, 1 }, { { 0 }, 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(shift_exit(cases[i].count), cases[i].exit);
}

/* The number of launches whose interval, by tables of t, has half the margin. */
static void test_needed(void **state)
{
	struct shift_row row = { .spread = 0.01, .launches = { 7, 7 } };

	/* t(12, 0.975) = 2.1788: 0.01 t sqrt(2 / n) <= 0.015 with n = 5: t(8) = 2.3060 -> 0.01458 */
	assert_int_equal(shift_launches(&row, false, 2.178813, 0.03), 5);
	/* 0.02 t sqrt(2 / n) <= 0.015: n = 18, of which 14 count, t(26) = 2.0555 -> 0.01370; 17: 14
	 * count, too, of 17: 4 are trimmed from 16 on: t(24) = 2.0639 -> 0.01416; 16: t(22) -> 0.01466;
	 * 15, of which 13 count: t(24) -> 0.01507 */
	row.spread = 0.02;
	assert_int_equal(shift_launches(&row, false, 2.178813, 0.03), 16);
	/* pairs: 0.02 t sqrt(1 / n), with t(6) = 2.4469; n = 12, of which 10 count: t(9) = 2.2622 ->
	 * 0.01306; 10: t(7) = 2.3646 -> 0.01496; 9: t(6) -> 0.01631 */
	assert_int_equal(shift_launches(&row, true, 2.446912, 0.03), 10);
	row.spread = 10;
	assert_int_equal(shift_launches(&row, false, 2.178813, 0.03), SHIFT_NEEDED_MAX);
	row.spread = NAN;
	assert_int_equal(shift_launches(&row, false, 2.178813, 0.03), SHIFT_NEEDED_MAX);
	row.spread = 0;
	assert_int_equal(shift_launches(&row, false, 2.178813, 0.03), SHIFT_LAUNCHES_MIN);
}

/* ---- How often the intervals hold ------------------------------------------------------- */

static double uniform(uint64_t *s)
{
	return ((double)(random_next(s) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *s)
{
	double r = sqrt(-2 * log(uniform(s)));

	return r * cos(2 * acos(-1.0) * uniform(s));
}

/* `common`: of all rows of a launch; a value of one row follows. */
static double same_next(uint64_t *s, double common)
{
	return 0.7 * common + 0.7 * normal(s);
}

static double alone_next(uint64_t *s, double common)
{
	return normal(s);
}

static double heavy_next(uint64_t *s, double common)
{
	double a = normal(s), b = normal(s), c = normal(s);

	return same_next(s, common) / sqrt((a * a + b * b + c * c) / 3);
}

/* Each tenth launch is slower by 5 to 15 deviations. */
static double outlier_next(uint64_t *s, double common)
{
	return 0.5 * same_next(s, common) + (common > 1.2816 ? 5 + 10 * uniform(s) : 0);
}

static double modes_next(uint64_t *s, double common)
{
	return 0.3 * normal(s) + (common > 0.5244 ? 2 : 0);
}

static double skewed_next(uint64_t *s, double common)
{
	return exp(same_next(s, common));
}

static const struct {
	const char *name;
	double (*next)(uint64_t *s, double common);
	double spread;		/* of the second group */
} noises[] = {
	{ "normal", same_next, 1 }, { "normal, independent rows", alone_next, 1 },
	{ "normal, unlike spreads", same_next, 3 }, { "t of 3", heavy_next, 1 },
	{ "outliers", outlier_next, 1 }, { "two modes", modes_next, 1 }, { "skewed", skewed_next, 1 },
};

struct sizes { int n[2]; bool paired; };

static void values_draw(size_t noise, const struct sizes *z, uint64_t *s,
			double value[BLOCKS][2][ROWS * LAUNCHES], struct shift_block *block)
{
	for (int b = 0; b < BLOCKS; b++) {
		block[b] = (struct shift_block){ .rows = ROWS, .launches = { z->n[0], z->n[1] },
						 .value = { value[b][0], value[b][1] },
						 .paired = z->paired };
		for (int side = 0; side < 2; side++)
			for (int i = 0; i < z->n[side]; i++) {
				double common = normal(s), drift = z->paired ? 5.0 * i : 0;

				for (int r = 0; r < ROWS; r++)
					value[b][side][r * z->n[side] + i] = drift +
						noises[noise].next(s, common) * (side ? noises[noise].spread : 1);
			}
	}
}

/* Do all intervals hold 0? */
static bool try_once(size_t noise, const struct sizes *z, uint64_t seed, double *half)
{
	static double value[BLOCKS][2][ROWS * LAUNCHES];
	struct shift_block block[BLOCKS];
	struct shift_row row[BLOCKS * ROWS];
	bool hold = true;

	values_draw(noise, z, &seed, value, block);
	assert_true(shift_intervals(block, BLOCKS, 1, work, row) > 0);
	for (int r = 0; r < BLOCKS * ROWS; r++) {
		hold = hold && row[r].low <= 0 && row[r].high >= 0;
		*half += (row[r].high - row[r].low) / 2 / (BLOCKS * ROWS);
	}
	return hold;
}

static void tries_of(size_t noise, const struct sizes *z, double least)
{
	int tries = getenv("RG_LONG") && *getenv("RG_LONG") ? TRIES : TRIES_FEW, hold = 0;
	double half = 0;

	for (int i = 0; i < tries; i++)
		hold += try_once(noise, z, (uint64_t)i * 1000003 + noise * 7919 + 1, &half);
	print_message("%s, %d and %d%s: %d of %d hold, +-%.2f\n", noises[noise].name, z->n[0], z->n[1],
		      z->paired ? ", pairs" : "", hold, tries, half / tries);
	if (hold < least * tries - (tries < TRIES ? 3 * sqrt(least * (1 - least) * tries) : 0))
		fail_msg("%s: %d of %d hold", noises[noise].name, hold, tries);
}

/* Groups of unlike size differ in the part that is trimmed. */
static double least_of(const struct sizes *z)
{
	return z->n[0] == z->n[1] ? 0.93 : 0.915;
}

static void test_hold(void **state)
{
	static const struct sizes sizes[] = { { { 5, 5 }, false }, { { 8, 8 }, false },
					      { { 20, 20 }, false }, { { 8, 20 }, false },
					      { { 20, 8 }, false } };

	for (size_t i = 0; i < sizeof(noises) / sizeof(noises[0]); i++)
		for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
			tries_of(i, &sizes[k], least_of(&sizes[k]));
}

static void test_pairs(void **state)
{
	static const struct sizes sizes[] = { { { 8, 8 }, true }, { { 20, 20 }, true } };

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		tries_of(0, &sizes[k], 0.93);
}

/* Pairs are of use where their launches share noise. */
static void test_pairs_help(void **state)
{
	static double value[BLOCKS][2][ROWS * LAUNCHES];
	struct shift_block block[BLOCKS];
	uint64_t seed = 3;

	values_draw(0, &(struct sizes){ { 12, 12 }, true }, &seed, value, block);
	assert_true(shift_pairs_help(block, work));
	values_draw(0, &(struct sizes){ { 12, 12 }, false }, &seed, value, block);
	assert_false(shift_pairs_help(block, work));
	values_draw(0, &(struct sizes){ { 7, 7 }, true }, &seed, value, block);
	assert_false(shift_pairs_help(block, work));
	block[0].launches[0]--;
	assert_false(shift_pairs_help(block, work));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_means), cmocka_unit_test(test_trimmed),
		cmocka_unit_test(test_missing), cmocka_unit_test(test_exact),
		cmocka_unit_test(test_judge), cmocka_unit_test(test_exit),
		cmocka_unit_test(test_needed), cmocka_unit_test(test_hold),
		cmocka_unit_test(test_pairs), cmocka_unit_test(test_pairs_help),
	};

	return cmocka_run_group_tests_name("shift", tests, NULL, NULL);
}
