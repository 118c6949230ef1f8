/* allgatherv - as allgather, with lists of sizes and displacements. */
#include "bench/bench.h"

static void allgatherv_run(struct bench *b)
{
	MPI_Allgatherv(b->sbuf, b->count, MPI_BYTE, b->rbuf, b->counts, b->displs, MPI_BYTE,
		       b->comm);
}

const struct bench_def bench_def = {
	.name = "allgatherv",
	.summary = "MPI_Allgatherv latency",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.lists = true,
	.sblocks = bench_one,
	.rblocks = bench_per_rank,
	.run = allgatherv_run,
	.expect = bench_from_each,
};
