/* peers.c - the ranks of a communicator: their peers and their nodes. */
#include "mpi/comm/peers.h"

#include <errno.h>
#include <stdlib.h>

#include "mpi/abi/native.h"

struct rail_peer **world_peer;
unsigned *world_node_of;
char (*world_host_of)[WORLD_HOST_BYTES];

/* The communicator's own ranks, then as many world ranks; free() them.  NULL: no memory. */
static int *ranks_of(MPI_Comm comm, int size)
{
	int *ranks = malloc((size_t)size * 2 * sizeof(*ranks)), i;
	MPI_Group world, group;

	if (!ranks)
		return NULL;
	for (i = 0; i < size; i++)
		ranks[i] = i;
	native.Comm_group(MPI_COMM_WORLD, &world);
	native.Comm_group(comm, &group);
	native.Group_translate_ranks(group, size, ranks, world, ranks + size);
	native.Group_free(&group);
	native.Group_free(&world);
	return ranks;
}

int world_far_rank(MPI_Comm comm, int size)
{
	int *ranks = ranks_of(comm, size), i, far = -1;

	if (!ranks)
		native_end("out of memory for the ranks of a communicator");
	for (i = 1; i < size && far < 0; i++)
		if (ranks[size] != MPI_UNDEFINED && ranks[size + i] != MPI_UNDEFINED &&
		    world_node_of[ranks[size + i]] != world_node_of[ranks[size]])
			far = i;
	free(ranks);
	return far;
}

int world_peers(MPI_Comm comm, int size, struct rail_peer **peer)
{
	int *ranks = ranks_of(comm, size), i;

	if (!ranks)
		return -ENOMEM;
	for (i = 0; i < size; i++)
		peer[i] = ranks[size + i] == MPI_UNDEFINED ? NULL : world_peer[ranks[size + i]];
	for (i = 0; i < size && peer[i]; i++)
		;
	free(ranks);
	return i == size ? 0 : -EINVAL;
}
