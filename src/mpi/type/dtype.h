/* dtype.h - datatypes: what the layer knows of each, and packing. */
#ifndef RAILMPI_DTYPE_H
#define RAILMPI_DTYPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/abi/compiler.h"
#include "mpi/abi/native.h"
#include "mpi/type/strides.h"

#pragma GCC visibility push(hidden)

struct dtype {
	size_t size;		/* bytes of data per element */
	MPI_Aint extent;
	MPI_Aint true_lb;	/* where the data of an element begins */
	MPI_Aint true_extent;	/* from there to its end */
	_Atomic uint32_t reduces;	/* which operations the library has for it: coll_types.c */
	bool predefined;
	bool contiguous;	/* element i's data is at true_lb + i * size, in order */
	bool solid;		/* the data of one element is in one piece */
	_Atomic int refs;	/* the type itself, and each operation that packs later */
	struct dtype *next_dead;
	struct strides strides;	/* if size is not zero */
	size_t skip;		/* of dtype_range: bytes in front of its first */
};

/*
 * Each thread caches its last type; the cache is invalid once any type has been freed.  It holds none
 * of which INT_MAX elements could be more bytes than can be counted.
 */
struct dtype_cache {
	MPI_Datatype handle;
	struct dtype *type;
	unsigned epoch;
};
extern _Atomic unsigned dtype_epoch;
extern FAST_THREAD_LOCAL struct dtype_cache dtype_cache;

/* Not inside layer_enter: callbacks of the library's attributes may wait for layer_enter. */
struct dtype *dtype_lookup_slow(MPI_Datatype handle);

/* From this thread's cache alone; NULL: dtype_lookup knows. */
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
 * Of so many elements, as many as have DTYPE_BYTES_MAX bytes, and one more: send_start refuses what
 * has more, and a receive that has room for more has room for all there is.
 */
#define DTYPE_BYTES_MAX ((size_t)INT64_MAX)

static inline size_t dtype_elements(const struct dtype *t, MPI_Count count)
{
	const size_t most = t->size ? DTYPE_BYTES_MAX / t->size + 1 : DTYPE_BYTES_MAX;

	return (size_t)count < most ? (size_t)count : most;
}

/* So many elements are in one piece, from true_lb on. */
static inline bool dtype_is_plain(const struct dtype *t, size_t count)
{
	return likely(t->contiguous) || (t->solid && count <= 1);
}

/*
 * What is left of a message behind so many bytes, as a type of bytes, so many elements as are wanted:
 * for what `of` describes from the same address.  Only while `of` is held, and never released.
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
