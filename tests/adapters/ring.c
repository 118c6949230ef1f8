/*
 * ring.c - an MPI program that knows nothing of rails: each rank sends to the next one, and checks.
 *
 *	ring all	to all, itself first
 *	ring late	4 s after the start
 *	ring busy	then ranks 1 and 3 of four go on for 10 s, while the others are in no call of MPI
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1 << 20, BUSY_SECONDS = 10, LATE_SECONDS = 4 };

static int rank, size;

static unsigned char byte_of(int who, size_t i)
{
	return (unsigned char)((size_t)who * 31 + i * 7 + (i >> 8));
}

static void pass_on(unsigned char *out, unsigned char *in, size_t bytes, int by)
{
	const int next = (rank + by) % size, last = (rank + size - by) % size;

	for (size_t i = 0; i < bytes; i++)
		out[i] = byte_of(rank, i);
	memset(in, 0, bytes);
	MPI_Sendrecv(out, (int)bytes, MPI_BYTE, next, 5, in, (int)bytes, MPI_BYTE, last, 5,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (size_t i = 0; i < bytes; i++)
		if (in[i] != byte_of(last, i)) {
			fprintf(stderr, "ring: byte %zu of %zu is wrong\n", i, bytes);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

static void go_on(unsigned char *out, unsigned char *in)
{
	const double end = MPI_Wtime() + BUSY_SECONDS;

	if (rank % 2 == 0)
		sleep(BUSY_SECONDS);
	else
		while (MPI_Wtime() < end)
			pass_on(out, in, MOST, size / 2);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	const bool all = strcmp(mode, "all") == 0, busy = strcmp(mode, "busy") == 0;
	unsigned char *out = malloc(MOST), *in = malloc(MOST);
	int sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (strcmp(mode, "late") == 0)
		sleep(LATE_SECONDS);
	for (size_t bytes = 1; out && in && bytes <= MOST; bytes *= 4)
		for (int by = all ? 0 : 1; by < (all ? size : 2); by++)
			pass_on(out, in, bytes, by);
	if (busy && out && in)
		go_on(out, in);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("ring of %d: %d\n", size, sum);
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
