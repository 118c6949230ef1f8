/*
 * catch_up.c - calls that ask the MPI library after messages over rails.
 *
 * A message over rails may overtake messages of the library's own that were sent before.  Natively
 * both take one path: where the later one has been received, the earlier ones are there.  So the
 * first call after a message over rails that asks the library whether something has come, and does
 * not wait for it, lets the library look first.  MPI_Test and its like are in wait.c, probes in
 * probe.c.
 */
#include "mpi/job/catch_up.h"

#include "mpi/abi/native.h"
#include "mpi/job/library.h"
#include "mpi/job/progress.h"

enum {
	/*
	 * Rounds of the library's progress.  MPICH takes one message from shared memory in a round,
	 * and a sender has 64 cells there; Open MPI takes 31.  After a collective: all that each
	 * rank has sent.  After a message: the little that its sender has just sent.
	 */
	ROUNDS_COLLECTIVE = 64,
	ROUNDS_MESSAGE = 4,
};

void layer_catch_up_slow(unsigned events)
{
	bool collected = atomic_exchange_explicit(&layer.collected, false, memory_order_relaxed);

	atomic_store_explicit(&layer.caught_up, events, memory_order_relaxed);
	if (!layer.rails)
		return;		/* the layer has stopped */
	library_turns(collected ? ROUNDS_COLLECTIVE : ROUNDS_MESSAGE);
}

int MPI_Win_test(MPI_Win win, int *flag)
{
	layer_catch_up();
	return native.Win_test(win, flag);
}
BOTH(Win_test);

#ifdef HAVE_MPI_PARRIVED
int MPI_Parrived(MPI_Request request, int partition, int *flag)
{
	layer_catch_up();
	return native.Parrived(request, partition, flag);
}
BOTH(Parrived);

/* Sends now or later, as the other end has allowed. */
int MPI_Pready(int partition, MPI_Request request)
{
	layer_catch_up();
	return native.Pready(partition, request);
}
BOTH(Pready);

int MPI_Pready_range(int low, int high, MPI_Request request)
{
	layer_catch_up();
	return native.Pready_range(low, high, request);
}
BOTH(Pready_range);

/* MPICH 4.0 has no const there. */
typedef __typeof__(_Generic(&PMPI_Pready_list, int (*)(int, int *, MPI_Request): (int *)NULL,
			    default: (const int *)NULL)) partition_list;

int MPI_Pready_list(int count, partition_list partitions, MPI_Request request)
{
	layer_catch_up();
	return native.Pready_list(count, partitions, request);
}
BOTH(Pready_list);
#endif
