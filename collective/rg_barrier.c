/* barrier - no rank leaves before all have entered: no data, hence one row, of size 0. */
#include "bench/bench.h"

static void barrier_run(struct bench *b)
{
	MPI_Barrier(b->comm);
}

const struct bench_def bench_def = {
	.name = "barrier",
	.summary = "MPI_Barrier latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.run = barrier_run,
	.sizes = "0",
};
