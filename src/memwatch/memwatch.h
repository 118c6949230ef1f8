/*
 * memwatch.h - calls that take pages away from this process, reported before they do.
 *
 * A registration, and a mapping made by a peer, refer to pages; when an address
 * gets other pages, both still refer to the old ones.  The C library's munmap, mmap
 * (MAP_FIXED), mremap, madvise, brk, sbrk, shmat, shmdt, ftruncate, truncate, fallocate,
 * remap_file_pages and syscall are therefore patched at their first instruction, so
 * that calls are reported from every caller: the program, its libraries whenever loaded,
 * malloc, and the handling of threads' stacks inside the C library.  Hooks that other
 * libraries (UCX, Open MPI) set before are called in turn; hooks that are set later are
 * detected by rg_memwatch_check.
 *
 * Not reported: system calls made by an instruction outside the C library's functions.
 * The dynamic linker makes such calls (dlclose): see rg_memwatch_in_library.
 * Sanitizers' allocators do, too: rg_memwatch_start refuses to run with them.
 * Not reported either: changes by another process of memory that both share.
 */
#ifndef RG_MEMWATCH_H
#define RG_MEMWATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rg_mem_call {
	RG_MEM_UNMAP,		/* munmap, brk downwards */
	RG_MEM_REPLACE,		/* mmap and mremap onto a fixed address, SHM_REMAP */
	RG_MEM_MOVE,		/* mremap: its old range */
	RG_MEM_DISCARD,		/* madvise: MADV_DONTNEED, MADV_FREE, MADV_REMOVE and the like */
	/*
	 * Pages of a file or of shared memory, wherever it is mapped: shmdt, truncation, hole
	 * punching.  The range is everything; private anonymous memory is not affected.
	 */
	RG_MEM_SHARED,
};

/*
 * Called before the call is made, in the thread that makes it, with the range that the
 * caller passed (also one that the call will refuse).  The function may run inside malloc, in a
 * signal handler, in a child of fork.  So it must take no lock that is held while memory is
 * allocated, must not allocate, and must keep errno.  Calls of the above kind that it makes itself
 * are not reported.
 */
typedef void rg_memwatch_fn(enum rg_mem_call call, uintptr_t start, size_t bytes);

/*
 * Patch, once in a process, and add a listener (at most 4; permanently: libraries with
 * listeners must not be unloaded).  0: the listener is called from now on; a test call of
 * each function has verified it.  -ENOTSUP: a sanitizer, or an unknown processor or C
 * library; -EACCES and others: the system refuses.  *why, when not NULL, is then set to a
 * text in static storage.
 */
int rg_memwatch_start(rg_memwatch_fn *listener, const char **why);

/*
 * Are all patches still in place?  A dozen loads and compares if they are.  If not, they are
 * set again, listeners are called once for the whole address space, and the result is true
 * all the same.  False, from then on: setting them failed, and calls are not reported.
 */
bool rg_memwatch_check(void);
/* Repairs of patches so far: a caller that relies on reports asks whether the count has changed. */
uint64_t rg_memwatch_repairs(void);

/*
 * Does any byte of the range belong to a shared object that can be unloaded?  Its pages can
 * go without a report; the count of unloaded objects, *unloads, changes then.
 */
bool rg_memwatch_in_library(uintptr_t start, size_t bytes, uint64_t *unloads);
uint64_t rg_memwatch_unloads(void);

#endif
