/* memory.c - the memory segment and the arena on it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/checked.h"
#include "softhca/base/layout.h"
#include "softhca/base/maps.h"
#include "softhca/pages/landing.h"
#include "softhca/pages/memory.h"
#include "softhca/pages/remap.h"
#include "softhca/base/segment.h"
#include "softhca/softhca.h"
#include "softhca/base/sys.h"

struct block {
	uintptr_t start;
	size_t bytes;
};

struct hca_memory hca_memory = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static struct {
	struct block *block;		/* allocations, ascending */
	size_t count, room;
} arena;

uint64_t hca_page_bytes(void)
{
	static uint64_t bytes;

	if (!bytes)
		bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	return bytes;
}

/*
 * The child must not write to the parent's segment: both use the same offsets
 * for different memory.
 */
void hca_memory_after_fork(void)
{
	pthread_mutex_init(&hca_memory.lock, NULL);
	hca_landings_in_child();
	if (hca_memory.fd < 0)
		return;
	hca_remap_in_child();		/* before the heap is touched */
	close(hca_memory.fd);
	hca_memory.fd = -1;
	hca_memory.inode = 0;
	hca_memory.start = hca_memory.end = 0;
	if (arena.block)
		hca_sys_unmap((uintptr_t)arena.block, arena.room * sizeof(*arena.block));
	memset(&arena, 0, sizeof(arena));
}

static void memory_watch_forks(void)
{
	pthread_atfork(hca_remap_before_fork, hca_remap_after_fork, hca_memory_after_fork);
}

/* The inode as mappings show it, which need not be the file's (overlayfs); 0: unknown. */
static uint64_t inode_of(int fd)
{
	const uint64_t page = hca_page_bytes();
	struct hca_map map = { .inode = 0 };
	struct hca_maps m;
	struct stat st;
	void *at;

	if (!hca_segments_are_files())
		return fstat(fd, &st) ? 0 : st.st_ino;
	at = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return 0;
	if (!hca_maps_open((uintptr_t)at, page, &m)) {
		if (!hca_maps_next(&m, &map))
			map.inode = 0;
		hca_maps_close(&m);
	}
	hca_sys_unmap((uintptr_t)at, page);
	return map.inode;
}

static int fd_locked(void)
{
	/* All addresses need the first size; ext4 has files of up to 16 TiB. */
	static const uint64_t sizes[] = { HCA_MEMORY_BYTES, 1ull << 43, 1ull << 38 };
	int fd = -EFBIG;
	unsigned i;

	if (hca_memory.fd >= 0)
		return hca_memory.fd;
	for (i = 0; i < 3 && fd == -EFBIG && (!i || hca_segments_are_files()); i++) {
		fd = hca_segment_create("softhca-memory", sizes[i]);
		hca_memory.bytes = sizes[i];
	}
	if (fd < 0)
		return fd;
	hca_memory.inode = inode_of(fd);
	hca_memory.fd = fd;
	return fd;
}

int hca_memory_fd(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int fd;

	pthread_once(&once, memory_watch_forks);
	pthread_mutex_lock(&hca_memory.lock);
	fd = fd_locked();
	pthread_mutex_unlock(&hca_memory.lock);
	return fd;
}

/* ---- The arena ----------------------------------------------------------- */

/* Address space that the segment covers: anywhere or, in a small one, from its middle on. */
static void *arena_reserve(size_t bytes)
{
	const bool anywhere = hca_memory.bytes == HCA_MEMORY_BYTES;
	void *hint = anywhere ? NULL : (void *)(uintptr_t)(hca_memory.bytes / 2), *at;

	at = mmap(hint, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED || (uintptr_t)at + bytes <= hca_memory.bytes)
		return at;
	munmap(at, bytes);
	return MAP_FAILED;
}

/* Reserve as much address space as the process may. */
static int reserve_locked(size_t least)
{
	const size_t most = (size_t)1 << (hca_is_checked() ? 30 : 40), fewest = (size_t)1 << 26;
	size_t bytes;
	void *at;

	for (bytes = most; bytes >= least && bytes >= fewest; bytes >>= 2) {
		at = arena_reserve(bytes);
		if (at == MAP_FAILED)
			continue;
		madvise(at, bytes, MADV_DONTDUMP);
		atomic_store(&hca_memory.end, (uintptr_t)at + bytes);
		atomic_store(&hca_memory.start, (uintptr_t)at);
		return 0;
	}
	return -ENOMEM;
}

