/*
 * late_end.c - rank 1 comes to MPI_Finalize later than all others, after a collective
 * whose messages go one way only.  The job ends all the same (src/mpi/job/init.c).
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	MPI_Request barrier;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
	MPI_Wait(&barrier, MPI_STATUS_IGNORE);
	if (rank == 1)
		usleep(300000);
	MPI_Finalize();
	if (rank == 0)
		printf("ended\n");
	return 0;
}
