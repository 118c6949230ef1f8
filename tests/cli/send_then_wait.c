/*
 * send_then_wait.c - rank 0 sends a burst of small messages and then waits in a
 * collective, without another call that could push what has not left yet; the
 * last rank receives first and joins later.  MPI promises that this ends: a send
 * that has returned needs no further help from its program.
 *
 * Before that, what MPI does not promise, but programs trust in: the very first
 * messages to a rank are small, and it joins a collective before it receives them.
 *
 * Usage: send_then_wait [send|isend|sendrecv|start], how those are sent
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 256, BYTES = 512, ROUNDS = 20 };

static void say(const char *how, const char buffer[8], int to, int tag)
{
	MPI_Request request;

	if (strcmp(how, "isend") == 0) {
		MPI_Isend(buffer, 8, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else if (strcmp(how, "sendrecv") == 0) {
		MPI_Sendrecv(buffer, 8, MPI_BYTE, to, tag, NULL, 0, MPI_BYTE, MPI_PROC_NULL, tag,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (strcmp(how, "start") == 0) {
		MPI_Send_init(buffer, 8, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
		MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Request_free(&request);
	} else {
		MPI_Send(buffer, 8, MPI_BYTE, to, tag, MPI_COMM_WORLD);
	}
}

static void first_words(const char *how, int rank, int size)
{
	char buffer[8] = { 0 };

	for (int i = 0; i < 8 && rank == 0; i++) {
		buffer[0] = (char)i;
		say(how, buffer, size - 1, i);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 8 && rank == size - 1; i++) {
		MPI_Recv(buffer, (int)sizeof(buffer), MPI_BYTE, 0, i, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (buffer[0] != i)
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	static char buffer[BYTES];
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	first_words(argc > 1 ? argv[1] : "send", rank, size);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < COUNT; i++) {
			if (rank == 0)
				MPI_Send(buffer, BYTES, MPI_BYTE, size - 1, i, MPI_COMM_WORLD);
			if (rank == size - 1)
				MPI_Recv(buffer, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD,
					 MPI_STATUS_IGNORE);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("done\n");
	MPI_Finalize();
	return 0;
}
