/*
 * clockwork - windows that take a known time, by a clock of their own (known_clock.h): 4 ms in
 * the first pair, 12 ms in the second; every tenth takes three times as long.  So every number
 * of a row is known beforehand.  With --shared all pairs need one resource, which has room for
 * one window of 4 ms: of windows that begin at the same time, those of the k-th pair end k-th.
 */
#include "bench/bench.h"
#include "known_clock.h"

static struct clockwork_values { bool shared; } values;

static const struct opt rows[] = {
	{ .name = "shared", .type = OPT_FLAG, .offset = offsetof(struct clockwork_values, shared),
	  .help = "pairs take turns" },
	{ .name = NULL },
};

static void clockwork_run(struct bench *b)
{
	static int runs;
	uint64_t ms = b->pair == 0 ? 4 : 12;

	if (values.shared) {
		known_clock_meet();
		ms = 4 * ((uint64_t)b->pair + 1);
	} else if (runs++ % 10 == 9) {
		ms *= 3;
	}
	if (b->side == 0)
		known_clock_pass(ms * 1000000);
}

const struct bench_def bench_def = {
	.name = "clockwork",
	.summary = "Known times",
#ifdef CLOCKWORK_RATE
	.metric = REPORT_BANDWIDTH,
#else
	.metric = REPORT_LATENCY,
#endif
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.messages = bench_window,
	.run = clockwork_run,
	.options = rows,
	.values = &values,
};
