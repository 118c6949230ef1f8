/* syscall.h - the hook of syscall(), in assembler (syscall.c), and its interface to calls.c. */
#ifndef RG_MEMWATCH_SYSCALL_H
#define RG_MEMWATCH_SYSCALL_H

#include <stdatomic.h>

long memwatch_hook_syscall(long n, long a, long b, long c, long d, long e, long f);

/* calls.c: system calls that take pages away; the result of a failed one; the next hook. */
long memwatch_syscall(long n, long a, long b, long c, long d, long e, long f);
long memwatch_failed(long result);
extern _Atomic(void *) memwatch_next_syscall;

#endif
