/*
 * ring.c - an MPI program that knows nothing of rails: each rank sends to the next one, and checks.
 * With an argument to all, itself first.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };

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

int main(int argc, char **argv)
{
	unsigned char *out = malloc(MOST), *in = malloc(MOST);
	int sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (size_t bytes = 1; out && in && bytes <= MOST; bytes *= 4)
		for (int by = argc > 1 ? 0 : 1; by < (argc > 1 ? size : 2); by++)
			pass_on(out, in, bytes, by);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("ring of %d: %d\n", size, sum);
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
