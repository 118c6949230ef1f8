/* mr - small messages per second: windows of them, each followed by a small reply. */
#include "bench/bench.h"

const struct bench_def bench_def = {
	.name = "mr",
	.summary = "Message rate",
	.metric = REPORT_RATE,
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.messages = bench_window,
	.sblocks = bench_window_side0,
	.rblocks = bench_window_side1,
	.run = bench_run_window,
	.expect = bench_from_peer,
	.sizes = "1:8K",
};
