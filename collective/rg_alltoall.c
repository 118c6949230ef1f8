/* alltoall - every rank exchanges one block with every rank. */
#include "bench/bench.h"

static void alltoall_run(struct bench *b)
{
	MPI_Alltoall(b->sbuf, b->count, MPI_BYTE, b->rbuf, b->count, MPI_BYTE, b->comm);
}

const struct bench_def bench_def = {
	.name = "alltoall",
	.summary = "MPI_Alltoall latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.sblocks = bench_per_rank,
	.rblocks = bench_per_rank,
	.run = alltoall_run,
	.expect = bench_to_me,
};
