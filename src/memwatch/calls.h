/* calls.h - the C library's functions that take pages away: what each does, and a hook for it. */
#ifndef RG_MEMWATCH_CALLS_H
#define RG_MEMWATCH_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "memwatch.h"

enum call {
	CALL_MUNMAP, CALL_MMAP, CALL_MREMAP, CALL_MADVISE, CALL_BRK, CALL_SBRK, CALL_SHMAT,
	CALL_SHMDT, CALL_FTRUNCATE, CALL_TRUNCATE, CALL_FALLOCATE, CALL_REMAP_FILE_PAGES,
	CALL_SYSCALL,
	CALLS,
};

/* Every function of the C library gets its arguments, and gives its result, in registers so. */
typedef long call_fn(long, long, long, long, long, long, long);

struct call_row {
	const char *name;
	call_fn *hook;
	/* Makes a call that does no more than fail, to see whether it reaches the hook. */
	void (*probe)(call_fn *function);
};

extern const struct call_row call_row[CALLS];

/* What was there before the hook, another hook, is called by it; NULL: the system call is made. */
void call_set_next(enum call call, void *function);

/* The lowest end of the heap that brk takes; set before anything is patched. */
extern uintptr_t call_heap_start;

/* Does a call of this function reach its hook?  In this thread; nothing is reported meanwhile. */
bool call_is_seen(enum call call, void *function);

/* memwatch.c: to all listeners. */
void call_report(enum rg_mem_call call, uintptr_t start, size_t bytes);

#endif
