/*
 * hello.c - each rank says its host, its number, and how many ranks share memory with it; "hello silent": its number
 * alone, without a message.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mpi/abi/endpoints_stay.h"

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
	MPI_Barrier(MPI_COMM_WORLD);
	endpoints_stay();
	MPI_Finalize();
	return 0;
}
