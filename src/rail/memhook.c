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

static atomic_bool active;

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

HOOK int munmap(void *addr, size_t bytes)
{
	report(addr, bytes);
	return (int)syscall(SYS_munmap, addr, bytes);
}

HOOK int madvise(void *addr, size_t bytes, int advice)
{
	if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE)
		report(addr, bytes);
	return (int)syscall(SYS_madvise, addr, bytes, advice);
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
	return (void *)syscall(SYS_mremap, addr, old_bytes, new_bytes, flags, to);
}

#if defined(SYS_mmap) && __SIZEOF_POINTER__ == 8
HOOK void *mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	if (flags & MAP_FIXED)
		report(addr, bytes);
	return (void *)syscall(SYS_mmap, addr, bytes, prot, flags, fd, offset);
}

HOOK void *mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off64_t offset)
	__attribute__((alias("mmap")));
#endif

HOOK int brk(void *end)
{
	static int (*next)(void *);
	char *now = sbrk(0);

	if ((char *)end < now)
		report(end, (size_t)(now - (char *)end));
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "brk");
	if (next)
		return next(end);
	errno = ENOMEM;
	return -1;
}

HOOK void *sbrk(intptr_t change)
{
	static void *(*next)(intptr_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "sbrk");
	if (!next) {
		errno = ENOMEM;
		return (void *)-1;
	}
	if (change < 0)
		report((char *)next(0) + change, (size_t)-change);
	return next(change);
}

#endif
