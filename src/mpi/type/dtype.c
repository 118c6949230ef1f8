/*
 * dtype.c - datatypes: whether a type is plain bytes, and where its bytes are if not (strides.c).
 * The answer is kept as an attribute of the type.
 */
#include "mpi/type/dtype.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/job/progress.h"
#include "mpi/railmpi.h"
#include "mpi/type/contents.h"
#include "mpi/type/strides.h"
#include "mpi/type/strides_copy.h"
#include "util/compiler.h"
#include "util/err.h"

_Atomic unsigned dtype_epoch = 1;
FAST_THREAD_LOCAL struct dtype_cache dtype_cache;

static int dtype_keyval = MPI_KEYVAL_INVALID;

/*
 * Held by the thread that asks for a type's record and makes it.  The order of locks: this, the
 * library's own around attributes, then layer_enter (in comm.c's callback).
 */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* ---- The end of a type --------------------------------------------------------- */

static struct dtype *_Atomic dead;

void dtype_release(struct dtype *t)
{
	if (atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	t->next_dead = atomic_load(&dead);
	while (!atomic_compare_exchange_weak(&dead, &t->next_dead, t))
		;
}

static void bury(void)
{
	struct dtype *t = atomic_exchange(&dead, NULL), *next;

	for (; t; t = next) {
		next = t->next_dead;
		strides_free(&t->strides);
		free(t);
	}
}

/* Receives of the type may still be pending, so the record may outlive it. */
static int dtype_deleted(MPI_Datatype handle, int keyval, void *value, void *extra)
{
	atomic_fetch_add(&dtype_epoch, 1);
	dtype_release(value);
	return MPI_SUCCESS;
}

/* ---- The making of a record ---------------------------------------------------- */

/*
 * MPI has no call that tells; a send to MPI_PROC_NULL refuses a type that has not been committed.
 */
static bool is_committed(MPI_Datatype handle)
{
	char unread;

	return !native_refuses(native.Send(&unread, 1, handle, MPI_PROC_NULL, 0, layer.self));
}

/* Another rank may send or wait already: the library cannot be asked to do it in our place. */
static _Noreturn void dtype_end(int error)
{
	native_end(error == -ENOMEM ? "out of memory for the description of a datatype" :
		   "a datatype has a constructor of an MPI standard after 4.1, unknown to the layer "
		   "(keep its communicator off the rails: info key " RAILMPI_INFO_KEY ", native)");
}

static void take_strides(struct dtype *t, MPI_Datatype handle)
{
	MPI_Aint end;
	int rc = strides_of(handle, &t->strides);

	if (rc)
		dtype_end(rc);
	strides_bounds(&t->strides, &t->true_lb, &end);
	t->true_extent = end - t->true_lb;
	t->solid = strides_are_solid(&t->strides);
	t->contiguous = t->solid && (MPI_Aint)t->size == t->extent;
}

static struct dtype *dtype_make(MPI_Datatype handle)
{
	MPI_Count size, n[4];
	MPI_Aint lb, extent;
	struct dtype *t;
	int combiner;

	if (!is_committed(handle) || native.Type_size_x(handle, &size) || size < 0 ||
	    native.Type_get_extent(handle, &lb, &extent))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		dtype_end(-ENOMEM);
	t->size = (size_t)size;
	t->extent = extent;
	t->predefined = contents_envelope(handle, n, &combiner) && contents_are_predefined(combiner);
	t->refs = 1;
	if (size)
		take_strides(t, handle);
	else
		t->contiguous = t->solid = true;
	return t;
}

static struct dtype *find_or_make(MPI_Datatype handle)
{
	struct dtype *t = NULL;
	int found = 0;

	if (native.Type_get_attr(handle, dtype_keyval, &t, &found))
		return NULL;
	if (found)
		return t;
	t = dtype_make(handle);
	if (t && native.Type_set_attr(handle, dtype_keyval, t))
		dtype_end(-ENOMEM);
	return t;
}

struct dtype *dtype_lookup_slow(MPI_Datatype handle)
{
	/* Read before the look: a type that is freed after the look makes the answer stale. */
	unsigned epoch = atomic_load(&dtype_epoch);
	struct dtype *t;

	if (handle == MPI_DATATYPE_NULL)
		return NULL;
	bury();
	pthread_mutex_lock(&making);
	t = find_or_make(handle);
	pthread_mutex_unlock(&making);
	if (t && t->size <= INT_MAX)
		dtype_cache = (struct dtype_cache){handle, t, epoch};
	return t;
}

/* ---- Packing ------------------------------------------------------------------- */

static char *plain_at(const struct dtype *t, const void *buf, size_t from)
{
	return (char *)((uintptr_t)buf + (uintptr_t)t->true_lb + from);
}

void dtype_pack(const struct dtype *t, const void *buf, size_t from, void *packed, size_t bytes)
{
	if (t->contiguous)
		memcpy(packed, plain_at(t, buf, from), bytes);
	else
		strides_pack(&t->strides, buf, t->skip + from, packed, bytes);
}

void dtype_unpack(const struct dtype *t, const void *packed, size_t bytes, void *buf, size_t from)
{
	if (t->contiguous)
		memcpy(plain_at(t, buf, from), packed, bytes);
	else
		strides_unpack(&t->strides, packed, bytes, buf, t->skip + from);
}

struct dtype dtype_range(const struct dtype *of, size_t from)
{
	return (struct dtype){
		.size = 1, .extent = 1, .refs = 1, .strides = of->strides, .skip = from,
	};
}

int dtype_start(void)
{
	return native.Type_create_keyval(MPI_TYPE_NULL_COPY_FN, dtype_deleted, &dtype_keyval, NULL) ?
		       -ENOMEM : 0;
}

void dtype_stop(void)
{
	native.Type_free_keyval(&dtype_keyval);
	atomic_fetch_add(&dtype_epoch, 1);
	bury();
}
