/* die.c - the end of a job that cannot go on. */
#include "vbench/die.h"

#include <mpi.h>

#include "util/err.h"

void vb_die(const char *what, const char *why)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	rg_set_quiet(false);
	rg_error("rank %d: %s: %s", rank, what, why);
	rg_let_launcher_read();
	MPI_Abort(MPI_COMM_WORLD, RG_EXIT_FAULT);
}
