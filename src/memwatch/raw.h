/*
 * raw.h - system calls by an instruction, which neither memwatch nor hooks of other libraries
 * report.  Return the result, or -errno.
 */
#ifndef RG_MEMWATCH_RAW_H
#define RG_MEMWATCH_RAW_H

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

static inline long rg_raw_syscall(long n, long a, long b, long c, long d, long e, long f)
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
	long result = syscall(n, a, b, c, d, e, f);	/* nothing is patched there */

	return result < 0 ? -errno : result;
#endif
}

static inline bool rg_raw_failed(long result)
{
	return result < 0 && result >= -4095;
}

#endif
