/*
 * call_count.h - the ledger by function: calls that went over rails or stayed native, bytes sent.
 *
 * Calls cost nothing unless --ledger asks for them.  A call looks its communicator up in the
 * thread's cache of handles (comm_lookup_of).  While calls are counted, that cache holds
 * nothing, so that every call takes the slow path, which counts it; otherwise only handles that
 * are new do.  So the fast path has no branch for it.
 *
 * Bytes are added where a message is handed to librail (send_start), always, to the function
 * that layer.call points at: two instructions.  Without --ledger that is CALL_NONE.  So the sum
 * over functions is the bytes that all rails together have sent.
 *
 * MPI_Start and receives of probed messages have no communicator to look up and are counted
 * always.  MPI_Startall counts as MPI_Start for each of its requests.
 */
#ifndef RAILMPI_CALL_COUNT_H
#define RAILMPI_CALL_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi/abi/native.h"

enum call {
	CALL_NONE,
#define X(name) CALL_##name,
	NATIVE_FUNCTIONS(X)
	NATIVE_LARGE_COUNT(X)
	NATIVE_ISENDRECV(X)
#undef X
	CALL_COUNT,
};

/* The reason why a call went to the library. */
enum native_reason {
	NATIVE_SELF = 1,		/* on MPI_COMM_SELF */
	NATIVE_INTER,			/* on an intercommunicator */
	NATIVE_COMM,			/* on another communicator that is not routed */
	NATIVE_OPTION,			/* --coll */
	NATIVE_OPERATION,		/* a reduction that the library has not, or only for one-sided calls */
	NATIVE_ARGUMENTS,		/* the library refuses some of them */
	NATIVE_REASONS,
};

struct call_count {
	_Atomic uint64_t routed, native;
	_Atomic uint64_t why[NATIVE_REASONS];	/* reasons of the native ones */
	uint64_t bytes;			/* sent over rails; changed inside layer_enter only */
};

extern struct call_count calls[CALL_COUNT];
extern bool calls_counted;

/* A call on this communicator: it is this thread's current one. */
void calls_count(enum call call, bool routed, MPI_Comm comm);
/* The current call of this thread goes to the library although its communicator is routed. */
void calls_leave_rails(enum native_reason why);
/* Under MPI_THREAD_MULTIPLE, with the lock held: layer.call is this thread's. */
void calls_resume(void);

/* From now on calls are counted. */
void calls_start(void);

#endif
