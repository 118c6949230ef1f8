/* bw - a window of messages back to back, then a small reply. */
#include "bench.h"

static void bw_run(struct bench *b)
{
	char ack[4] = { 0 };
	int i;

	if (b->side == 0) {
		for (i = 0; i < b->window; i++)
			MPI_Isend(b->sbuf + i * b->step, b->count, MPI_BYTE, b->peer, BENCH_TAG,
				  b->comm, &b->request[i]);
		MPI_Waitall(b->window, b->request, MPI_STATUSES_IGNORE);
		MPI_Recv(ack, sizeof(ack), MPI_BYTE, b->peer, BENCH_ACK_TAG, b->comm,
			 MPI_STATUS_IGNORE);
	} else {
		for (i = 0; i < b->window; i++)
			MPI_Irecv(b->rbuf + i * b->step, b->count, MPI_BYTE, b->peer, BENCH_TAG,
				  b->comm, &b->request[i]);
		MPI_Waitall(b->window, b->request, MPI_STATUSES_IGNORE);
		MPI_Send(ack, sizeof(ack), MPI_BYTE, b->peer, BENCH_ACK_TAG, b->comm);
	}
}

const struct bench_def bench_def = {
	.name = "bw",
	.summary = "Uni-directional bandwidth",
	.metric = BENCH_BANDWIDTH,
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.messages = bench_window,
	.sblocks = bench_window_side0,
	.rblocks = bench_window_side1,
	.run = bw_run,
	.expect = bench_from_peer,
};
