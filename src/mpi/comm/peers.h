/* peers.h - the ranks of a communicator: their peers and their nodes. */
#ifndef RAILMPI_PEERS_H
#define RAILMPI_PEERS_H

#include "mpi/abi/native.h"
#include "rail/rail.h"

/* Tables by world rank, filled in by world.c. */
enum { WORLD_HOST_BYTES = 64 };
extern char (*world_host_of)[WORLD_HOST_BYTES];
extern struct rail_peer **world_peer;
extern unsigned *world_node_of;

/* The first rank of the communicator on another node than its rank 0; -1: none. */
int world_far_rank(MPI_Comm comm, int size);

/* peer[r] of the communicator's rank r.  0 or -errno. */
int world_peers(MPI_Comm comm, int size, struct rail_peer **peer);

#endif
