/*
 * comm_table.c - records of routed communicators.
 *
 * The context of a message, or the program's handle, leads to a record.  The last operation
 * that holds a record frees it.
 */
#include "mpi/comm/comm_table.h"

#include <stdlib.h>

#include "mpi/abi/native.h"
#include "mpi/coll/coll_learn.h"
#include "mpi/comm/comm.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/unexpected.h"
#include "mpi/watch/call_count.h"
#include "util/compiler.h"

enum { BUCKETS = 1024 };

static struct comm *buckets[BUCKETS];
struct comm *comm_last_found;
int comm_keyval = MPI_KEYVAL_INVALID;

/* A handle that no program passes, not even by mistake. */
#define NO_HANDLE ((MPI_Comm)(intptr_t)-1)

_Atomic unsigned comm_epoch = 1;
FAST_THREAD_LOCAL struct comm_cache comm_cache;

static struct comm **bucket(uint64_t context)
{
	return &buckets[(context * 0x9e3779b97f4a7c15u) >> 54];
}

struct comm *comm_by_context_slow(uint64_t context)
{
	struct comm *c;

	for (c = *bucket(context); c; c = c->next)
		if (c->context == context) {
			comm_last_found = c;
			return c;
		}
	return NULL;
}

bool comm_some(bool (*test)(struct comm *c, uint64_t arg), uint64_t arg)
{
	struct comm *c;
	int b;

	for (b = 0; b < BUCKETS; b++)
		for (c = buckets[b]; c; c = c->next)
			if (test(c, arg))
				return true;
	return false;
}

void comm_table_each(void (*visit)(struct comm *c, uint64_t arg), uint64_t arg)
{
	struct comm *c, *next;
	int b;

	for (b = 0; b < BUCKETS; b++)
		for (c = buckets[b]; c; c = next) {
			c->refs++;
			visit(c, arg);
			next = c->next;
			if (--c->refs == 0)
				comm_unref_last(c);
		}
}

struct comm *comm_lookup_slow(MPI_Comm handle, enum call call)
{
	struct comm_cache *k = &comm_cache;
	/* Read before the look: a communicator freed after it makes the answer stale. */
	unsigned epoch = atomic_load(&comm_epoch);
	struct comm *c = NULL;
	int found = 0;

	if (handle == MPI_COMM_NULL)
		return NULL;
	if (layer.rails && native.Comm_get_attr(handle, comm_keyval, &c, &found) != MPI_SUCCESS)
		return NULL;
	if (calls_counted) {
		/* The cache stays empty, so that the next call comes here, too. */
		calls_count(call, found, handle);
		return found ? c : NULL;
	}
	if (k->epoch != epoch)
		*k = (struct comm_cache){NO_HANDLE, NULL, NO_HANDLE, epoch};
	if (!found) {
		k->native_handle = handle;
		return NULL;
	}
	k->routed_handle = handle;
	k->routed = c;
	return c;
}

void comm_free(struct comm *c)
{
	coll_learned_free(c->learned);
	free(c->peer);
	free(c->source);
	free(c);
}

void comm_unref_last(struct comm *c)
{
	struct comm **at;

	for (at = bucket(c->context); *at != c; at = &(*at)->next)
		;
	*at = c->next;
	if (comm_last_found == c)
		comm_last_found = NULL;
	unexpected_drop(c);
	comm_free(c);
}

void comm_table_insert(struct comm *c)
{
	c->next = *bucket(c->context);
	*bucket(c->context) = c;
}

void comm_table_end(void)
{
	struct comm *c;
	int b;

	for (b = 0; b < BUCKETS; b++)
		while ((c = buckets[b])) {
			/* The program has not freed it: detach it while its handle lives. */
			if (c->handle != MPI_COMM_NULL)
				native.Comm_delete_attr(c->handle, comm_keyval);
			if (buckets[b] == c)	/* operations left over: an erroneous program */
				comm_unref_last(c);
		}
}
