/*
 * lossy.c - with apps/rg_is.c, whose MPI_Alltoallv is called lossy_Alltoallv (Makefile.am): from
 * the second way on, what arrives at rank 0 is put where nobody looks.  (Rank 0 sends others
 * something else in each ranking; what it receives is always the same.)
 */
#undef MPI_Alltoallv
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

/* Those of one way: a ranking without a clock, and ten with it. */
enum { CALLS = 11 };

int lossy_Alltoallv(const void *sbuf, const int scounts[], const int sdispls[], MPI_Datatype stype,
		    void *rbuf, const int rcounts[], const int rdispls[], MPI_Datatype rtype,
		    MPI_Comm comm);

int lossy_Alltoallv(const void *sbuf, const int scounts[], const int sdispls[], MPI_Datatype stype,
		    void *rbuf, const int rcounts[], const int rdispls[], MPI_Datatype rtype,
		    MPI_Comm comm)
{
	static int calls;
	uint32_t *elsewhere;
	int rank, size, rc;

	MPI_Comm_rank(comm, &rank);
	if (calls++ < CALLS || rank)
		return MPI_Alltoallv(sbuf, scounts, sdispls, stype, rbuf, rcounts, rdispls, rtype,
				     comm);
	MPI_Comm_size(comm, &size);
	elsewhere = malloc(((size_t)rdispls[size - 1] + (size_t)rcounts[size - 1] + 1) *
			   sizeof(*elsewhere));
	if (!elsewhere)
		MPI_Abort(comm, 1);
	rc = MPI_Alltoallv(sbuf, scounts, sdispls, stype, elsewhere, rcounts, rdispls, rtype, comm);
	free(elsewhere);
	return rc;
}
