/* bibw - bandwidth of a window of messages in each direction at once. */
#include "bench/bench.h"

static void bibw_run(struct bench *b)
{
	MPI_Request *sent = b->request + b->window;
	int i;

	for (i = 0; i < b->window; i++)
		MPI_Irecv(b->rbuf + i * b->step, b->count, MPI_BYTE, b->peer, BENCH_TAG, b->comm,
			  &b->request[i]);
	for (i = 0; i < b->window; i++)
		MPI_Isend(b->sbuf + i * b->step, b->count, MPI_BYTE, b->peer, BENCH_TAG, b->comm,
			  &sent[i]);
	MPI_Waitall(2 * b->window, b->request, MPI_STATUSES_IGNORE);
}

const struct bench_def bench_def = {
	.name = "bibw",
	.summary = "Bi-directional bandwidth",
	.metric = REPORT_BANDWIDTH,
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.messages = bench_two_windows,
	.sblocks = bench_window,
	.rblocks = bench_window,
	.run = bibw_run,
	.expect = bench_from_peer,
};
