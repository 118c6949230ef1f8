/* catch_up.h - the MPI library has its turn behind events of rails. */
#ifndef RAILMPI_CATCH_UP_H
#define RAILMPI_CATCH_UP_H

#include <stdatomic.h>

#include "mpi/abi/compiler.h"
#include "mpi/job/progress.h"

#pragma GCC visibility push(hidden)

void layer_catch_up_slow(unsigned events);

/*
 * Before a call asks the MPI library whether something has come, outside layer_enter.  Natively what
 * was sent before a message that has been received would be there.
 */
static inline void layer_catch_up(void)
{
	const unsigned events = atomic_load_explicit(&layer.events, memory_order_relaxed);

	if (unlikely(events != atomic_load_explicit(&layer.caught_up, memory_order_relaxed)))
		layer_catch_up_slow(events);
}

#pragma GCC visibility pop

#endif
