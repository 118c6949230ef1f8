/*
 * dtype.c - datatypes: whether a type is plain bytes, and how its bytes are gathered if not.
 *
 * What was made of what tells of most types (strides.c).  Of others size == extent does not prove
 * that they are plain bytes (a structure may have its members in another order), so such a type is
 * packed once over a buffer in which every byte holds its own position.  The result is kept as an
 * attribute of the type.
 */
#include "layer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"

enum { PROBE_MAX_BYTES = 64 << 20 };	/* a larger type is packed, whatever it is */

_Atomic unsigned dtype_epoch = 1;
FAST_THREAD_LOCAL struct dtype_cache dtype_cache;

static int dtype_keyval = MPI_KEYVAL_INVALID;

/*
 * One thread at a time asks for a type's record and makes it.  The order of locks:
 * this, the library's own around attributes, then layer_enter (in comm.c's callback).
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

/* No lock: the end of a shadow may be that of its type, whose callbacks may call MPI. */
static void bury(void)
{
	struct dtype *t = atomic_exchange(&dead, NULL), *next;

	for (; t; t = next) {
		next = t->next_dead;
		if (t->shadow_is_ours)
			native.Type_free(&t->shadow);
		free(t);
	}
}

/* Receives of it may still be pending, so the record may outlive the type. */
static int dtype_deleted(MPI_Datatype handle, int keyval, void *value, void *extra)
{
	atomic_fetch_add(&dtype_epoch, 1);
	dtype_release(value);
	return MPI_SUCCESS;
}

/* ---- The making of a record ---------------------------------------------------- */

/* Byte `plane` of the position, for every position. */
static void fill_positions(unsigned char *p, size_t bytes, int plane)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		p[i] = (unsigned char)(i >> (8 * plane));
}

/* Packing must give back bytes 0, 1, 2 ... of an element, in each plane of their positions. */
static bool packs_in_place(MPI_Datatype handle, size_t size, MPI_Aint true_lb)
{
	unsigned char *element = malloc(size), *packed = malloc(size);
	bool same = element && packed;
	int plane, at;

	for (plane = 0; same && plane < 4; plane++) {
		fill_positions(element, size, plane);
		at = 0;
		same = native.Pack(element - true_lb, 1, handle, packed, (int)size, &at, layer.self) ==
			       MPI_SUCCESS &&
		       (size_t)at == size && !memcmp(element, packed, size);
	}
	free(element);
	free(packed);
	return same;
}

/* A type that was made with large counts must be asked with them. */
static bool is_named(MPI_Datatype handle)
{
	int combiner, rc;
#ifdef HAVE_MPI_SEND_C
	MPI_Count integers, addresses, counts, types;

	rc = native.Type_get_envelope_c(handle, &integers, &addresses, &counts, &types, &combiner);
#else
	int integers, addresses, types;

	rc = native.Type_get_envelope(handle, &integers, &addresses, &types, &combiner);
#endif
	return rc == MPI_SUCCESS && combiner == MPI_COMBINER_NAMED;
}

/* There is no call that tells; a send to nobody refuses what has not been committed. */
static bool is_committed(MPI_Datatype handle)
{
	char unread;

	return native.Send(&unread, 1, handle, MPI_PROC_NULL, 0, layer.self) == MPI_SUCCESS;
}

/*
 * A predefined type lives for ever.  Of another, one element: a duplicate would have the
 * program's attributes, whose callbacks count what there is.
 */
static int shadow_make(struct dtype *t, MPI_Datatype handle)
{
	if (is_named(handle)) {
		t->shadow = handle;
		return 0;
	}
	if (native.Type_contiguous(1, handle, &t->shadow))
		return -ENOMEM;
	t->shadow_is_ours = true;
	return native.Type_commit(&t->shadow) ? -ENOMEM : 0;
}

static struct dtype *dtype_make(MPI_Datatype handle)
{
	MPI_Aint lb, extent, true_lb, true_extent;
	struct dtype *t;
	MPI_Count size;

	if (!is_committed(handle) || native.Type_size_x(handle, &size) || size < 0 ||
	    native.Type_get_extent(handle, &lb, &extent) ||
	    native.Type_get_true_extent(handle, &true_lb, &true_extent))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->shadow = MPI_DATATYPE_NULL;
	t->size = (size_t)size;
	t->extent = extent;
	t->true_lb = true_lb;
	t->true_extent = true_extent;
	t->reduces = coll_operations_of(handle);
	t->refs = 1;
	t->regular = strides_of(handle, &t->strides);
	if (t->regular)
		t->contiguous = t->strides.loops == 0 && size == extent;
	else
		t->contiguous = size == 0 ||
				(size == extent && size == true_extent && size <= PROBE_MAX_BYTES &&
				 packs_in_place(handle, (size_t)size, true_lb));
	if (!t->regular && !t->contiguous && shadow_make(t, handle)) {
		free(t);
		return NULL;
	}
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
	if (t)
		native.Type_set_attr(handle, dtype_keyval, t);
	return t;
}

