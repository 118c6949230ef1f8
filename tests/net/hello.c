/*
 * hello.c - each rank says its host, its number, and how many ranks share memory with it; "hello silent": its number
 * alone, without a message.  With a directory as RG_MEET, a rank tells in its file rank.N that it is there, and
 * waits for the file "end", for a minute at most.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/abi/endpoints_stay.h"

static void meet(int rank)
{
	const char *dir = getenv("RG_MEET");
	char path[512];
	FILE *f;

	if (!dir)
		return;
	snprintf(path, sizeof(path), "%s/rank.%d", dir, rank);
	f = fopen(path, "w");
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "%s/end", dir);
	for (int turn = 0; turn < 600 && access(path, F_OK); turn++)
		usleep(100000);
}

int main(int argc, char **argv)
{
	int rank, ranks, together, sum = 0;
	char host[256] = "";
	MPI_Comm node;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc > 1 && !strcmp(argv[1], "silent")) {
		printf("rank %d of %d\n", rank, ranks);
		endpoints_stay();
		MPI_Finalize();
		return 0;
	}
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &together);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	gethostname(host, sizeof(host) - 1);
	printf("%s: rank %d of %d, %d on this host, sum %d\n", host, rank, ranks, together, sum);
	MPI_Comm_free(&node);
	meet(rank);
	MPI_Barrier(MPI_COMM_WORLD);
	endpoints_stay();
	MPI_Finalize();
	return 0;
}
