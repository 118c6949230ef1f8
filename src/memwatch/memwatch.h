/*
 * memwatch.h - calls that take pages away from this process, seen before they do.
 *
 * A registration, and a mapping that a peer has made, name pages; when an address
 * gets other pages, both go on naming the old ones.  The C library's munmap, mmap
 * (MAP_FIXED), mremap, madvise, brk, sbrk, shmat, shmdt, ftruncate, truncate, fallocate,
 * remap_file_pages and syscall are therefore patched at their first instruction, so
 * that every caller is seen: the program, its libraries whenever loaded, malloc, and
 * threads' stacks inside the C library itself.  Other patchers (UCX, Open MPI) that
 * came first are called in turn; those that come later are found by
 * rg_memwatch_check.
 *
 * Not seen: system calls made by an instruction outside the C library's functions.
 * The dynamic linker is such a place (dlclose): see rg_memwatch_in_library.
 * Sanitizers' allocators are another: rg_memwatch_start refuses beside them.
 * Nor what another process does to memory that both share.
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
	 * Of a file or of shared memory, wherever it is mapped: shmdt, truncation, holes
	 * punched.  The range is everything; private anonymous memory stays as it is.
	 */
	RG_MEM_SHARED,
};

/*
 * Called before the call is made, in the thread that makes it, with the range as the
 * caller gave it (a range that the call will refuse included).  In the middle of
 * malloc, of a signal handler, of a child of fork: it takes no lock that is held
 * while memory is allocated, allocates nothing, and keeps errno.  Calls of the above
 * kind that it makes itself are not reported.
 */
typedef void rg_memwatch_fn(enum rg_mem_call call, uintptr_t start, size_t bytes);

/*
 * Patch, once in a process, and add a listener (at most 4; for good: libraries with
 * listeners must not be unloaded).  0: from now on it hears of everything; a test
 * call of each function has shown it.  -ENOTSUP: a sanitizer, or a processor or C
 * library that is not known; -EACCES and others: the system refuses.  *why, when not
 * NULL, is set to a text of static storage then.
 */
int rg_memwatch_start(rg_memwatch_fn *listener, const char **why);

/*
 * Do all patches still stand?  A dozen loads and compares when they do; else they are
 * set again, listeners hear of everything once, and the answer is still true.  False,
 * for ever: that failed, and memory goes away unseen.
 */
bool rg_memwatch_check(void);

/*
 * Does any byte of the range belong to a shared object that can be unloaded?  Then
 * its pages can go without a report, when *unloads has changed: a count of objects
 * that have been unloaded.
 */
bool rg_memwatch_in_library(uintptr_t start, size_t bytes, uint64_t *unloads);
uint64_t rg_memwatch_unloads(void);

#endif
