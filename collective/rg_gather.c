/* gather - rank 0 gets one block of every rank. */
#include "bench/bench.h"

static void gather_run(struct bench *b)
{
	MPI_Gather(b->sbuf, b->count, MPI_BYTE, b->rbuf, b->count, MPI_BYTE, 0, b->comm);
}

const struct bench_def bench_def = {
	.name = "gather",
	.summary = "MPI_Gather latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.sblocks = bench_one,
	.rblocks = bench_per_rank_at_root,
	.run = gather_run,
	.expect = bench_from_each,
};
