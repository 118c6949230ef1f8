/* reduce - rank 0 gets the sum of all ranks' blocks. */
#include "bench/bench.h"

static void reduce_run(struct bench *b)
{
	MPI_Reduce(b->sbuf, b->rbuf, b->count / 4, MPI_UINT32_T, MPI_SUM, 0, b->comm);
}

const struct bench_def bench_def = {
	.name = "reduce",
	.summary = "MPI_Reduce latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.unit = 4,
	.sblocks = bench_one,
	.rblocks = bench_one_at_root,
	.run = reduce_run,
	.expect = bench_sum,
	.sizes = "4:1M",
};
