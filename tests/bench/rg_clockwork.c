/*
 * clockwork - windows that take a known time: 4 ms in the first pair, 12 ms in
 * the second; every tenth takes three times as long.  So every number of a row
 * is known beforehand.
 */
#include <time.h>

#include "bench.h"

static void clockwork_run(struct bench *b)
{
	static int runs;
	long ms = b->pair == 0 ? 4 : 12;
	struct timespec t = { .tv_nsec = (runs++ % 10 == 9 ? 3 : 1) * ms * 1000000 };

	if (b->side == 0)
		nanosleep(&t, NULL);
}

const struct bench_def bench_def = {
	.name = "clockwork",
	.summary = "Known times",
#ifdef CLOCKWORK_RATE
	.metric = BENCH_BANDWIDTH,
#else
	.metric = BENCH_LATENCY,
#endif
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.messages = bench_window,
	.run = clockwork_run,
};
