/* alltoallv - as alltoall, with lists of sizes and displacements. */
#include "bench/bench.h"

static void alltoallv_run(struct bench *b)
{
	MPI_Alltoallv(b->sbuf, b->counts, b->displs, MPI_BYTE, b->rbuf, b->counts, b->displs,
		      MPI_BYTE, b->comm);
}

const struct bench_def bench_def = {
	.name = "alltoallv",
	.summary = "MPI_Alltoallv latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.lists = true,
	.sblocks = bench_per_rank,
	.rblocks = bench_per_rank,
	.run = alltoallv_run,
	.expect = bench_to_me,
};
