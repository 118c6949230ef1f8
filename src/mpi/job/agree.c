/* agree.c - steps of the start that can fail on some ranks. */
#include "mpi/job/agree.h"

#include "mpi/comm/peers.h"
#include "mpi/job/progress.h"
#include "mpi/job/start_coll.h"
#include "util/err.h"

static bool has_hosts(void)
{
	for (int r = 1; world_node_of && r < layer.world_size; r++)
		if (world_node_of[r] != world_node_of[0])
			return true;
	return false;
}

int agree(int rc)
{
	int mine[2] = { rc ? layer.world_rank : layer.world_size, rc != 0 }, all[2];

	start_allreduce(mine, all, 2, MPI_INT, MPI_MIN);
	if (!all[1] && rc && has_hosts())
		rg_errors_place(world_host_of[layer.world_rank]);
	rg_errors_release(all[0] == layer.world_rank);
	if (all[0] == layer.world_size)
		return 0;
	start_bcast(&rc, 1, MPI_INT, all[0]);
	return rc;
}
