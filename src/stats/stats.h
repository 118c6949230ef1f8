/*
 * stats.h - statistics of samples in nanoseconds.  Pure functions.
 *
 * No sample is discarded and no value is converted to int: the deviation of
 * sub-microsecond samples is exact.
 *
 * A statistic is one row of STATISTICS and one function.  Records, their reader and printed
 * tables follow from the row.
 *
 * Rates: a statistic of a rate comes from the times.  quantity / mean time is the harmonic
 * mean of the rates, which is the right mean for rates.  quantity / maximal time is the
 * smallest rate, and so on.
 */
#ifndef RG_STATS_H
#define RG_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Samples in ascending order (stats_sort), n > 0. */
struct stats_samples {
	const uint64_t *sorted;
	size_t n;
};

enum stats_kind {
	STATS_VALUE,		/* a time; for rates quantity / that time */
	STATS_SPREAD,		/* a time; for rates its share of the mean time, of the mean rate */
	STATS_COUNT,		/* a number, the same for any metric */
};

/*
 * X(ID, name in records, column header, kind, function for times, function for times of rates).
 * Each function returns nanoseconds or a count, or NaN where the samples are too few.  The mean,
 * the first row, is in every table; the columns of the others follow in this order (--full).
 */
#define STATISTICS(X) \
	X(MEAN, "mean", "Mean", STATS_VALUE, stats_mean, stats_mean) \
	X(MEDIAN, "median", "Median", STATS_VALUE, stats_middle, stats_middle) \
	X(MIN, "min", "Min", STATS_VALUE, stats_least, stats_most) \
	X(MAX, "max", "Max", STATS_VALUE, stats_most, stats_least) \
	X(P99, "p99", "P99", STATS_VALUE, stats_p99, stats_p99) \
	X(SD, "sd", "SD", STATS_SPREAD, stats_sd, stats_sd) \
	X(N, "n", "N", STATS_COUNT, stats_n, stats_n)

enum stats_id {
#define X(id, name, column, kind, of, of_rate) STATS_##id,
	STATISTICS(X)
#undef X
	STATS_ROWS
};

struct statistic {
	const char *name, *column;
	enum stats_kind kind;
	double (*of)(const struct stats_samples *s);
	double (*of_rate)(const struct stats_samples *s);
};
extern const struct statistic statistics[STATS_ROWS];

/*
 * Compute all rows in the unit of a metric.  `value` converts a time to the unit; `rate`: a longer
 * time is a smaller value.  n = 0: NaN in all rows, 0 in N.
 */
void stats_summarise(const struct stats_samples *s, bool rate,
		     double (*value)(const void *user, double ns), const void *user,
		     double out[STATS_ROWS]);

void stats_sort(uint64_t *samples, size_t n);

/*
 * The q-quantile (0 < q < 1) by nearest rank: the smallest sample that at
 * least q * n samples do not exceed.  NaN when fewer than 10 samples lie
 * beyond it (n * (1 - q) < 10, or n * q < 10 below the median): such a
 * value would depend on single outliers.
 */
double stats_percentile(const uint64_t *sorted, size_t n, double q);

/* Mean of the two in the middle when n is even; NaN when n is 0. */
double stats_median(const uint64_t *sorted, size_t n);
/* The same of any finite values, which the function sorts. */
double stats_median_of(double *values, size_t n);

#endif
