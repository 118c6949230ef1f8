/* stats.c - statistics of samples in nanoseconds. */
#include <math.h>
#include <stdlib.h>

#include "stats/stats.h"

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

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double stats_median_of(double *values, size_t n)
{
	if (n == 0)
		return NAN;
	qsort(values, n, sizeof(values[0]), compare_values);
	return (values[(n - 1) / 2] + values[n / 2]) / 2;
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

/* ---- One function for each row of STATISTICS ------------------------------------- */

/* Welford: no cancellation, however large the common part of the samples. */
static void moments(const struct stats_samples *s, double *mean, double *square)
{
	*mean = *square = 0;
	for (size_t i = 0; i < s->n; i++) {
		double delta = (double)s->sorted[i] - *mean;

		*mean += delta / (double)(i + 1);
		*square += delta * ((double)s->sorted[i] - *mean);
	}
}

static double stats_mean(const struct stats_samples *s)
{
	double mean, square;

	moments(s, &mean, &square);
	return mean;
}

/* The sample standard deviation, by n - 1. */
static double stats_sd(const struct stats_samples *s)
{
	double mean, square;

	moments(s, &mean, &square);
	return s->n > 1 ? sqrt(square / (double)(s->n - 1)) : NAN;
}

static double stats_middle(const struct stats_samples *s)
{
	return stats_median(s->sorted, s->n);
}

static double stats_least(const struct stats_samples *s)
{
	return (double)s->sorted[0];
}

static double stats_most(const struct stats_samples *s)
{
	return (double)s->sorted[s->n - 1];
}

static double stats_p99(const struct stats_samples *s)
{
	return stats_percentile(s->sorted, s->n, 0.99);
}

static double stats_n(const struct stats_samples *s)
{
	return (double)s->n;
}

const struct statistic statistics[STATS_ROWS] = {
#define X(id, name, column, kind, of, of_rate) [STATS_##id] = {name, column, kind, of, of_rate},
	STATISTICS(X)
#undef X
};

void stats_summarise(const struct stats_samples *s, bool rate,
		     double (*value)(const void *user, double ns), const void *user,
		     double out[STATS_ROWS])
{
	for (int i = 0; i < STATS_ROWS; i++) {
		double x = s->n ? (rate ? statistics[i].of_rate : statistics[i].of)(s) : NAN;

		if (statistics[i].kind == STATS_COUNT)
			out[i] = s->n ? x : 0;
		else if (statistics[i].kind == STATS_VALUE || !rate)
			out[i] = value(user, x);
		else
			out[i] = s->n ? x / fmax(stats_mean(s), 1) * out[STATS_MEAN] : NAN;
	}
}
