/* test_stats.c - statistics against values worked out by hand, and the defects of others. */
#include "cmocka_all.h"

#include <math.h>

#include "stats/stats.h"

static void assert_close(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fabs(want)))
		fail_msg("%.17g instead of %.17g", got, want);
}

static double as_time(const void *unused, double ns)
{
	return ns;
}

/* A quantity of 1000 in each of the times. */
static double as_rate(const void *unused, double ns)
{
	return 1000 / ns;
}

static void test_small(void **state)
{
	uint64_t s[] = { 9, 2, 4, 4, 5, 7, 5, 4 };	/* mean 5, squares sum to 32 */
	double r[STATS_ROWS];

	stats_sort(s, 8);
	stats_summarise(&(struct stats_samples){s, 8}, false, as_time, NULL, r);
	assert_close(r[STATS_N], 8);
	assert_close(r[STATS_MEAN], 5);
	assert_close(r[STATS_SD], sqrt(32.0 / 7));
	assert_close(r[STATS_MEDIAN], 4.5);
	assert_close(r[STATS_MIN], 2);
	assert_close(r[STATS_MAX], 9);
	assert_true(isnan(r[STATS_P99]));
	stats_summarise(&(struct stats_samples){s, 0}, false, as_time, NULL, r);
	assert_true(isnan(r[STATS_MEAN]) && isnan(r[STATS_SD]) && r[STATS_N] == 0);
	stats_summarise(&(struct stats_samples){s, 1}, false, as_time, NULL, r);
	assert_close(r[STATS_MEDIAN], 2);
	assert_true(isnan(r[STATS_SD]));
	assert_true(isnan(stats_median(s, 0)));
	assert_close(stats_median(s, 7), 4);
	assert_true(isnan(stats_median_of(NULL, 0)));
	assert_close(stats_median_of((double []){ 3.5, -1, 2 }, 3), 2);
	assert_close(stats_median_of((double []){ 4, 1, 3, 0.5 }, 4), 2);
}

