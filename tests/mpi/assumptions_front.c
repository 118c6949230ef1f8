/* assumptions_front.c - a profiling tool: preloaded before the layer, it counts and passes on. */
/* Functions of mpi.h that we define must be seen outside; not every mpi.h says so. */
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop
#include <stdio.h>

static int sends, receives;

int MPI_Sendrecv(const void *sbuf, int scount, MPI_Datatype stype, int dest, int stag, void *rbuf,
		 int rcount, MPI_Datatype rtype, int source, int rtag, MPI_Comm comm,
		 MPI_Status *status)
{
	sends++;
	return PMPI_Sendrecv(sbuf, scount, stype, dest, stag, rbuf, rcount, rtype, source, rtag, comm,
			     status);
}

int MPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
	      MPI_Request *request)
{
	receives++;
	return PMPI_Irecv(buf, count, type, source, tag, comm, request);
}

int MPI_Finalize(void)
{
	int rank;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		printf("tool: %s\n", sends > 5 && receives > 1 ? "has seen all" : "has seen nothing");
	fflush(stdout);
	return PMPI_Finalize();
}
