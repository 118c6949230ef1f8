/*
 * calls.c - hooks: each reports the range that its call takes away, then makes the call.
 *
 * The patched functions do little more than their system calls, so a hook makes the system
 * call itself.  A hook that replaced another hook calls the other hook instead.  Code here must
 * not call a function of the C library that is hooked or that allocates.
 */
#include "config.h"		/* _GNU_SOURCE */

#include "memwatch/calls.h"
#include "memwatch/raw.h"
#include "memwatch/syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* These values are newer than some headers. */
enum { DONTNEED_LOCKED = 24, GUARD_INSTALL = 102 };

static _Atomic(void *) next[CALLS];
_Atomic(void *) memwatch_next_syscall;
uintptr_t call_heap_start = 1;

/* The access makes no call, which might allocate. */
#define THREAD _Thread_local __attribute__((tls_model("initial-exec")))
static THREAD uint32_t inside;		/* bits: calls that are being handed to `next` */
static THREAD enum call probed;		/* ... + 1; 0: none */
static THREAD bool seen;

/* ---- System calls --------------------------------------------------------- */

static long with_errno(long result)
{
	if (rg_raw_failed(result)) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

/* ---- What a call takes away ------------------------------------------------ */

static void hook_report(enum rg_mem_call call, long start, long bytes)
{
	int error = errno;

	if (bytes)
		call_report(call, (uintptr_t)start, (size_t)bytes);
	errno = error;
}

static void report_shared(void)
{
	hook_report(RG_MEM_SHARED, 0, -1);
}

static void before_mmap(long addr, long bytes, long flags)
{
	if (flags & MAP_FIXED)
		hook_report(RG_MEM_REPLACE, addr, bytes);
}

static void before_mremap(long from, long old_bytes, long new_bytes, long flags, long to)
{
	/* old_bytes 0: the call makes a second mapping of shared memory. */
	hook_report(RG_MEM_MOVE, from, old_bytes ? old_bytes : 1);
	if (flags & MREMAP_FIXED)
		hook_report(RG_MEM_REPLACE, to, new_bytes);
}

static void before_madvise(long addr, long bytes, long advice)
{
	switch (advice) {
	case MADV_REMOVE:	/* wherever the same memory is mapped */
		report_shared();
		/* fall through */
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_WIPEONFORK:	/* in the child */
	case DONTNEED_LOCKED:
	case GUARD_INSTALL:
		hook_report(RG_MEM_DISCARD, addr, bytes);
		break;
	default:
		break;
	}
}

static void before_brk(long end)
{
	long now = rg_raw_syscall(SYS_brk, 0, 0, 0, 0, 0, 0);

	/* Below the heap's start the kernel only returns the heap's end. */
	if ((unsigned long)end >= call_heap_start && (unsigned long)end < (unsigned long)now)
		hook_report(RG_MEM_UNMAP, end, now - end);
}

static void before_shmat(long id, long addr, long flags)
{
	struct shmid_ds segment;

	if (flags & SHM_REMAP && !shmctl((int)id, IPC_STAT, &segment))
		hook_report(RG_MEM_REPLACE, addr, (long)segment.shm_segsz);
}

static void before_ftruncate(long fd, long bytes)
{
	struct stat file;

	if (fstat((int)fd, &file) || bytes < file.st_size)
		report_shared();
}

static void before_truncate(long path, long bytes)
{
	struct stat file;

	if (stat((const char *)path, &file) || bytes < file.st_size)
		report_shared();
}

static void before_fallocate(long mode)
{
	if (mode & ~(long)FALLOC_FL_KEEP_SIZE)
		report_shared();
}

static void before_syscall(long n, long a, long b, long c, long d, long e)
{
	switch (n) {
	case SYS_munmap:
		hook_report(RG_MEM_UNMAP, a, b);
		break;
	case SYS_mmap:
		before_mmap(a, b, d);
		break;
	case SYS_mremap:
		before_mremap(a, b, c, d, e);
		break;
	case SYS_madvise:
		before_madvise(a, b, c);
		break;
	case SYS_brk:
		before_brk(a);
		break;
	case SYS_shmat:
		before_shmat(a, b, c);
		break;
	case SYS_shmdt:
		report_shared();
		break;
	case SYS_ftruncate:
		before_ftruncate(a, b);
		break;
	case SYS_truncate:
		before_truncate(a, b);
		break;
	case SYS_fallocate:
		before_fallocate(b);
		break;
	case SYS_remap_file_pages:
		hook_report(RG_MEM_REPLACE, a, b);
		break;
	default:
		break;
	}
}

/* ---- Hooks ------------------------------------------------------------------ */

static bool is_probe(enum call call)
{
	if (probed != call + 1)
		return false;
	seen = true;
	return true;
}

/*
 * Hand the call to the earlier hook.  False: there was none, or it has called this hook
 * again, like a patcher that takes this hook for the original.
 */
static bool hand_on(enum call call, long *result, long a, long b, long c, long d, long e, long f)
{
	call_fn *function = (call_fn *)atomic_load_explicit(&next[call], memory_order_acquire);
	const uint32_t bit = UINT32_C(1) << call;

	if (!function || inside & bit)
		return false;
	inside |= bit;
	*result = function(a, b, c, d, e, f, 0);
	inside &= ~bit;
	return true;
}

static long go(enum call call, long n, long a, long b, long c, long d, long e, long f)
{
	long result;

	return hand_on(call, &result, a, b, c, d, e, f) ? result :
							   with_errno(rg_raw_syscall(n, a, b, c, d, e, f));
}

static long hook_munmap(long addr, long bytes, long c, long d, long e, long f, long g)
{
	if (!is_probe(CALL_MUNMAP))
		hook_report(RG_MEM_UNMAP, addr, bytes);
	return go(CALL_MUNMAP, SYS_munmap, addr, bytes, 0, 0, 0, 0);
}

static long hook_mmap(long addr, long bytes, long prot, long flags, long fd, long offset, long g)
{
	if (!is_probe(CALL_MMAP))
		before_mmap(addr, bytes, (int)flags);
	return go(CALL_MMAP, SYS_mmap, addr, bytes, (int)prot, (int)flags, (int)fd, offset);
}

/*
 * Some hooks that may come next (UCX before 1.15) drop the fifth argument.  Calls without new
 * bytes, which the kernel refuses, tell these hooks of both ranges; the call itself does not reach
 * them.
 */
static long hook_mremap(long from, long old_bytes, long new_bytes, long flags, long to, long f,
			long g)
{
	int error = errno;
	long refused;

	flags = (int)flags;
	if (!is_probe(CALL_MREMAP))
		before_mremap(from, old_bytes, new_bytes, flags, to);
	if (!(flags & MREMAP_FIXED))
		return go(CALL_MREMAP, SYS_mremap, from, old_bytes, new_bytes, flags, to, 0);
	hand_on(CALL_MREMAP, &refused, from, old_bytes, 0, 0, 0, 0);
	hand_on(CALL_MREMAP, &refused, to, new_bytes, 0, 0, 0, 0);
	errno = error;
	return with_errno(rg_raw_syscall(SYS_mremap, from, old_bytes, new_bytes, flags, to, 0));
}

static long hook_madvise(long addr, long bytes, long advice, long d, long e, long f, long g)
{
	advice = (int)advice;
	if (!is_probe(CALL_MADVISE))
		before_madvise(addr, bytes, advice);
	return go(CALL_MADVISE, SYS_madvise, addr, bytes, advice, 0, 0, 0);
}

/* The C library's own idea of where the heap ends, which sbrk starts from. */
extern void *__curbrk __attribute__((weak));

static long hook_brk(long end, long b, long c, long d, long e, long f, long g)
{
	long now;

	if (!is_probe(CALL_BRK))
		before_brk(end);
	if (hand_on(CALL_BRK, &now, end, 0, 0, 0, 0, 0))
		return (int)now;
	now = rg_raw_syscall(SYS_brk, end, 0, 0, 0, 0, 0);
	if (&__curbrk)
		__curbrk = (void *)now;
	return (unsigned long)now < (unsigned long)end ? with_errno(-ENOMEM) : 0;
}

/*
 * The C library's sbrk calls its brk.  UCX's sbrk, which may replace it, makes the system call by
 * an instruction of its own.
 */
static long hook_sbrk(long change, long b, long c, long d, long e, long f, long g)
{
	long end = rg_raw_syscall(SYS_brk, 0, 0, 0, 0, 0, 0), result;

	if (is_probe(CALL_SBRK))
		change = 0;
	if (change < 0)
		before_brk(end + change);
	if (hand_on(CALL_SBRK, &result, change, 0, 0, 0, 0, 0))
		return result;
	if (&__curbrk && __curbrk)
		end = (long)__curbrk;
	if (change && hook_brk(end + change, 0, 0, 0, 0, 0, 0))
		return -1;
	return end;
}

static long hook_shmat(long id, long addr, long flags, long d, long e, long f, long g)
{
	if (!is_probe(CALL_SHMAT))
		before_shmat(id, addr, (int)flags);
	return go(CALL_SHMAT, SYS_shmat, (int)id, addr, (int)flags, 0, 0, 0);
}

static long hook_shmdt(long addr, long b, long c, long d, long e, long f, long g)
{
	if (!is_probe(CALL_SHMDT))
		report_shared();
	return go(CALL_SHMDT, SYS_shmdt, addr, 0, 0, 0, 0, 0);
}

static long hook_ftruncate(long fd, long bytes, long c, long d, long e, long f, long g)
{
	if (!is_probe(CALL_FTRUNCATE))
		before_ftruncate(fd, bytes);
	return go(CALL_FTRUNCATE, SYS_ftruncate, (int)fd, bytes, 0, 0, 0, 0);
}

static long hook_truncate(long path, long bytes, long c, long d, long e, long f, long g)
{
	if (!is_probe(CALL_TRUNCATE))
		before_truncate(path, bytes);
	return go(CALL_TRUNCATE, SYS_truncate, path, bytes, 0, 0, 0, 0);
}

static long hook_fallocate(long fd, long mode, long offset, long bytes, long e, long f, long g)
{
	if (!is_probe(CALL_FALLOCATE))
		before_fallocate((int)mode);
	return go(CALL_FALLOCATE, SYS_fallocate, (int)fd, (int)mode, offset, bytes, 0, 0);
}

static long hook_remap_file_pages(long addr, long bytes, long prot, long page, long flags, long f,
				  long g)
{
	if (!is_probe(CALL_REMAP_FILE_PAGES))
		hook_report(RG_MEM_REPLACE, addr, bytes);
	return go(CALL_REMAP_FILE_PAGES, SYS_remap_file_pages, addr, bytes, (int)prot, page,
		  (int)flags, 0);
}

/*
 * The function syscall() makes every system call, a clone whose child returns on another
 * stack among them.  So only calls that take pages away come here (syscall.c).
 */
long memwatch_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	call_fn *function = (call_fn *)atomic_load_explicit(&memwatch_next_syscall,
							    memory_order_acquire);
	const uint32_t bit = UINT32_C(1) << CALL_SYSCALL;
	long result;

	if (!is_probe(CALL_SYSCALL))
		before_syscall(n, a, b, c, d, e);
	if (!function || inside & bit)
		return with_errno(rg_raw_syscall(n, a, b, c, d, e, f));
	inside |= bit;
	result = function(n, a, b, c, d, e, f);
	inside &= ~bit;
	return result;
}

