/* blocks.c - small functions for the members of bench_def. */
#include "bench/bench.h"

int bench_one(const struct bench *b)
{
	return 1;
}

int bench_two(const struct bench *b)
{
	return 2;
}

int bench_per_rank(const struct bench *b)
{
	return b->size;
}

int bench_one_at_root(const struct bench *b)
{
	return b->rank == 0;
}

int bench_per_rank_at_root(const struct bench *b)
{
	return b->rank == 0 ? b->size : 0;
}

int bench_window(const struct bench *b)
{
	return b->window;
}

int bench_two_windows(const struct bench *b)
{
	return 2 * b->window;
}

int bench_window_side0(const struct bench *b)
{
	return b->side == 0 ? b->window : 0;
}

int bench_window_side1(const struct bench *b)
{
	return b->side == 1 ? b->window : 0;
}

struct bench_origin bench_from_peer(const struct bench *b, int block)
{
	return (struct bench_origin){ .rank = b->peer, .block = block };
}

struct bench_origin bench_from_each(const struct bench *b, int block)
{
	return (struct bench_origin){ .rank = block, .block = 0 };
}

struct bench_origin bench_to_me(const struct bench *b, int block)
{
	return (struct bench_origin){ .rank = block, .block = b->rank };
}

struct bench_origin bench_sum(const struct bench *b, int block)
{
	return (struct bench_origin){ .rank = BENCH_SUM, .block = block };
}

void bench_run_window(struct bench *b)
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
