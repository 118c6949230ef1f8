/* test_stats.c - statistics against values worked out by hand, and the defects of others. */
#include "cmocka_all.h"

#include <errno.h>
#include <math.h>

#include "stats.h"

static void assert_close(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fabs(want)))
		fail_msg("%.17g instead of %.17g", got, want);
}

static void test_small(void **state)
{
	uint64_t s[] = { 9, 2, 4, 4, 5, 7, 5, 4 };	/* mean 5, squares sum to 32 */
	struct stats_summary r;

	stats_sort(s, 8);
	assert_int_equal(stats_summarise(s, 8, &r), 0);
	assert_int_equal(r.n, 8);
	assert_close(r.mean, 5);
	assert_close(r.sd, sqrt(32.0 / 7));
	assert_close(r.median, 4.5);
	assert_int_equal(r.min, 2);
	assert_int_equal(r.max, 9);
	assert_true(isnan(r.p99));
	assert_int_equal(stats_summarise(s, 0, &r), -EINVAL);
	assert_int_equal(stats_summarise(s, 1, &r), 0);
	assert_close(r.median, 2);
	assert_true(isnan(r.sd));
	assert_true(isnan(stats_median(s, 0)));
	assert_close(stats_median(s, 7), 4);
}

/* Another suite's deviation passes through an int: sub-microsecond spread becomes 0. */
static void test_tiny_deviation(void **state)
{
	uint64_t s[] = { 1000000000001u, 1000000000002u, 1000000000003u };
	struct stats_summary r;

	stats_summarise(s, 3, &r);
	assert_close(r.sd, 1);
	assert_close(r.mean, 1000000000002.0);
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
		cmocka_unit_test(test_tiny_deviation),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_sort),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
