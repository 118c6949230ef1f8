/* scatter - every rank gets one block of rank 0. */
#include "bench/bench.h"

static void scatter_run(struct bench *b)
{
	MPI_Scatter(b->sbuf, b->count, MPI_BYTE, b->rbuf, b->count, MPI_BYTE, 0, b->comm);
}

static struct bench_origin scatter_expect(const struct bench *b, int block)
{
	return (struct bench_origin){ .rank = 0, .block = b->rank };
}

const struct bench_def bench_def = {
	.name = "scatter",
	.summary = "MPI_Scatter latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.sblocks = bench_per_rank_at_root,
	.rblocks = bench_one,
	.run = scatter_run,
	.expect = scatter_expect,
};
