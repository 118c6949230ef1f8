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
 * smallest rate, the upper end of an interval its lower end, and so on.
 */
#ifndef RG_STATS_H
#define RG_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STATS_BATCHES_MIN = 20, STATS_BATCHES_MAX = 2 * STATS_BATCHES_MIN };

/* Samples, n > 0; stats_order fills the struct. */
struct stats_samples {
	const uint64_t *sorted;		/* in ascending order (stats_sort) */
	size_t n;
	const uint64_t *in_order;	/* in the order of time; NULL: not known */
	double batch[STATS_BATCHES_MAX];	/* medians of the batches, in ascending order */
	size_t batches;			/* 0: no interval */
	double first_third, last_third;	/* medians of the first and the last n / 3 samples */
};

enum stats_kind {
	STATS_VALUE,		/* a time; for rates quantity / that time */
	STATS_SPREAD,		/* a time; for rates its share of the mean time, of the mean rate */
	STATS_RANGE,		/* from one time to another: the two functions are its ends */
	STATS_RATIO,		/* a number without a unit */
	STATS_COUNT,		/* a whole number, the same for any metric */
};

/*
 * X(ID, name in records, column header, kind, function for times, function for times of rates).
 * Each function returns nanoseconds or a number, or NaN where the samples are too few.  The mean,
 * the first row, is in every table, and so are the median and its interval with one way; the columns
 * of the others follow in this order (--full).
 *
 * ci_low, ci_high	95 % interval of the median, from the medians of ci_n batches
 *			(stats_interval_ranks)
 * p1 to p99.9		stats_percentile
 * iqr			third less first quartile, each by nearest rank; n >= 4
 * outliers		samples beyond 1.5 iqr below the first or above the third quartile (Tukey,
 *			Exploratory Data Analysis, 1977), of times for rates, too; counted only
 * autocorrelation	of lag 1, in the order of time: r1 = sum of (x[t] - mean)(x[t + 1] - mean) /
 *			sum of (x[t] - mean)^2 (Box and Jenkins; NIST handbook 1.3.3.1)
 * drift		median of the last third of the samples less median of the first third,
 *			relative to the median of all; n >= 6.  Positive: the latency, or the rate,
 *			grows.  (The slope of Tukey's resistant line, chapter 5 there.)
 */
#define STATISTICS(X) \
	X(MEAN, "mean", "Mean", STATS_VALUE, stats_mean, stats_mean) \
	X(MEDIAN, "median", "Median", STATS_VALUE, stats_middle, stats_middle) \
	X(CI_LOW, "ci_low", "CI-low", STATS_VALUE, stats_ci_low, stats_ci_high) \
	X(CI_HIGH, "ci_high", "CI-high", STATS_VALUE, stats_ci_high, stats_ci_low) \
	X(CI_N, "ci_n", "CI-N", STATS_COUNT, stats_ci_n, stats_ci_n) \
	X(MIN, "min", "Min", STATS_VALUE, stats_least, stats_most) \
	X(MAX, "max", "Max", STATS_VALUE, stats_most, stats_least) \
	X(P1, "p1", "P1", STATS_VALUE, stats_p1, stats_p1) \
	X(P5, "p5", "P5", STATS_VALUE, stats_p5, stats_p5) \
	X(P25, "p25", "P25", STATS_VALUE, stats_p25, stats_p25) \
	X(P75, "p75", "P75", STATS_VALUE, stats_p75, stats_p75) \
	X(P95, "p95", "P95", STATS_VALUE, stats_p95, stats_p95) \
	X(P99, "p99", "P99", STATS_VALUE, stats_p99, stats_p99) \
	X(P99_9, "p99.9", "P99.9", STATS_VALUE, stats_p99_9, stats_p99_9) \
	X(SD, "sd", "SD", STATS_SPREAD, stats_sd, stats_sd) \
	X(IQR, "iqr", "IQR", STATS_RANGE, stats_quartile1, stats_quartile3) \
	X(OUTLIERS, "outliers", "Outliers", STATS_COUNT, stats_outliers, stats_outliers) \
	X(AUTOCORRELATION, "autocorrelation", "Autocorr", STATS_RATIO, stats_autocorrelation, \
	  stats_autocorrelation) \
	X(DRIFT, "drift", "Drift", STATS_RATIO, stats_drift, stats_drift_of_rate) \
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
 * Fill *out from samples in the order of time: `sorted` is memory for n, which stays in use, as
 * in_order does.
 */
void stats_order(const uint64_t *in_order, size_t n, uint64_t *sorted, struct stats_samples *out);

/*
 * The number of batches of n samples: 20 to 39 of equal length, or n batches of one sample each below
 * 40.  The length is 1, 2, 4, ... samples, so a batch of twice as many samples is two batches of
 * before, and outgrows the time over which samples depend on each other.  Batch i begins at sample
 * stats_batch_begin(n, i).  Batches whose means or medians stand for a correlated series: Law,
 * Simulation Modeling and Analysis, section 9.5.3.
 */
size_t stats_batch_count(size_t n);
size_t stats_batch_begin(size_t n, size_t i);
/* Medians of the batches, in the order of time; `work` has room for n samples.  Their number. */
size_t stats_batch_medians(const uint64_t *in_order, size_t n, uint64_t *work,
			   double out[STATS_BATCHES_MAX]);

/*
 * Ranks, counted from 1, of the two of n independent values in ascending order that enclose their
 * distribution's median in 95 % of all cases: floor((n - z sqrt n) / 2) and
 * ceil(1 + (n + z sqrt n) / 2), z = 1.96, within 1 to n.  False, and no interval, below 6 values: the
 * least and the greatest of 5 enclose it in 94 %.  (Le Boudec, Performance Evaluation of Computer
 * and Communication Systems, theorem 2.1; Hoefler and Belli, SC15.)
 */
bool stats_interval_ranks(size_t n, size_t *low, size_t *high);

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