/* The longest time is the smallest rate; the deviation is as large a part of the mean as the times'. */
static void test_rate(void **state)
{
	uint64_t s[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
	double r[STATS_ROWS];

	stats_summarise(&(struct stats_samples){s, 8}, true, as_rate, NULL, r);
	assert_close(r[STATS_N], 8);
	assert_close(r[STATS_MEAN], 200);
	assert_close(r[STATS_MEDIAN], 1000 / 4.5);
	assert_close(r[STATS_MIN], 1000.0 / 9);
	assert_close(r[STATS_MAX], 500);
	assert_close(r[STATS_SD], sqrt(32.0 / 7) / 5 * 200);
	stats_summarise(&(struct stats_samples){s, 0}, true, as_rate, NULL, r);
	assert_true(isnan(r[STATS_SD]) && r[STATS_N] == 0);
}

/* Another suite's deviation passes through an int: sub-microsecond spread becomes 0. */
static void test_tiny_deviation(void **state)
{
	uint64_t s[] = { 1000000000001u, 1000000000002u, 1000000000003u };
	double r[STATS_ROWS];

	stats_summarise(&(struct stats_samples){s, 3}, false, as_time, NULL, r);
	assert_close(r[STATS_SD], 1);
	assert_close(r[STATS_MEAN], 1000000000002.0);
}

static void test_percentiles(void **state)
{
	static uint64_t s[100000];

	for (size_t i = 0; i < 100000; i++)
		s[i] = i + 1;
	/* Nearest rank: of 1..n the q-quantile is ceil(q n). */
	assert_close(stats_percentile(s, 1000, 0.99), 990);
	assert_close(stats_percentile(s, 100000, 0.999), 99900);
	assert_close(stats_percentile(s, 1000, 0.07), 70);
	assert_close(stats_percentile(s, 1001, 0.5), 501);
	assert_close(stats_percentile(s, 100000, 0.0001), 10);
	/* Fewer than ten samples beyond: no number rather than one straggler's. */
	assert_true(isnan(stats_percentile(s, 999, 0.99)));
	assert_true(isnan(stats_percentile(s, 9, 0.99)));	/* index -1 elsewhere */
	assert_true(isnan(stats_percentile(s, 99, 0.1)));
	assert_true(isnan(stats_percentile(s, 0, 0.5)));
	assert_true(isnan(stats_percentile(s, 1000, 0)));
	assert_true(isnan(stats_percentile(s, 1000, 1)));
}

static void test_sort(void **state)
{
	uint64_t s[] = { UINT64_MAX, 0, UINT64_MAX - 1, 1, UINT64_C(1) << 63 };

	stats_sort(s, 5);
	for (int i = 1; i < 5; i++)
		assert_true(s[i - 1] < s[i]);
	stats_sort(s, 0);
}

static void summary(const uint64_t *in_order, size_t n, bool rate, double r[STATS_ROWS])
{
	static uint64_t sorted[100000];
	struct stats_samples samples;

	stats_order(in_order, n, sorted, &samples);
	stats_summarise(&samples, rate, rate ? as_rate : as_time, NULL, r);
}

/*
 * Certified values of NIST's Statistical Reference Datasets (univariate): Michelson's speeds of
 * light of 1879, here less 299000 km/s; NumAcc1; NumAcc3 in tenths.
 */
static void test_nist(void **state)
{
	static const uint64_t michelson[] = {
		850, 740, 900, 1070, 930, 850, 950, 980, 980, 880, 1000, 980, 930, 650, 760, 810, 1000,
		1000, 960, 960, 960, 940, 960, 940, 880, 800, 850, 880, 900, 840, 830, 790, 810, 880,
		880, 830, 800, 790, 760, 800, 880, 880, 880, 860, 720, 720, 620, 860, 970, 950, 880,
		910, 850, 870, 840, 840, 850, 840, 840, 840, 890, 810, 810, 820, 800, 770, 760, 740,
		750, 760, 910, 920, 890, 860, 880, 720, 840, 850, 850, 780, 890, 840, 780, 810, 760,
		810, 790, 810, 820, 850, 870, 870, 810, 740, 810, 940, 950, 800, 810, 870,
	};
	static const uint64_t accuracy1[] = { 10000001, 10000003, 10000002 };
	static uint64_t accuracy3[1001];
	double r[STATS_ROWS];

	summary(michelson, 100, false, r);
	assert_close(r[STATS_MEAN], 852.4);
	assert_close(r[STATS_SD], 79.0105478190518);
	assert_close(r[STATS_AUTOCORRELATION], 0.535199668621283);
	/* R: quantile(x, c(.25, .75), type = 1), boxplot.stats' rule by these: 620, 650, 1070. */
	assert_close(r[STATS_P25], 800);
	assert_close(r[STATS_P75], 890);
	assert_close(r[STATS_IQR], 90);
	assert_close(r[STATS_OUTLIERS], 3);
	assert_close(r[STATS_MEDIAN], 850);
	summary(accuracy1, 3, false, r);
	assert_close(r[STATS_MEAN], 10000002);
	assert_close(r[STATS_SD], 1);
	assert_close(r[STATS_AUTOCORRELATION], -0.5);
	for (int i = 0; i < 1001; i++)
		accuracy3[i] = i == 0 ? 10000002 : i % 2 ? 10000001 : 10000003;
	summary(accuracy3, 1001, false, r);
	assert_close(r[STATS_MEAN], 10000002);
	assert_close(r[STATS_SD], 1);
	assert_close(r[STATS_AUTOCORRELATION], -0.999);
}

/* Among n values the median lies between those of two ranks if a coin shows heads low to high - 1 times. */
static double covered(size_t n, size_t low, size_t high)
{
	double sum = 0;

	for (size_t k = low; k < high; k++)
		sum += exp(lgamma((double)n + 1) - lgamma((double)k + 1) -
			   lgamma((double)(n - k) + 1) - (double)n * log(2));
	return sum;
}

/* Tables of the sign test: the narrowest ranks of 95 % or more (Le Boudec, appendix A). */
static void test_interval(void **state)
{
	static const struct { size_t n, low, high; } table[] = {
		{ 6, 1, 6 }, { 7, 1, 7 }, { 8, 1, 8 }, { 9, 2, 8 }, { 10, 2, 9 }, { 15, 4, 12 },
		{ 20, 6, 15 }, { 25, 8, 18 }, { 30, 10, 21 }, { 40, 14, 27 }, { 70, 27, 44 },
	};
	/* The formula, worked out by hand; of 6 values it has the ranks 0 and 7. */
	static const struct { size_t n, low, high; } by_hand[] = {
		{ 6, 1, 6 }, { 7, 1, 7 }, { 8, 1, 8 }, { 9, 1, 9 }, { 10, 1, 10 }, { 20, 5, 16 },
		{ 30, 9, 22 }, { 50, 18, 33 }, { 100, 40, 61 },
	};
	size_t low, high;

	for (size_t n = 0; n < 6; n++)
		assert_false(stats_interval_ranks(n, &low, &high));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_true(stats_interval_ranks(table[i].n, &low, &high));
		assert_true(low <= table[i].low && high >= table[i].high);
		assert_true(low + 2 > table[i].low && high < table[i].high + 2);
	}
	for (size_t n = 6; n < 1000; n++) {
		assert_true(stats_interval_ranks(n, &low, &high));
		assert_true(low >= 1 && low < high && high <= n && low + high == n + 1);
		assert_true(covered(n, low, high) >= 0.95);
		assert_true(n < 100 || covered(n, low, high) < 0.98);
	}
	for (size_t i = 0; i < sizeof(by_hand) / sizeof(by_hand[0]); i++)
		assert_true(stats_interval_ranks(by_hand[i].n, &low, &high) &&
			    low == by_hand[i].low && high == by_hand[i].high);
	/* By hand: (400 - 1.96 x 20) / 2 = 180.4; 1 + (400 + 39.2) / 2 = 220.6. */
	assert_true(stats_interval_ranks(400, &low, &high) && low == 180 && high == 221);
}

