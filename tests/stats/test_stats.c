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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_tiny_deviation),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_sort),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
