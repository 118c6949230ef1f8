/*
 * coll_types.c - which predefined operations of reductions a type has.
 *
 * The MPI library is asked, once for each type and operation, by a reduction among this process
 * alone.  Types that it reduces beyond MPI's rules (MPI_CHAR), types that it lacks (MPI_COMPLEX32)
 * and types that only it knows (Fortran's kinds and precisions) are treated as it treats them.
 */
#include "mpi/coll/coll_types.h"

#include "mpi/abi/native.h"
#include "mpi/job/progress.h"
#include "mpi/type/dtype.h"

enum { ROOM = 128 };			/* an element of the largest predefined type, and more */

/* Held during the reduction: a communicator has one collective at a time. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

static bool library_has(MPI_Datatype handle, MPI_Op op)
{
	_Alignas(64) static const unsigned char in[ROOM];
	_Alignas(64) unsigned char out[ROOM];
	int rc;

	pthread_mutex_lock(&asking);
	rc = native.Allreduce(in, out, 1, handle, op, layer.self);
	pthread_mutex_unlock(&asking);
	return !native_refuses(rc);
}

bool coll_type_has(struct dtype *t, MPI_Datatype handle, MPI_Op op, unsigned n)
{
	const uint32_t known = UINT32_C(1) << n, has = known << COLL_OPERATIONS;
	uint32_t bits = atomic_load_explicit(&t->reduces, memory_order_relaxed);

	if (!t->predefined || t->true_lb < 0 || t->true_lb + t->true_extent > ROOM)
		return false;
	if (!(bits & known)) {
		bits = known | (library_has(handle, op) ? has : 0);
		atomic_fetch_or_explicit(&t->reduces, bits, memory_order_relaxed);
	}
	return bits & has;
}
