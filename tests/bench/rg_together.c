/*
 * together - a collective of known times, by a clock of its own (known_clock.h): rank r takes r + 1
 * ms.  A barrier's row is the largest, OMB's the mean over ranks.
 */
#include "bench/bench.h"
#include "known_clock.h"

static void together_run(struct bench *b)
{
	known_clock_pass(((uint64_t)b->rank + 1) * 1000000);
}

const struct bench_def bench_def = {
	.name = "together",
	.summary = "Known times of ranks",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.run = together_run,
};