struct dtype *dtype_lookup_slow(MPI_Datatype handle)
{
	/* Before the look: what is freed after it makes the answer stale. */
	unsigned epoch = atomic_load(&dtype_epoch);
	struct dtype *t;

	if (handle == MPI_DATATYPE_NULL)
		return NULL;
	bury();
	pthread_mutex_lock(&making);
	t = find_or_make(handle);
	pthread_mutex_unlock(&making);
	if (t)
		dtype_cache = (struct dtype_cache){handle, t, epoch};
	return t;
}

/* ---- Packing ------------------------------------------------------------------- */

/* MPI_Pack counts bytes in an int: go in slices of elements. */
static size_t slice_elements(const struct dtype *t)
{
	size_t n = (size_t)(1u << 30) / (t->size ? t->size : 1);

	return n ? n : 1;
}

/*
 * MPICH takes MPI_BOTTOM, with a type of absolute addresses, for a missing buffer when it packs,
 * but sends and receives it.
 */
static int pack_slice(const struct dtype *t, const void *from, size_t count, void *to)
{
	size_t bytes = count * t->size;
	int at = 0;

	if (bytes > INT_MAX)
		return -EINVAL;
	if (RG_OPENMPI || from != MPI_BOTTOM)
		return native.Pack(from, (int)count, t->shadow, to, (int)bytes, &at, layer.self);
	return native.Sendrecv(from, (int)count, t->shadow, 0, 0, to, (int)bytes, MPI_PACKED, 0, 0,
			       layer.self, MPI_STATUS_IGNORE);
}

static int unpack_slice(const struct dtype *t, const void *from, void *to, size_t count)
{
	size_t bytes = count * t->size;
	int at = 0;

	if (bytes > INT_MAX)
		return -EINVAL;
	if (RG_OPENMPI || to != MPI_BOTTOM)
		return native.Unpack(from, (int)bytes, &at, to, (int)count, t->shadow, layer.self);
	return native.Sendrecv(from, (int)bytes, MPI_PACKED, 0, 0, to, (int)count, t->shadow, 0, 0,
			       layer.self, MPI_STATUS_IGNORE);
}

int dtype_pack(const struct dtype *t, const void *buf, size_t count, void *packed, size_t bytes)
{
	const char *from = buf;
	char *to = packed;
	size_t n;

	if (t->regular) {
		strides_pack(&t->strides, buf, count, packed);
		return 0;
	}
	for (; count; count -= n) {
		n = count < slice_elements(t) ? count : slice_elements(t);
		if (pack_slice(t, from, n, to))
			return -EINVAL;
		from += (MPI_Aint)n * t->extent;
		to += n * t->size;
	}
	return 0;
}

int dtype_unpack(const struct dtype *t, const void *packed, size_t bytes, void *buf, size_t count)
{
	const char *from = packed;
	char *to = buf;
	size_t whole, n;

	if (t->regular) {
		strides_unpack(&t->strides, packed, bytes, buf);
		return 0;
	}
	whole = t->size ? bytes / t->size : 0;
	if (whole > count)
		whole = count;
	bytes -= whole * t->size;
	for (; whole; whole -= n) {
		n = whole < slice_elements(t) ? whole : slice_elements(t);
		if (unpack_slice(t, from, to, n))
			return -EINVAL;
		from += n * t->size;
		to += (MPI_Aint)n * t->extent;
	}
	/*
	 * A message may end inside an element, where MPI_Unpack is an error; a
	 * receive is not, so let the library receive those bytes from ourselves.
	 */
	if (bytes && native.Sendrecv(from, (int)bytes, MPI_PACKED, 0, 0, to, 1, t->shadow, 0, 0,
				     layer.self, MPI_STATUS_IGNORE))
		return -EINVAL;
	return 0;
}

/*
 * MPICH deletes a type's attributes only when no other type is made of it, and our shadow
 * is: so it goes first, unless operations hold it.
 */
int MPI_Type_free(MPI_Datatype *type)
{
	struct dtype *t;
	int found = 0;

	if (layer.rails && *type != MPI_DATATYPE_NULL) {
		native.Type_get_attr(*type, dtype_keyval, &t, &found);
		if (found) {
			native.Type_delete_attr(*type, dtype_keyval);
			bury();
		}
	}
	return native.Type_free(type);
}
BOTH(Type_free);

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
