/* syscall.h - the hook of syscall(), in assembler (syscall.c), for calls.c. */
#ifndef RG_MEMWATCH_SYSCALL_H
#define RG_MEMWATCH_SYSCALL_H

long memwatch_hook_syscall(long n, long a, long b, long c, long d, long e, long f);

#endif
