/*
 * stats.h - statistics of samples in nanoseconds.  Pure functions.
 *
 * No sample is discarded and no value is converted to int: the deviation of
 * sub-microsecond samples is exact.
 *
 * Rates: summarise the times, then convert.  quantity / mean time is the harmonic mean of
 * the rates, which is the right mean for rates.  quantity / maximal time is the smallest
 * rate, and so on.
 */
#ifndef RG_STATS_H
#define RG_STATS_H

#include <stddef.h>
#include <stdint.h>

struct stats_summary {
	uint64_t n;
	double mean;		/* arithmetic */
	double sd;		/* sample standard deviation, n - 1; NaN when n is 1 */
	uint64_t min, max;
	double median;
	double p99;		/* NaN unless n * 0.01 >= 10, see stats_percentile */
};

/*
 * Summarise n samples.  `sorted` must be in ascending order (stats_sort).
 * 0, or -EINVAL when n is 0.
 */
int stats_summarise(const uint64_t *sorted, size_t n, struct stats_summary *out);

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

#endif