/* The lowest gap that is large enough: its index in the list, and its address. */
static uintptr_t find_gap(size_t bytes, size_t *index)
{
	uintptr_t at = hca_memory.start;
	size_t i;

	for (i = 0; i < arena.count; i++) {
		if (arena.block[i].start - at >= bytes)
			break;
		at = arena.block[i].start + arena.block[i].bytes;
	}
	*index = i;
	return hca_memory.end - at >= bytes ? at : 0;
}

/* Not from malloc, so that no lock of this library is held while malloc takes its own. */
static bool grow_locked(void)
{
	const size_t least = hca_page_bytes() / sizeof(struct block);
	const size_t room = arena.room ? 2 * arena.room : least;
	const size_t bytes = room * sizeof(struct block);
	long at;

	if (arena.count < arena.room)
		return true;
	if (arena.room)
		at = hca_sys(SYS_mremap, (long)arena.block,
			     (long)(arena.room * sizeof(struct block)), (long)bytes,
			     MREMAP_MAYMOVE, 0, 0);
	else
		at = hca_sys_map(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				 0);
	if (hca_sys_failed(at))
		return false;
	arena.block = (struct block *)at;
	arena.room = room;
	return true;
}

static void *alloc_locked(size_t bytes)
{
	int fd = fd_locked();
	uintptr_t at;
	size_t index;

	if (fd < 0 || !grow_locked() || (!hca_memory.start && reserve_locked(bytes)))
		return NULL;
	at = find_gap(bytes, &index);
	if (!at || hca_segment_reserve(fd, at, bytes) ||
	    hca_sys_failed(hca_sys_map(at, bytes, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, at)))
		return NULL;
	memmove(&arena.block[index + 1], &arena.block[index],
		(arena.count - index) * sizeof(*arena.block));
	arena.block[index] = (struct block){ at, bytes };
	arena.count++;
	return (void *)at;
}

HCA_EXPORT void *softhca_arena_alloc(size_t bytes)
{
	void *addr = NULL;

	if (bytes <= SIZE_MAX - hca_page_bytes()) {
		bytes = hca_align_up(bytes ? bytes : 1, hca_page_bytes());
		hca_memory_fd();		/* reports why not, and watches forks */
		pthread_mutex_lock(&hca_memory.lock);
		addr = alloc_locked(bytes);
		pthread_mutex_unlock(&hca_memory.lock);
	}
	if (!addr)
		errno = ENOMEM;
	return addr;
}

static struct block *find_block(uintptr_t addr)
{
	size_t low = 0, high = arena.count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		struct block *b = &arena.block[middle];

		if (addr < b->start)
			high = middle;
		else if (addr - b->start >= b->bytes)
			low = middle + 1;
		else
			return b;
	}
	return NULL;
}

HCA_EXPORT void softhca_arena_free(void *addr)
{
	struct block *b;

	pthread_mutex_lock(&hca_memory.lock);
	b = find_block((uintptr_t)addr);
	if (b && b->start == (uintptr_t)addr) {
		/* The pages first: a new allocation at this address starts from zeros. */
		hca_sys_punch(hca_memory.fd, b->start, b->start + b->bytes);
		hca_sys_map(b->start, b->bytes, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		arena.count--;
		memmove(b, b + 1, (size_t)(&arena.block[arena.count] - b) * sizeof(*b));
	}
	pthread_mutex_unlock(&hca_memory.lock);
}

HCA_EXPORT bool softhca_arena_contains(const void *addr, size_t bytes)
{
	uintptr_t at = (uintptr_t)addr, start = hca_memory.start, end = hca_memory.end;

	return at >= start && at < end && bytes <= end - at;
}

bool hca_memory_in_arena(const void *addr, size_t bytes)
{
	struct block *b;
	bool inside;

	if (!softhca_arena_contains(addr, bytes))
		return false;
	pthread_mutex_lock(&hca_memory.lock);
	b = find_block((uintptr_t)addr);
	inside = b && bytes <= b->bytes - ((uintptr_t)addr - b->start);
	pthread_mutex_unlock(&hca_memory.lock);
	return inside;
}
