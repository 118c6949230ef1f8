/* reduce_scatter - each rank gets the sum of the blocks that all ranks hold for it. */
#include "bench/bench.h"

static void reduce_scatter_run(struct bench *b)
{
	MPI_Reduce_scatter(b->sbuf, b->rbuf, b->counts, MPI_UINT32_T, MPI_SUM, b->comm);
}

static struct bench_origin reduce_scatter_expect(const struct bench *b, int block)
{
	return (struct bench_origin){ .rank = BENCH_SUM, .block = b->rank };
}

const struct bench_def bench_def = {
	.name = "reduce_scatter",
	.summary = "MPI_Reduce_scatter latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.unit = 4,
	.lists = true,
	.sblocks = bench_per_rank,
	.rblocks = bench_one,
	.run = reduce_scatter_run,
	.expect = reduce_scatter_expect,
	.sizes = "4:1M",
};
