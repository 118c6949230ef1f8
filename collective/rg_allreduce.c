/* allreduce - every rank gets the sum of all ranks' blocks. */
#include "bench/bench.h"

static void allreduce_run(struct bench *b)
{
	MPI_Allreduce(b->sbuf, b->rbuf, b->count / 4, MPI_UINT32_T, MPI_SUM, b->comm);
}

const struct bench_def bench_def = {
	.name = "allreduce",
	.summary = "MPI_Allreduce latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.unit = 4,
	.sblocks = bench_one,
	.rblocks = bench_one,
	.run = allreduce_run,
	.expect = bench_sum,
	.sizes = "4:1M",
};