static void test_batches(void **state)
{
	static const struct { size_t n, count; } table[] = {
		{ 1, 1 }, { 6, 6 }, { 20, 20 }, { 39, 39 }, { 40, 20 }, { 79, 39 }, { 80, 20 },
		{ 1000, 31 }, { 10000, 39 }, { 10240, 20 },
	};
	static uint64_t s[10000];
	double r[STATS_ROWS];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t n = table[i].n, count = table[i].count;

		assert_int_equal(stats_batch_count(n), count);
		assert_int_equal(stats_batch_begin(n, 0), 0);
		assert_int_equal(stats_batch_begin(n, count), n);
		for (size_t b = 0; b < count; b++) {
			size_t length = stats_batch_begin(n, b + 1) - stats_batch_begin(n, b);

			assert_true(length == n / count || length == n / count + 1);
		}
	}
	/* 1 to 80 in turn: 20 batches of 4 with the medians 2.5, 6.5, ...; ranks 5 and 16. */
	for (size_t i = 0; i < 80; i++)
		s[i] = i + 1;
	summary(s, 80, false, r);
	assert_close(r[STATS_CI_N], 20);
	assert_close(r[STATS_CI_LOW], 18.5);
	assert_close(r[STATS_CI_HIGH], 62.5);
	summary(s, 80, true, r);
	assert_close(r[STATS_CI_LOW], 1000 / 62.5);
	assert_close(r[STATS_CI_HIGH], 1000 / 18.5);
	/* Six batches: the least and the greatest. */
	summary(s, 6, false, r);
	assert_true(r[STATS_CI_N] == 6 && r[STATS_CI_LOW] == 1 && r[STATS_CI_HIGH] == 6);
	summary(s, 5, false, r);
	assert_true(r[STATS_CI_N] == 0 && isnan(r[STATS_CI_LOW]) && isnan(r[STATS_CI_HIGH]));
}

/* Thirds of 1..80 have the medians 13.5 and 67.5; the median of all is 40.5. */
static void test_order(void **state)
{
	uint64_t s[80], constant[9] = { 7, 7, 7, 7, 7, 7, 7, 7, 7 };
	double r[STATS_ROWS];

	for (size_t i = 0; i < 80; i++)
		s[i] = i + 1;
	summary(s, 80, false, r);
	assert_close(r[STATS_DRIFT], 54 / 40.5);
	assert_true(isnan(r[STATS_P5]) && isnan(r[STATS_P95]) && isnan(r[STATS_P99_9]));
	assert_close(r[STATS_IQR], 40);
	assert_close(r[STATS_OUTLIERS], 0);
	summary(s, 80, true, r);	/* rates: 1000 / 67.5 at last, 1000 / 13.5 at first */
	assert_close(r[STATS_DRIFT], 40.5 / 67.5 - 40.5 / 13.5);
	assert_close(r[STATS_IQR], 1000.0 / 20 - 1000.0 / 60);
	summary(constant, 9, false, r);
	assert_true(isnan(r[STATS_AUTOCORRELATION]) && r[STATS_DRIFT] == 0 && r[STATS_SD] == 0);
	summary(s, 5, false, r);
	assert_true(isnan(r[STATS_DRIFT]));
	/* Without the order of time. */
	stats_summarise(&(struct stats_samples){ s, 80 }, false, as_time, NULL, r);
	assert_true(isnan(r[STATS_DRIFT]) && isnan(r[STATS_AUTOCORRELATION]) && r[STATS_CI_N] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_tiny_deviation),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_nist),
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
