/* catch_up.h - the MPI library has its turn after events of rails. */
#ifndef RAILMPI_CATCH_UP_H
#define RAILMPI_CATCH_UP_H

#include <stdatomic.h>

#include "mpi/job/progress.h"
#include "util/compiler.h"

#pragma GCC visibility push(hidden)

void layer_catch_up_slow(unsigned events);

/*
 * Called before a call that asks the MPI library for arrivals, outside layer_enter.  Natively a
 * message is there if a later one has been received.
 */
static inline void layer_catch_up(void)
{
	const unsigned events = atomic_load_explicit(&layer.events, memory_order_relaxed);

	if (unlikely(events != atomic_load_explicit(&layer.caught_up, memory_order_relaxed)))
		layer_catch_up_slow(events);
}

#pragma GCC visibility pop

#endif
