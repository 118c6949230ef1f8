/*
 * abi.h - differences between the two families of MPI libraries: handles and the hidden
 * half of MPI_Status.  No other file depends on either.
 *
 * Requests and messages of the layer are slots of one slab.  The value of a handle alone
 * must show whether it is the layer's or native:
 *   Open MPI  A handle is a pointer.  The layer's points into the slab's address range, at
 *             such a distance from its slot that the library's Fortran bindings find the
 *             index of the slot (fortran.c).
 *   MPICH     A handle is an int whose upper bits are a kind, never zero for a native one.
 *             The layer's is the slot's number + 1.
 */
#ifndef RAILMPI_ABI_H
#define RAILMPI_ABI_H

#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/abi/native.h"

enum {
	SLAB_SLOT_BYTES = 384,
	SLAB_SLOTS_MAX = 1 << 24,	/* requests in flight per process */
	/* Open MPI: the request's index in Fortran, after the request in its slot. */
	SLAB_FORTRAN = SLAB_SLOT_BYTES - 8,
};

#pragma GCC visibility push(hidden)
extern unsigned char *slab_base;	/* reserved once, never moves */
#if RG_OPENMPI
extern unsigned char *slab_handles;	/* the first slot's handle */
#endif
#pragma GCC visibility pop

#if RG_OPENMPI

static inline bool abi_request_ours(MPI_Request r)
{
	return (uintptr_t)r - (uintptr_t)slab_handles < (size_t)SLAB_SLOTS_MAX * SLAB_SLOT_BYTES;
}
static inline void *abi_request_slot(MPI_Request r)
{
	return slab_base + ((unsigned char *)r - slab_handles);
}
static inline MPI_Request abi_request_handle(void *slot)
{
	return (MPI_Request)(slab_handles + ((unsigned char *)slot - slab_base));
}
#define abi_message_ours(m) abi_request_ours((MPI_Request)(m))
#define abi_message_slot(m) abi_request_slot((MPI_Request)(m))
#define abi_message_handle(slot) ((MPI_Message)abi_request_handle(slot))

static inline void abi_status_set_count(MPI_Status *s, size_t bytes, bool cancelled)
{
	s->_ucount = bytes;
	s->_cancelled = cancelled;
}

#else /* MPICH family */

static inline bool abi_request_ours(MPI_Request r)
{
	return (unsigned)r - 1u < (unsigned)SLAB_SLOTS_MAX;
}
static inline void *abi_request_slot(MPI_Request r)
{
	return slab_base + (size_t)((unsigned)r - 1u) * SLAB_SLOT_BYTES;
}
static inline MPI_Request abi_request_handle(void *slot)
{
	return (MPI_Request)((size_t)((unsigned char *)slot - slab_base) / SLAB_SLOT_BYTES + 1);
}
#define abi_message_ours(m) abi_request_ours((MPI_Request)(m))
#define abi_message_slot(m) abi_request_slot((MPI_Request)(m))
#define abi_message_handle(slot) ((MPI_Message)abi_request_handle(slot))

/* The count is 63 bits: 32 in count_lo, 31 above the cancelled bit of the other word. */
static inline void abi_status_set_count(MPI_Status *s, size_t bytes, bool cancelled)
{
	s->count_lo = (int)(uint32_t)bytes;
	s->count_hi_and_cancelled = (int)((uint32_t)(bytes >> 32) << 1 | (cancelled ? 1u : 0u));
}

#endif

#endif
