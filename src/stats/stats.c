/* stats.c - statistics of samples in nanoseconds. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stats.h"

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void stats_sort(uint64_t *samples, size_t n)
{
	if (n > 1)
		qsort(samples, n, sizeof(samples[0]), compare);
}

double stats_median(const uint64_t *sorted, size_t n)
{
	if (n == 0)
		return NAN;
	if (n % 2)
		return (double)sorted[n / 2];
	return ((double)sorted[n / 2 - 1] + (double)sorted[n / 2]) / 2;
}

double stats_percentile(const uint64_t *sorted, size_t n, double q)
{
	/* q * n is seldom exact in binary: 0.07 * 100 must be rank 7, not 8. */
	const double slack = 1e-9 * (double)n;
	double beyond = (double)n * (q < 0.5 ? q : 1 - q);

	if (!(q > 0 && q < 1) || beyond + slack < 10)
		return NAN;
	return (double)sorted[(size_t)ceil(q * (double)n - slack) - 1];
}

int stats_summarise(const uint64_t *sorted, size_t n, struct stats_summary *out)
{
	double mean = 0, square = 0;

	if (n == 0)
		return -EINVAL;
	/* Welford: no cancellation, however large the common part of the samples. */
	for (size_t i = 0; i < n; i++) {
		double delta = (double)sorted[i] - mean;

		mean += delta / (double)(i + 1);
		square += delta * ((double)sorted[i] - mean);
	}
	*out = (struct stats_summary){
		.n = n,
		.mean = mean,
		.sd = n > 1 ? sqrt(square / (double)(n - 1)) : NAN,
		.min = sorted[0],
		.max = sorted[n - 1],
		.median = stats_median(sorted, n),
		.p99 = stats_percentile(sorted, n, 0.99),
	};
	return 0;
}
