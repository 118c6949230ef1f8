/*
 * args.h - checks of the arguments of point-to-point calls.
 *
 * A call with invalid arguments goes to the library, which raises its usual error.
 * Two ranks cannot take different routes because of this: the library refuses the
 * call without sending anything.
 */
#ifndef RAILMPI_ARGS_H
#define RAILMPI_ARGS_H

#include <limits.h>

#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/request.h"
#include "mpi/type/dtype.h"
#include "util/compiler.h"

enum args { ARGS_NATIVE, ARGS_PROC_NULL, ARGS_OK };

static inline enum args args_common(void *buf, MPI_Count count, MPI_Datatype type, int rank, int tag,
				    struct message_args *m)
{
	m->type = dtype_cached(type);
	m->count = (size_t)count;
	if (unlikely(!m->type || (uint64_t)count > INT_MAX)) {
		m->type = dtype_lookup(type);
		if (!m->type || count < 0)
			return ARGS_NATIVE;
		m->count = dtype_elements(m->type, count);
	}
	m->buf = buf;
	m->rank = rank;
	m->tag = tag;
	return ARGS_OK;
}

static inline enum args args_send(const struct comm *c, const void *buf, MPI_Count count,
				  MPI_Datatype type, int rank, int tag, struct message_args *m)
{
	if (unlikely(tag < 0 || tag > layer.tag_ub))
		return ARGS_NATIVE;
	if (unlikely((unsigned)rank >= (unsigned)c->size))
		return rank == MPI_PROC_NULL ? ARGS_PROC_NULL : ARGS_NATIVE;
	return args_common((void *)(uintptr_t)buf, count, type, rank, tag, m);
}

static inline bool args_envelope(const struct comm *c, int rank, int tag)
{
	return ((unsigned)rank < (unsigned)c->size || rank == MPI_ANY_SOURCE) &&
	       ((tag >= 0 && tag <= layer.tag_ub) || tag == MPI_ANY_TAG);
}

static inline enum args args_recv(const struct comm *c, void *buf, MPI_Count count,
				  MPI_Datatype type, int rank, int tag, struct message_args *m)
{
	if (unlikely(!args_envelope(c, rank, tag)))
		return rank == MPI_PROC_NULL ? ARGS_PROC_NULL : ARGS_NATIVE;
	return args_common(buf, count, type, rank, tag, m);
}

#endif