long memwatch_failed(long result)
{
	return with_errno(result);
}

/* ---- Probes: nothing but a refusal comes of them ----------------------------- */

static void probe_with_zeros(call_fn *function)
{
	function(0, 0, 0, 0, 0, 0, 0);
}

static void probe_with_no_file(call_fn *function)
{
	function(-1, 0, 0, 0, 0, 0, 0);
}

static void probe_syscall(call_fn *function)
{
	function(SYS_munmap, 0, 0, 0, 0, 0, 0);
}

const struct call_row call_row[CALLS] = {
	[CALL_MUNMAP] = { "munmap", hook_munmap, probe_with_zeros },
	[CALL_MMAP] = { "mmap", hook_mmap, probe_with_zeros },
	[CALL_MREMAP] = { "mremap", hook_mremap, probe_with_zeros },
	[CALL_MADVISE] = { "madvise", hook_madvise, probe_with_zeros },
	[CALL_BRK] = { "brk", hook_brk, probe_with_zeros },
	[CALL_SBRK] = { "sbrk", hook_sbrk, probe_with_zeros },
	[CALL_SHMAT] = { "shmat", hook_shmat, probe_with_no_file },
	[CALL_SHMDT] = { "shmdt", hook_shmdt, probe_with_zeros },
	[CALL_FTRUNCATE] = { "ftruncate", hook_ftruncate, probe_with_no_file },
	[CALL_TRUNCATE] = { "truncate", hook_truncate, probe_with_zeros },
	[CALL_FALLOCATE] = { "fallocate", hook_fallocate, probe_with_no_file },
	[CALL_REMAP_FILE_PAGES] = { "remap_file_pages", hook_remap_file_pages, probe_with_zeros },
	[CALL_SYSCALL] = { "syscall", memwatch_hook_syscall, probe_syscall },
};

void call_set_next(enum call call, void *function)
{
	atomic_store_explicit(call == CALL_SYSCALL ? &memwatch_next_syscall : &next[call], function,
			      memory_order_release);
}

bool call_is_seen(enum call call, void *function)
{
	seen = false;
	probed = call + 1;
	call_row[call].probe((call_fn *)function);
	probed = 0;
	return seen;
}
