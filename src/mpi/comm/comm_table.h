/*
 * comm_table.h - the table of communicators' records: the look-up by handle and by context.
 */
#ifndef RAILMPI_COMM_TABLE_H
#define RAILMPI_COMM_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/watch/call_count.h"
#include "util/compiler.h"

#pragma GCC visibility push(hidden)

/*
 * Each thread caches two handles, that of the last routed communicator and that of the
 * last native one.  The cache is invalid once any communicator has been freed or routed,
 * because handles are reused.
 */
struct comm_cache {
	MPI_Comm routed_handle;
	struct comm *routed;
	MPI_Comm native_handle;
	unsigned epoch;
};
extern _Atomic unsigned comm_epoch;
extern FAST_THREAD_LOCAL struct comm_cache comm_cache;

struct comm *comm_lookup_slow(MPI_Comm handle, enum call call);

static inline bool comm_cache_holds(const struct comm_cache *k)
{
	return k->epoch == atomic_load_explicit(&comm_epoch, memory_order_relaxed);
}

/*
 * The record of a routed communicator, NULL for any other handle, valid or not.  `call` is the
 * function that the program has called; see call_count.h.
 */
static inline struct comm *comm_lookup_of(MPI_Comm handle, enum call call)
{
	const struct comm_cache *k = &comm_cache;

	if (likely(comm_cache_holds(k))) {
		if (handle == k->native_handle)
			return NULL;
		if (handle == k->routed_handle)
			return k->routed;
	}
	return comm_lookup_slow(handle, call);
}

/* The same, uncounted. */
static inline struct comm *comm_lookup(MPI_Comm handle)
{
	return comm_lookup_of(handle, CALL_NONE);
}

struct comm *comm_by_context_slow(uint64_t context);
extern struct comm *comm_last_found;		/* the last found by context; inside layer_enter */

/* NULL: not known (yet). */
static inline struct comm *comm_by_context(uint64_t context)
{
	struct comm *c = comm_last_found;

	return likely(c && c->context == context) ? c : comm_by_context_slow(context);
}

/*
 * True: the test is true of a routed communicator.  The search stops at the first, which test may
 * change.
 */
bool comm_some(bool (*test)(struct comm *c, uint64_t arg), uint64_t arg);

void comm_unref_last(struct comm *c);		/* the last reference is gone */

/* ---- The table, for comm.c ---------------------------------------------------------------- */

/* The attribute of a routed communicator that points to its record. */
extern int comm_keyval;

/* Inside layer_enter, with c->context set.  Messages find the record from here on. */
void comm_table_insert(struct comm *c);
/* Free a record that is not in the table. */
void comm_free(struct comm *c);
/* Inside layer_enter: visit each record.  visit may release operations of the record. */
void comm_table_each(void (*visit)(struct comm *c, uint64_t arg), uint64_t arg);
/* Before MPI_Finalize: delete the attributes of all records that are left, and free them. */
void comm_table_end(void);

#pragma GCC visibility pop

#endif
