/* bw - bandwidth of a window of messages back to back, followed by a small reply. */
#include "bench/bench.h"

const struct bench_def bench_def = {
	.name = "bw",
	.summary = "Uni-directional bandwidth",
	.metric = REPORT_BANDWIDTH,
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.messages = bench_window,
	.sblocks = bench_window_side0,
	.rblocks = bench_window_side1,
	.run = bench_run_window,
	.expect = bench_from_peer,
};
