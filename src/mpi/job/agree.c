/* agree.c - steps of the start that can fail on some ranks. */
#include "mpi/job/agree.h"

#include "mpi/abi/native.h"
#include "mpi/job/progress.h"
#include "util/err.h"

int agree(int rc)
{
	int mine[2] = {rc ? layer.world_rank : layer.world_size, rc}, all[2];

	native.Allreduce(&mine[0], &all[0], 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	rg_errors_release(all[0] == layer.world_rank);
	if (all[0] == layer.world_size)
		return 0;
	native.Bcast(&mine[1], 1, MPI_INT, all[0], MPI_COMM_WORLD);
	return mine[1];
}
