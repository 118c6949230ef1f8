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

/* ---- Batches, and the interval ----------------------------------------------------- */

size_t stats_batch_count(size_t n)
{
	size_t length = 1;

	while (n / length >= STATS_BATCHES_MAX)
		length *= 2;
	return n / length;
}

size_t stats_batch_begin(size_t n, size_t i)
{
	return i * n / stats_batch_count(n);
}

size_t stats_batch_medians(const uint64_t *in_order, size_t n, uint64_t *work,
			   double out[STATS_BATCHES_MAX])
{
	size_t batches = stats_batch_count(n);

	for (size_t i = 0; i < n; i++)
		work[i] = in_order[i];
	for (size_t b = 0; b < batches; b++) {
		size_t begin = stats_batch_begin(n, b), length = stats_batch_begin(n, b + 1) - begin;

		stats_sort(work + begin, length);
		out[b] = stats_median(work + begin, length);
	}
	return batches;
}

bool stats_interval_ranks(size_t n, size_t *low, size_t *high)
{
	const double z = 1.959963984540054, half = z * sqrt((double)n) / 2, middle = (double)n / 2;

	if (n < 6)
		return false;
	*low = (size_t)fmax(floor(middle - half), 1);
	*high = (size_t)fmin(ceil(1 + middle + half), (double)n);
	return true;
}

static double part_median(const uint64_t *part, size_t n, uint64_t *work)
{
	for (size_t i = 0; i < n; i++)
		work[i] = part[i];
	stats_sort(work, n);
	return stats_median(work, n);
}

void stats_order(const uint64_t *in_order, size_t n, uint64_t *sorted, struct stats_samples *out)
{
	*out = (struct stats_samples){ .sorted = sorted, .n = n, .in_order = in_order };
	out->batches = stats_batch_medians(in_order, n, sorted, out->batch);
	if (out->batches)
		qsort(out->batch, out->batches, sizeof(out->batch[0]), compare_values);
	out->first_third = part_median(in_order, n / 3, sorted);
	out->last_third = part_median(in_order + n - n / 3, n / 3, sorted);
	for (size_t i = 0; i < n; i++)
		sorted[i] = in_order[i];
	stats_sort(sorted, n);
}

/* ---- One function for each row of STATISTICS ------------------------------------- */

/*
 * The mean and the sum of squared deviations, by differences from the least sample: these are whole
 * numbers, so that nothing cancels, however large the common part of the samples.
 */
static void moments(const struct stats_samples *s, double *mean, double *square)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += (double)(s->sorted[i] - s->sorted[0]);
	sum /= (double)s->n;
	*mean = (double)s->sorted[0] + sum;
	*square = 0;
	for (size_t i = 0; i < s->n; i++) {
		double delta = (double)(s->sorted[i] - s->sorted[0]) - sum;

		*square += delta * delta;
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

static double stats_ci_low(const struct stats_samples *s)
{
	size_t low, high;

	return stats_interval_ranks(s->batches, &low, &high) ? s->batch[low - 1] : NAN;
}

static double stats_ci_high(const struct stats_samples *s)
{
	size_t low, high;

	return stats_interval_ranks(s->batches, &low, &high) ? s->batch[high - 1] : NAN;
}

static double stats_ci_n(const struct stats_samples *s)
{
	size_t low, high;

	return stats_interval_ranks(s->batches, &low, &high) ? (double)s->batches : 0;
}

#define PERCENTILE(name, q) \
	static double name(const struct stats_samples *s) \
	{ \
		return stats_percentile(s->sorted, s->n, q); \
	}
PERCENTILE(stats_p1, 0.01)
PERCENTILE(stats_p5, 0.05)
PERCENTILE(stats_p25, 0.25)
PERCENTILE(stats_p75, 0.75)
PERCENTILE(stats_p95, 0.95)
PERCENTILE(stats_p99, 0.99)
PERCENTILE(stats_p99_9, 0.999)

/* Quartiles by nearest rank. */
static double stats_quartile1(const struct stats_samples *s)
{
	return s->n < 4 ? NAN : (double)s->sorted[(s->n + 3) / 4 - 1];
}

static double stats_quartile3(const struct stats_samples *s)
{
	return s->n < 4 ? NAN : (double)s->sorted[(3 * s->n + 3) / 4 - 1];
}

static double stats_outliers(const struct stats_samples *s)
{
	double q1 = stats_quartile1(s), q3 = stats_quartile3(s), reach = 1.5 * (q3 - q1);
	size_t count = 0;

	for (size_t i = 0; i < s->n; i++)
		count += (double)s->sorted[i] < q1 - reach || (double)s->sorted[i] > q3 + reach;
	return (double)count;
}

static double stats_autocorrelation(const struct stats_samples *s)
{
	double mean, square, product = 0;

	moments(s, &mean, &square);
	if (!s->in_order || s->n < 3 || square <= 0)
		return NAN;
	for (size_t i = 1; i < s->n; i++)
		product += ((double)s->in_order[i - 1] - mean) * ((double)s->in_order[i] - mean);
	return product / square;
}

static double stats_drift(const struct stats_samples *s)
{
	return s->in_order && s->n >= 6 ? (s->last_third - s->first_third) /
		fmax(stats_middle(s), 1) : NAN;
}

static double stats_drift_of_rate(const struct stats_samples *s)
{
	return s->in_order && s->n >= 6 ? stats_middle(s) / fmax(s->last_third, 1) -
		stats_middle(s) / fmax(s->first_third, 1) : NAN;
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

static double in_unit(const struct stats_samples *s, int i, bool rate,
		      double (*value)(const void *user, double ns), const void *user, double mean)
{
	const struct statistic *of = &statistics[i];
	double x = (rate ? of->of_rate : of->of)(s);

	switch (of->kind) {
	case STATS_VALUE:
		return value(user, x);
	case STATS_RANGE:
		return fabs(value(user, of->of_rate(s)) - value(user, of->of(s)));
	case STATS_SPREAD:
		return rate ? x / fmax(stats_mean(s), 1) * mean : value(user, x);
	default:
		return x;
	}
}

void stats_summarise(const struct stats_samples *s, bool rate,
		     double (*value)(const void *user, double ns), const void *user,
		     double out[STATS_ROWS])
{
	for (int i = 0; i < STATS_ROWS; i++) {
		if (s->n)
			out[i] = in_unit(s, i, rate, value, user, out[STATS_MEAN]);
		else
			out[i] = statistics[i].kind == STATS_COUNT ? 0 : NAN;
	}
}
