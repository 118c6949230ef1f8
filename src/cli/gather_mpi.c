/*
 * gather_mpi.c - railgauge-gather-openmpi, -mpich RANKS: rank 0 writes the standard input of every
 * rank to its standard output, a line each, empty ones left out.  gather.c starts it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpi/abi/endpoints_stay.h"
#include "cli/gather_mpi.h"

enum { TAG = 1, STEP = 1 << 16 };

static void *must(void *memory)
{
	if (!memory)
		MPI_Abort(MPI_COMM_WORLD, GATHER_NO_MEMORY);
	return memory;
}

/* Standard input to its end. */
static char *text_read(int *bytes)
{
	char *text = must(malloc(STEP));
	ssize_t n;

	*bytes = 0;
	while ((n = read(STDIN_FILENO, text + *bytes, STEP)) > 0) {
		*bytes += (int)n;
		text = must(realloc(text, (size_t)*bytes + STEP));
	}
	return text;
}

static void line_write(const char *text, int bytes)
{
	if (bytes) {
		fwrite(text, 1, (size_t)bytes, stdout);
		putchar('\n');
	}
}

static void line_receive(int rank)
{
	MPI_Status status;
	char *text;
	int bytes;

	MPI_Probe(rank, TAG, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_CHAR, &bytes);
	text = must(malloc((size_t)bytes + 1));
	MPI_Recv(text, bytes, MPI_CHAR, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	line_write(text, bytes);
	free(text);
}

static void gather(int rank, int size, const char *text, int bytes)
{
	if (rank)
		MPI_Send(text, bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
	else
		line_write(text, bytes);
	for (int i = 1; !rank && i < size; i++)
		line_receive(i);
}

int main(int argc, char **argv)
{
	int rank, size, bytes, wrong;
	char *text;

	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	wrong = argc != 2 || size != atoi(argv[1]);
	if (!wrong) {
		text = text_read(&bytes);
		gather(rank, size, text, bytes);
		free(text);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	endpoints_stay();
	MPI_Finalize();
	return wrong ? GATHER_OTHER_JOB : fflush(stdout) ? GATHER_NO_MEMORY : 0;
}
