/* calls.h - functions of the C library that take pages away, and their hooks. */
#ifndef RG_MEMWATCH_CALLS_H
#define RG_MEMWATCH_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "memwatch/memwatch.h"

enum call {
	CALL_MUNMAP, CALL_MMAP, CALL_MREMAP, CALL_MADVISE, CALL_BRK, CALL_SBRK, CALL_SHMAT,
	CALL_SHMDT, CALL_FTRUNCATE, CALL_TRUNCATE, CALL_FALLOCATE, CALL_REMAP_FILE_PAGES,
	CALL_SYSCALL,
	CALLS,
};

/* This type passes arguments and the result in registers like all of these functions. */
typedef long call_fn(long, long, long, long, long, long, long);

struct call_row {
	const char *name;
	call_fn *hook;
	/* Makes a call that fails without effect, to check whether it reaches the hook. */
	void (*probe)(call_fn *function);
};

extern const struct call_row call_row[CALLS];

/* Set the earlier hook, which this one calls.  NULL: this one makes the system call. */
void call_set_next(enum call call, void *function);

/* The lowest end of the heap that brk accepts; set before the first patch. */
extern uintptr_t call_heap_start;

/* Does a call of this function in this thread reach its hook?  Reports nothing meanwhile. */
bool call_is_seen(enum call call, void *function);

/* For syscall.c: system calls that take pages away; the result of a failed one; the next hook. */
long memwatch_syscall(long n, long a, long b, long c, long d, long e, long f);
long memwatch_failed(long result);
extern _Atomic(void *) memwatch_next_syscall;

/* memwatch.c: call all listeners. */
void call_report(enum rg_mem_call call, uintptr_t start, size_t bytes);

#endif
