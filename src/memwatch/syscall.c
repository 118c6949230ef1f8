/*
 * syscall.c - the hook of syscall().  Like the C library's function it has no frame on the
 * stack, because a system call may return on another stack (clone), and it clobbers no other
 * registers.
 */
#include "config.h"		/* _GNU_SOURCE */

#include "memwatch/calls.h"
#include "memwatch/syscall.h"

#include <sys/syscall.h>

#define STRING(x) #x
#define NUMBER(x) STRING(x)
/* System calls that memwatch_syscall knows (calls.c); WATCH compares and jumps. */
#define WATCH_ALL \
	WATCH(SYS_munmap) WATCH(SYS_mmap) WATCH(SYS_mremap) WATCH(SYS_madvise) WATCH(SYS_brk) \
	WATCH(SYS_shmat) WATCH(SYS_shmdt) WATCH(SYS_ftruncate) WATCH(SYS_truncate) \
	WATCH(SYS_fallocate) WATCH(SYS_remap_file_pages)

#if defined(__x86_64__)
#define WATCH(call) "	cmp $" NUMBER(call) ", %rdi\n	je memwatch_syscall\n"
__asm__(".text\n"
	".globl memwatch_hook_syscall\n"
	".hidden memwatch_hook_syscall\n"
	".type memwatch_hook_syscall, @function\n"
	"memwatch_hook_syscall:\n"
	"	.cfi_startproc\n"
	WATCH_ALL
	"	mov memwatch_next_syscall(%rip), %rax\n"
	"	test %rax, %rax\n"
	"	jne 1f\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"	mov %r8, %r10\n"
	"	mov %r9, %r8\n"
	"	mov 8(%rsp), %r9\n"
	"	syscall\n"
	"	cmp $-4095, %rax\n"
	"	jae 2f\n"
	"	ret\n"
	"1:	jmp *%rax\n"
	"2:	mov %rax, %rdi\n"
	"	jmp memwatch_failed\n"
	"	.cfi_endproc\n"
	".size memwatch_hook_syscall, . - memwatch_hook_syscall\n");
#elif defined(__aarch64__)
#define WATCH(call) "	cmp x0, #" NUMBER(call) "\n	b.eq 3f\n"
__asm__(".text\n"
	".globl memwatch_hook_syscall\n"
	".hidden memwatch_hook_syscall\n"
	".type memwatch_hook_syscall, @function\n"
	"memwatch_hook_syscall:\n"
	"	.cfi_startproc\n"
	WATCH_ALL
	"	adrp x16, memwatch_next_syscall\n"
	"	ldr x16, [x16, #:lo12:memwatch_next_syscall]\n"
	"	cbnz x16, 1f\n"
	"	mov x8, x0\n"
	"	mov x0, x1\n"
	"	mov x1, x2\n"
	"	mov x2, x3\n"
	"	mov x3, x4\n"
	"	mov x4, x5\n"
	"	mov x5, x6\n"
	"	svc #0\n"
	"	cmn x0, #4095\n"
	"	b.cs 2f\n"
	"	ret\n"
	"1:	br x16\n"
	"2:	b memwatch_failed\n"
	"3:	b memwatch_syscall\n"
	"	.cfi_endproc\n"
	".size memwatch_hook_syscall, . - memwatch_hook_syscall\n");
#else
/* Nothing is patched on this processor. */
long memwatch_hook_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	return memwatch_syscall(n, a, b, c, d, e, f);
}
#endif
