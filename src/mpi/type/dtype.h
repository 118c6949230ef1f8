/* dtype.h - datatypes: the record of each, and packing. */
#ifndef RAILMPI_DTYPE_H
#define RAILMPI_DTYPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/abi/native.h"
#include "mpi/type/strides.h"
#include "util/compiler.h"

#pragma GCC visibility push(hidden)

struct dtype {
	size_t size;		/* bytes of data per element */
	MPI_Aint extent;
	MPI_Aint true_lb;	/* beginning of an element's data */
	MPI_Aint true_extent;	/* from there to its end */
	_Atomic uint32_t reduces;	/* operations that the library has: coll_types.c */
	bool predefined;
	bool contiguous;	/* element i's data is at true_lb + i * size, in order */
	bool solid;		/* the data of one element is in one piece */
	_Atomic int refs;	/* the type itself, and each operation that packs later */
	struct dtype *next_dead;
	struct strides strides;	/* if size is not zero */
	size_t skip;		/* for dtype_range: bytes in front of the first */
};

/*
 * Each thread caches its last type; the cache is invalid once any type has been freed.  A type is
 * cached only if the bytes of INT_MAX elements can be counted.
 */
struct dtype_cache {
	MPI_Datatype handle;
	struct dtype *type;
	unsigned epoch;
};
extern _Atomic unsigned dtype_epoch;
extern FAST_THREAD_LOCAL struct dtype_cache dtype_cache;

/* Called outside layer_enter, since callbacks of the library's attributes may wait for it. */
struct dtype *dtype_lookup_slow(MPI_Datatype handle);

/* The type in this thread's cache; NULL: call dtype_lookup. */
static inline struct dtype *dtype_cached(MPI_Datatype handle)
{
	const struct dtype_cache *k = &dtype_cache;

	return likely(k->handle == handle &&
		      k->epoch == atomic_load_explicit(&dtype_epoch, memory_order_relaxed))
		       ? k->type : NULL;
}

/* NULL: the library would refuse this type, and is to report the error. */
static inline struct dtype *dtype_lookup(MPI_Datatype handle)
{
	struct dtype *t = dtype_cached(handle);

	return likely(t) ? t : dtype_lookup_slow(handle);
}

/*
 * A count of elements limited to DTYPE_BYTES_MAX bytes and one element more: send_start refuses
 * more, and a receive with room for more has room for any message.
 */
#define DTYPE_BYTES_MAX ((size_t)INT64_MAX)

static inline size_t dtype_elements(const struct dtype *t, MPI_Count count)
{
	const size_t most = t->size ? DTYPE_BYTES_MAX / t->size + 1 : DTYPE_BYTES_MAX;

	return (size_t)count < most ? (size_t)count : most;
}

/* True: the elements are in one piece, from true_lb on. */
static inline bool dtype_is_plain(const struct dtype *t, size_t count)
{
	return likely(t->contiguous) || (t->solid && count <= 1);
}

/*
 * A type of bytes for the rest of a message from byte `from` on: any number of its elements, at the
 * address that `of` is used with.  Valid while `of` is held; never released.
 */
struct dtype dtype_range(const struct dtype *of, size_t from);

int dtype_start(void);
void dtype_stop(void);
void dtype_release(struct dtype *t);	/* calls no MPI */
/* Bytes [from, from + bytes) of the data of elements that follow each other; neither calls MPI. */
void dtype_pack(const struct dtype *t, const void *buf, size_t from, void *packed, size_t bytes);
void dtype_unpack(const struct dtype *t, const void *packed, size_t bytes, void *buf, size_t from);

#pragma GCC visibility pop

#endif
