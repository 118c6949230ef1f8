/*
 * test_stop.c - the stopping rule on streams whose median is known.  Without arguments a share of
 * the runs; RG_LONG=1: all 2,000 of each stream.
 */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>

#include "random.h"
#include "stats/stop.h"

enum { FIRST = 1000, LEVEL = 100, RUNS = 2000, RUNS_FEW = 60, MOST = 64000, MOST_FEW = 16000 };

/* ---- Streams ------------------------------------------------------------------------ */

struct stream {
	uint64_t seed;
	uint64_t count;		/* values so far */
	double ar, level;
};

static double uniform(struct stream *s)
{
	return ((double)(random_next(&s->seed) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct stream *s)
{
	double r = sqrt(-2 * log(uniform(s)));

	return r * cos(2 * acos(-1.0) * uniform(s));
}

/* Box-Jenkins AR(1) of unit variance, from its stationary distribution. */
static double correlated(struct stream *s)
{
	s->ar = s->count ? 0.9 * s->ar + sqrt(1 - 0.81) * normal(s) : normal(s);
	return s->ar;
}

static double narrow_next(struct stream *s)
{
	return 1e5 * exp(0.03 * normal(s));
}

static double wide_next(struct stream *s)
{
	return 1e5 * exp(0.5 * normal(s));
}

static double modes_next(struct stream *s)
{
	return (uniform(s) < 0.6 ? 1e5 : 1.5e5) * exp(0.03 * normal(s));
}

static double correlated_next(struct stream *s)
{
	return 1e5 * exp(0.03 * correlated(s));
}

static double spikes_next(struct stream *s)
{
	double x = correlated_next(s);

	return uniform(s) < 0.01 ? 10 * x : x;
}

static double ticks_next(struct stream *s)
{
	return 20 * rint(1003 * exp(0.03 * normal(s)) / 20);
}

static double levels_next(struct stream *s)
{
	if (s->count % LEVEL == 0)
		s->level = uniform(s) < 0.5 ? 1e5 : 1.1e5;
	return s->level + 1e3 * normal(s);
}

/* Quantiles of the normal distribution: 5/6 of the first mode, 0.5/0.99 of what is no spike. */
#define Z_5_6 0.9674215661017010
#define Z_50_99 0.0126599974000

static const struct {
	const char *name;
	double (*next)(struct stream *s);
	double median;
	double converge;	/* the least share that converges */
	bool or_open;		/* an interval that does not hold counts if not converged */
	double hold;
} streams[] = {
	{ "lognormal, 3 %", narrow_next, 1e5, 0.99, false, 0.93 },
	{ "lognormal, wide", wide_next, 1e5, 0, false, 0.93 },
	{ "two modes", modes_next, 1e5, 0, false, 0.93 },	/* median: see main */
	{ "autocorrelation 0.9", correlated_next, 1e5, 0, false, 0.93 },
	{ "autocorrelation 0.9, spikes", spikes_next, 1e5, 0, false, 0.93 },
	{ "ticks of 20 ns", ticks_next, 1000, 0, false, 0.93 },
	{ "a level of 100 samples", levels_next, 1.05e5, 0, true, 0.90 },
};

static double median_of(size_t i)
{
	if (streams[i].next == modes_next)
		return streams[i].median * exp(0.03 * Z_5_6);
	if (streams[i].next == spikes_next)
		return streams[i].median * exp(0.03 * Z_50_99);
	return streams[i].median;
}

/* ---- A run ---------------------------------------------------------------------------- */

static uint64_t samples[MOST], work[MOST];

struct outcome { bool converged, holds; size_t n; };

static struct outcome run(size_t i, uint64_t seed, size_t first, size_t most)
{
	struct stream s = { .seed = seed };
	struct outcome o = { .n = first };
	double interval[STATS_BATCHES_MAX], median = median_of(i);
	size_t count, low, high;

	for (;; o.n *= 2) {
		for (; s.count < o.n; s.count++)
			samples[s.count] = (uint64_t)llround(streams[i].next(&s));
		o.converged = stop_has_converged(samples, o.n, 0.01, work);
		if (o.converged || 2 * o.n > most)
			break;
	}
	count = stats_batch_medians(samples, o.n, work, interval);
	stats_interval_ranks(count, &low, &high);
	stats_median_of(interval, count);	/* sorts */
	o.holds = interval[low - 1] <= median && median <= interval[high - 1];
	return o;
}

/* Three deviations of a binomial below its mean: what so few runs can show. */
static double least(double share, double runs)
{
	return runs >= RUNS ? share * runs : share * runs - 3 * sqrt(share * (1 - share) * runs);
}

static void runs_of(size_t i, size_t first)
{
	bool all = getenv("RG_LONG") && *getenv("RG_LONG");
	int runs = all ? RUNS : RUNS_FEW, hold = 0, converged = 0;
	double n = 0;

	for (int r = 0; r < runs; r++) {
		struct outcome o = run(i, (uint64_t)r * 1000003 + i * 7919 + 1, first,
				       all ? MOST : MOST_FEW);

		hold += o.holds || (streams[i].or_open && !o.converged);
		converged += o.converged;
		n += (double)o.n;
	}
	print_message("%s, from %zu: %d of %d hold, %d converge, %.0f samples\n", streams[i].name,
		      first, hold, runs, converged, n / runs);
	if (hold < least(streams[i].hold, runs) || converged < least(streams[i].converge, runs))
		fail_msg("%s: %d hold, %d converge of %d", streams[i].name, hold, converged, runs);
}

static void test_streams(void **state)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		runs_of(i, FIRST);
}

/* Rows of bandwidths begin with 20 or 100 samples. */
static void test_few(void **state)
{
	for (size_t i = 0; !streams[i].or_open; i++) {
		runs_of(i, 100);
		runs_of(i, 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests_name("stop", tests, NULL, NULL);
}
