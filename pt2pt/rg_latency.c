/* latency - half of the round trip of a message and its answer. */
#include "bench/bench.h"

static void latency_run(struct bench *b)
{
	if (b->side == 0) {
		MPI_Send(b->sbuf, b->count, MPI_BYTE, b->peer, BENCH_TAG, b->comm);
		MPI_Recv(b->rbuf, b->count, MPI_BYTE, b->peer, BENCH_TAG, b->comm,
			 MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(b->rbuf, b->count, MPI_BYTE, b->peer, BENCH_TAG, b->comm,
			 MPI_STATUS_IGNORE);
		MPI_Send(b->sbuf, b->count, MPI_BYTE, b->peer, BENCH_TAG, b->comm);
	}
}

const struct bench_def bench_def = {
	.name = "latency",
	.summary = "One-way latency",
	.metric = REPORT_LATENCY,
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.messages = bench_two,
	.sblocks = bench_one,
	.rblocks = bench_one,
	.run = latency_run,
	.expect = bench_from_peer,
	.sizes = "0:4M",
};
