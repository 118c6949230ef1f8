/* pairs - bandwidth of every pair of nodes, over each rail alone: finds a slow cable. */
#include "bench/bench.h"

const struct bench_def bench_def = {
	.name = "pairs",
	.summary = "Bandwidth of every pair of nodes, each rail alone",
	.metric = REPORT_BANDWIDTH,
	.layout = BENCH_TOURNAMENT,
	.min_ranks = 2,
	.messages = bench_window,
	.sblocks = bench_window_side0,
	.rblocks = bench_window_side1,
	.run = bench_run_window,
	.expect = bench_from_peer,
	.sizes = "1M",
};
