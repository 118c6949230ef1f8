/* away - a message whose sender is away from MPI until it is late (src/rail/message/late.h). */
#include <unistd.h>

#include "bench/bench.h"

static void away_run(struct bench *b)
{
	MPI_Request sent;

	if (b->side == 1) {
		MPI_Recv(b->rbuf, b->count, MPI_BYTE, b->peer, BENCH_TAG, b->comm, MPI_STATUS_IGNORE);
		return;
	}
	MPI_Isend(b->sbuf, b->count, MPI_BYTE, b->peer, BENCH_TAG, b->comm, &sent);
	usleep(10000);
	MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

const struct bench_def bench_def = {
	.name = "away",
	.summary = "Messages of a sender that computes",
	.metric = REPORT_LATENCY,
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.sblocks = bench_one,
	.rblocks = bench_one,
	.run = away_run,
	.expect = bench_from_peer,
	.sizes = "1M",
};
