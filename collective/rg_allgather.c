/* allgather - every rank gets one block of every rank. */
#include "bench/bench.h"

static void allgather_run(struct bench *b)
{
	MPI_Allgather(b->sbuf, b->count, MPI_BYTE, b->rbuf, b->count, MPI_BYTE, b->comm);
}

const struct bench_def bench_def = {
	.name = "allgather",
	.summary = "MPI_Allgather latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.sblocks = bench_one,
	.rblocks = bench_per_rank,
	.run = allgather_run,
	.expect = bench_from_each,
};
