/*
 * foreign_writes.h - a memory checker learns of bytes that an adapter or another process has written.
 *
 * Valgrind sees the stores and system calls of its own process.  A receive buffer that a peer writes
 * to stays uninitialised for memcheck, and the program is blamed when it reads the message.
 */
#ifndef RAIL_FOREIGN_WRITES_H
#define RAIL_FOREIGN_WRITES_H

#include "config.h"

#include <stddef.h>

#ifdef HAVE_VALGRIND_MEMCHECK_H
#include <valgrind/memcheck.h>

/* A handful of instructions without effect outside valgrind. */
static inline void foreign_writes_tell(void *at, size_t bytes)
{
	VALGRIND_MAKE_MEM_DEFINED(at, bytes);
}
#else
static inline void foreign_writes_tell(void *at, size_t bytes)
{
}
#endif

#endif
