/*
 * memhook.c - memory that goes away, seen where it goes.
 *
 * A registration names pages; when an address gets other pages, the adapter
 * would go on writing to the old ones.  So the calls that take pages away are
 * ours in a process that loads librail: they report the range, then do what the
 * C library does.  Nothing is reported before rail_memhook_start, which a real
 * device calls for.
 *
 * malloc's own calls inside the C library cannot be seen from here; it is told
 * to keep what it has instead of giving it back (mallopt), as MPI libraries
 * that cache registrations have always done.
 */
#include "config.h"		/* _GNU_SOURCE */

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mr.h"

#if !RAIL_MEMHOOK
/* ThreadSanitizer has hooks of its own in these places. */
void rail_memhook_start(void)
{
}
#else

#define HOOK __attribute__((visibility("default")))

/*
 * Whoever comes next, not the kernel: UCX and Open MPI patch the C library's
 * functions for caches of their own, and must go on seeing what happens.
 */
static struct {
	int (*munmap)(void *, size_t);
	int (*madvise)(void *, size_t, int);
	void *(*mremap)(void *, size_t, size_t, int, ...);
	void *(*mmap)(void *, size_t, int, int, int, off_t);
	int (*brk)(void *);
	void *(*sbrk)(intptr_t);
} next;

static atomic_bool active;

__attribute__((constructor)) static void find_next(void)
{
	*(void **)&next.munmap = dlsym(RTLD_NEXT, "munmap");
	*(void **)&next.madvise = dlsym(RTLD_NEXT, "madvise");
	*(void **)&next.mremap = dlsym(RTLD_NEXT, "mremap");
	*(void **)&next.mmap = dlsym(RTLD_NEXT, "mmap");
	*(void **)&next.brk = dlsym(RTLD_NEXT, "brk");
	*(void **)&next.sbrk = dlsym(RTLD_NEXT, "sbrk");
}

void rail_memhook_start(void)
{
	if (atomic_exchange(&active, true))
		return;
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT32_MAX);
	/* Heaps of further arenas are unmapped whole; the main one only shrinks. */
	mallopt(M_ARENA_MAX, 1);
}

static void report(const void *addr, size_t bytes)
{
	if (bytes && atomic_load_explicit(&active, memory_order_relaxed))
		rail_mr_invalidate(addr, bytes);
}

/* Below: the system call stands in until find_next has run. */

HOOK int munmap(void *addr, size_t bytes)
{
	report(addr, bytes);
	return next.munmap ? next.munmap(addr, bytes) : (int)syscall(SYS_munmap, addr, bytes);
}

HOOK int madvise(void *addr, size_t bytes, int advice)
{
	if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE)
		report(addr, bytes);
	return next.madvise ? next.madvise(addr, bytes, advice) :
			      (int)syscall(SYS_madvise, addr, bytes, advice);
}

HOOK void *mremap(void *addr, size_t old_bytes, size_t new_bytes, int flags, ...)
{
	void *to = NULL;
	va_list args;

	if (flags & MREMAP_FIXED) {
		va_start(args, flags);
		to = va_arg(args, void *);
		va_end(args);
		report(to, new_bytes);
	}
	report(addr, old_bytes);
	return next.mremap ? next.mremap(addr, old_bytes, new_bytes, flags, to) :
			     (void *)syscall(SYS_mremap, addr, old_bytes, new_bytes, flags, to);
}

#if defined(SYS_mmap) && __SIZEOF_POINTER__ == 8
HOOK void *mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	if (flags & MAP_FIXED)
		report(addr, bytes);
	return next.mmap ? next.mmap(addr, bytes, prot, flags, fd, offset) :
			   (void *)syscall(SYS_mmap, addr, bytes, prot, flags, fd, offset);
}

HOOK void *mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off64_t offset)
	__attribute__((alias("mmap")));
#endif

HOOK void *sbrk(intptr_t change)
{
	if (!next.sbrk)
		find_next();
	if (change < 0)
		report((char *)next.sbrk(0) + change, (size_t)-change);
	return next.sbrk(change);
}

HOOK int brk(void *end)
{
	char *now = sbrk(0);

	if ((char *)end < now)
		report(end, (size_t)(now - (char *)end));
	return next.brk(end);
}

#endif
