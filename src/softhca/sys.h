/*
 * sys.h - system calls that nobody listens to (memwatch.h): what this library does to
 * its own segment and to pages that it moves is no news for who watches the program,
 * and the listener of this very library may run inside of them otherwise.
 */
#ifndef HCA_SYS_H
#define HCA_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The result, or -errno. */
static inline long hca_sys(long n, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall" : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0" : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
#else
	long result = syscall(n, a, b, c, d, e, f);	/* nothing listens there */

	return result < 0 ? -errno : result;
#endif
}

static inline bool hca_sys_failed(long result)
{
	return result < 0 && result >= -4095;
}

/* Of a file, or with fd -1 anonymous memory.  start 0: anywhere.  The address, or -errno. */
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

/* Pages from one place onto another, at once. */
static inline bool hca_sys_put(uint64_t from, uint64_t bytes, uint64_t to)
{
	return !hca_sys_failed(hca_sys(SYS_mremap, (long)from, (long)bytes, (long)bytes,
				       MREMAP_MAYMOVE | MREMAP_FIXED, (long)to, 0));
}

/* Give back what a file has there; it reads as zeros from now on. */
static inline bool hca_sys_punch(int fd, uint64_t start, uint64_t end)
{
	return !hca_sys(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(long)start, (long)(end - start), 0, 0);
}

#endif
