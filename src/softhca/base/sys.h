/*
 * sys.h - system calls that are not reported to listeners of memwatch.h: calls by this library on
 * its segment and on pages that it moves are no actions of the program, and the library's own
 * listener would run inside of them.
 */
#ifndef HCA_SYS_H
#define HCA_SYS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "memwatch/raw.h"

/* The result, or -errno. */
static inline long hca_sys(long n, long a, long b, long c, long d, long e, long f)
{
	return rg_raw_syscall(n, a, b, c, d, e, f);
}

static inline bool hca_sys_failed(long result)
{
	return rg_raw_failed(result);
}

/* Map a file, or with fd -1 anonymous memory.  start 0: anywhere.  The address, or -errno. */
static inline long hca_sys_map(uint64_t start, uint64_t bytes, int prot, int flags, int fd,
			       uint64_t offset)
{
	return hca_sys(SYS_mmap, (long)start, (long)bytes, prot, flags, fd, (long)offset);
}

static inline bool hca_sys_unmap(uint64_t start, uint64_t bytes)
{
	return !hca_sys(SYS_munmap, (long)start, (long)bytes, 0, 0, 0, 0);
}

static inline bool hca_sys_advise(uint64_t start, uint64_t bytes, int advice)
{
	return !hca_sys(SYS_madvise, (long)start, (long)bytes, advice, 0, 0, 0);
}

static inline bool hca_sys_protect(uint64_t start, uint64_t bytes, int prot)
{
	return !hca_sys(SYS_mprotect, (long)start, (long)bytes, prot, 0, 0, 0);
}

/* Move pages onto another address, atomically. */
static inline bool hca_sys_put(uint64_t from, uint64_t bytes, uint64_t to)
{
	return !hca_sys_failed(hca_sys(SYS_mremap, (long)from, (long)bytes, (long)bytes,
				       MREMAP_MAYMOVE | MREMAP_FIXED, (long)to, 0));
}

/* Free the blocks of a file there; it reads as zeros from now on. */
static inline bool hca_sys_punch(int fd, uint64_t start, uint64_t end)
{
	return !hca_sys(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(long)start, (long)(end - start), 0, 0);
}

#endif
