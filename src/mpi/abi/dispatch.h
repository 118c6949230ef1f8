/*
 * dispatch.h - dispatch of a call: to the library's function or to the layer's.
 *
 * A native communicator must cost nothing.  So the exported function has no frame and ends
 * in a jump to the library's function or to the routed one.  The routed one takes the record
 * in place of the handle, so that no argument moves.
 */
#ifndef RAILMPI_DISPATCH_H
#define RAILMPI_DISPATCH_H

#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "util/compiler.h"

/*
 * Define MPI_NAME and PMPI_NAME.  Follows the definition of NAME_routed.
 *
 *	PARAMS	the MPI call's parameters in parentheses, with the communicator as
 *		`MPI_Comm comm`; NAME_routed has `struct comm *` there
 *	ARGS	a macro: ARGS(x) is the list of arguments with x for the communicator
 */
#define DISPATCH(NAME, PARAMS, ARGS)                                                               \
	static __attribute__((noinline)) int NAME##_unknown PARAMS                                 \
	{                                                                                          \
		struct comm *c = comm_lookup_slow(comm, CALL_##NAME);                              \
                                                                                                   \
		return c ? NAME##_routed ARGS(c) : native.NAME ARGS(comm);                         \
	}                                                                                          \
                                                                                                   \
	int MPI_##NAME PARAMS                                                                      \
	{                                                                                          \
		const struct comm_cache *k = &comm_cache;                                          \
                                                                                                   \
		if (likely(comm_cache_holds(k))) {                                                 \
			if (comm == k->native_handle)                                              \
				return native.NAME ARGS(comm);                                     \
			if (comm == k->routed_handle)                                              \
				return NAME##_routed ARGS(k->routed);                              \
		}                                                                                  \
		return NAME##_unknown ARGS(comm);                                                  \
	}                                                                                          \
	BOTH(NAME);

#define ROUTED __attribute__((noinline)) int

#endif
