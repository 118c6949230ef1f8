/*
 * start_coll.h - collectives of the MPI library over MPI_COMM_WORLD, for the start and the end of the layer.
 *
 * The library's own waits keep the processor.  Where ranks outnumber cores, and the library does not know it,
 * each collective would take a time slice.  These give way.
 */
#ifndef RAILMPI_START_COLL_H
#define RAILMPI_START_COLL_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi/abi/native.h"

#pragma GCC visibility push(hidden)

/* Give way in round number `round` of a loop that waits for other ranks: longer after many rounds. */
void start_pause(unsigned round);
/* True: the request is done before `limit_ns` are over; UINT64_MAX: no limit. */
bool start_await(MPI_Request *request, uint64_t limit_ns);

void start_allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op);
void start_reduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op);	/* to rank 0 */
void start_allgather(const void *mine, int bytes, void *all);
/* Parts of bytes; `mine` may be MPI_IN_PLACE. */
void start_iallgatherv(const void *mine, int bytes, void *all, const int counts[], const int at[],
		       MPI_Request *request);
void start_allgatherv(const void *mine, int bytes, void *all, const int counts[], const int at[]);
void start_bcast(void *buffer, int count, MPI_Datatype type, int from);

#pragma GCC visibility pop

#endif
