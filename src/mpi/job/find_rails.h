/* find_rails.h - the interfaces over which all hosts of the job reach each other. */
#ifndef RAILMPI_FIND_RAILS_H
#define RAILMPI_FIND_RAILS_H

#include "mpi/job/hello.h"

#pragma GCC visibility push(hidden)

/*
 * Collective over MPI_COMM_WORLD, by native collectives alone; one process of each host probes.  all: the
 * hellos of all ranks.  Rank 0 prints a line about each interface that is left out.  *soft: net= with the
 * rails as this host names them, for --soft; static.  0, or -errno on all ranks, each with an error line.
 */
int find_rails(const struct hello *all, const char **soft);

#pragma GCC visibility pop

#endif
