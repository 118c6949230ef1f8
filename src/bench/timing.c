/* timing.c - the method that times a row of a collective; see timing.h. */
#include "bench/timing.h"
#include "bench/collective.h"
#include "bench/ranks.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "util/clock.h"

static void barrier_choose(struct collective *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void barrier_choose(struct collective *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(c->why, sizeof(c->why), fmt, args);
	va_end(args);
	c->method = BENCH_BARRIER;
}

static void clocks_doubt(struct collective *c, uint64_t error_ns, double time_ns, const char *of)
{
	c->doubted = true;
	barrier_choose(c, "clocks are off by up to %.3f us, above %d %% of %s, %.3f us",
		       (double)error_ns / 1e3, CLOCKS_ERROR_PERCENT, of, time_ns / 1e3);
}

/*
 * Clocks that were just corrected are off by their measurement's error, a part of every row's.  Too
 * large for the time that this row may take, it leaves no hope.  A size twice as large takes at
 * most about twice the time.
 */
static void hope_check(struct collective *c)
{
	uint64_t error;

	clocks_check(&c->clocks);
	error = clocks_check(&c->clocks);
	c->expected_ns *= 2;
	if (c->expected_ns > 0 && !clocks_suffice(error, c->expected_ns))
		clocks_doubt(c, error, c->expected_ns, "the time expected");
}

/*
 * A clock that was set, by hand or by a time service, looks like drift for 10 s and more: after a row
 * of doubtful clocks the next one has new models.  Where these do not help, 1, 3, 7 ... rows go
 * without, since they take 0.1 s.
 */
static void clocks_mend(struct collective *c)
{
	if (!c->doubted)
		c->renew_skip = c->renew_skipped = 0;
	else if (c->renew_skipped < c->renew_skip)
		c->renew_skipped++;
	else {
		c->renew_skip = 2 * c->renew_skip + 1;
		c->renew_skipped = 0;
		c->renewed++;
		clocks_renew(&c->clocks);
	}
	c->doubted = false;
}

/* The method before the first sample. */
static void method_choose(struct bench_job *job, struct collective *c)
{
	uint64_t begin = rg_now_ns();

	c->method = job->opt.timing;
	c->before_ns = 0;
	if (c->method == BENCH_SYNC && job->where.oversubscribed) {
		barrier_choose(c, "oversubscribed");
	} else if (c->method == BENCH_SYNC && c->skipped < c->skip) {
		c->skipped++;
		barrier_choose(c, "ranks did not start together in earlier rows");
	} else if (c->method == BENCH_SYNC) {
		*c->why = '\0';
		collective_synchronise(job);
		clocks_mend(c);
		hope_check(c);
		c->before_ns = rg_now_ns() - begin;
	}
}

/* The median of a sync row, which all ranks have. */
static double median_ns(const uint64_t *samples, uint64_t n)
{
	uint64_t *sorted = bench_must(malloc((n + 1) * sizeof(sorted[0])));
	double median;

	memcpy(sorted, samples, n * sizeof(sorted[0]));
	stats_sort(sorted, n);
	median = stats_median(sorted, n);
	free(sorted);
	return median;
}

/* The method after a sync row: a barrier, if the samples are not to be relied on. */
static void method_review(struct bench_job *job, struct collective *c, const struct measure m[])
{
	/* 1, 3, 7 ... rows do not try: a load may end, or stay. */
	c->skip = c->vain ? 2 * c->skip + 1 : 0;
	c->skipped = 0;
	if (c->vain)
		barrier_choose(c, "ranks do not start together: %llu rounds void, %llu not",
			       (unsigned long long)c->round.voided,
			       (unsigned long long)c->round.rounds);
	for (int w = 0; w < job->where.way_count && c->method == BENCH_SYNC; w++) {
		double median = median_ns(job->got.samples[w], m[w].done);

		c->expected_ns = w && c->expected_ns < median ? c->expected_ns : median;
		if (!clocks_suffice(c->row[w].residual_ns, median))
			clocks_doubt(c, c->row[w].residual_ns, median, "the median");
	}
}

static void tell_once(struct bench_job *job, struct collective *c, uint64_t bytes)
{
	if (!c->told && job->got.report)
		report_note(job->got.report, "timing: barrier at %llu bytes, and where a row's "
			    "record says so: %s", (unsigned long long)bytes, c->why);
	c->told = true;
}

static void pass(struct bench_job *job, struct collective *c, uint64_t bytes, struct measure m[])
{
	memset(c->row, 0, sizeof(c->row));
	c->vain = false;
	if (c->method == BENCH_SYNC)
		roundtime_begin(&c->round);
	measure_size(job, bytes, m);
}

/* Once more, by the method that the review chose.  The first pass is no part of the counts. */
static void pass_again(struct bench_job *job, struct collective *c, uint64_t bytes,
		       struct measure m[], struct bench_budget before, uint64_t begin_ns)
{
	uint64_t runs[REPORT_WAYS_MAX], took_ns = rg_now_ns() - begin_ns;

	c->before_ns += took_ns;
	before.added_ns += ranks_max(job, took_ns);
	job->got.budget = before;

	for (int w = 0; w < job->where.way_count; w++)
		runs[w] = m[w].warm_done + m[w].runs + c->row[w].more_runs;
	pass(job, c, bytes, m);
	for (int w = 0; w < job->where.way_count; w++)
		c->row[w].more_runs = runs[w];
}

void timing_measure(struct bench_job *job, uint64_t bytes, struct measure m[])
{
	const struct bench_budget before = job->got.budget;
	struct collective *c;
	uint64_t begin;

	if (job->def->layout != BENCH_ALL) {
		measure_size(job, bytes, m);
		return;
	}
	c = collective_open(job);
	c->clock_ns = bench_clock_ns();
	method_choose(job, c);
	begin = rg_now_ns();
	pass(job, c, bytes, m);
	if (c->method == BENCH_SYNC) {
		method_review(job, c, m);
		if (c->method != BENCH_SYNC)
			pass_again(job, c, bytes, m, before, begin);
	}
	if (job->opt.timing == BENCH_SYNC && c->method != BENCH_SYNC &&
	    !job->where.oversubscribed)
		tell_once(job, c, bytes);
}
