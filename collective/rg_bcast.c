/* bcast - every rank gets the block of rank 0. */
#include "bench/bench.h"

static void bcast_run(struct bench *b)
{
	MPI_Bcast(b->rank == 0 ? b->sbuf : b->rbuf, b->count, MPI_BYTE, 0, b->comm);
}

static int bcast_rblocks(const struct bench *b)
{
	return b->rank != 0;
}

static struct bench_origin bcast_expect(const struct bench *b, int block)
{
	return (struct bench_origin){ .rank = 0, .block = 0 };
}

const struct bench_def bench_def = {
	.name = "bcast",
	.summary = "MPI_Bcast latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.sblocks = bench_one_at_root,
	.rblocks = bcast_rblocks,
	.run = bcast_run,
	.expect = bcast_expect,
};
