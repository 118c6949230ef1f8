/* common_rails.h - the rails that all hosts of the job have, among their RDMA ports. */
#ifndef RAILMPI_COMMON_RAILS_H
#define RAILMPI_COMMON_RAILS_H

struct rail_hosts;

#pragma GCC visibility push(hidden)

/*
 * Collective over MPI_COMM_WORLD, of world_node_of.  0, or -errno on all ranks, one of which has said
 * why.
 */
int common_rails(struct rail_hosts **out);
/* A line of rank 0 about the connections of a job that has begun: one that is refused has another line. */
void common_rails_tell(void);

#pragma GCC visibility pop

#endif
