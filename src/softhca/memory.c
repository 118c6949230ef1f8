/* memory.c - the memory segment and the arena on it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base.h"
#include "layout.h"
#include "memory.h"
#include "segment.h"
#include "softhca.h"

struct block {
	uintptr_t start;
	size_t bytes;
};

/* One per process by nature: it mirrors the address space. */
static struct {
	pthread_mutex_t lock;
	int fd;
	_Atomic uintptr_t start, end;	/* addresses reserved for the arena */
	struct block *block;		/* allocations, ascending */
	size_t count, room;
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/*
 * The child must not write to the parent's segment: both use the same offsets
 * for different memory.
 */
static void forget_in_child(void)
{
	pthread_mutex_init(&memory.lock, NULL);
	if (memory.fd >= 0)
		close(memory.fd);
	memory.fd = -1;
	memory.start = memory.end = 0;
	free(memory.block);
	memory.block = NULL;
	memory.count = memory.room = 0;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
}

static int memory_fd_locked(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	if (memory.fd < 0) {
		int fd = hca_segment_create("softhca-memory", HCA_MEMORY_BYTES);

		if (fd < 0)
			return fd;
		memory.fd = fd;
	}
	return memory.fd;
}

int hca_memory_fd(void)
{
	int fd;

	pthread_mutex_lock(&memory.lock);
	fd = memory_fd_locked();
	pthread_mutex_unlock(&memory.lock);
	return fd;
}

/* ---- The arena ---------------------------------------------------------- */

/* As much address space as the process may have. */
static int reserve_locked(size_t least)
{
	size_t bytes;
	void *at;

	for (bytes = (size_t)1 << 40; bytes >= least && bytes >= (size_t)1 << 26; bytes >>= 2) {
		at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			  -1, 0);
		if (at == MAP_FAILED)
			continue;
		madvise(at, bytes, MADV_DONTDUMP);
		atomic_store(&memory.end, (uintptr_t)at + bytes);
		atomic_store(&memory.start, (uintptr_t)at);
		return 0;
	}
	return -ENOMEM;
}

/* The lowest gap that is large enough: where in the list, and its address. */
static uintptr_t find_gap(size_t bytes, size_t *index)
{
	uintptr_t at = memory.start;
	size_t i;

	for (i = 0; i < memory.count; i++) {
		if (memory.block[i].start - at >= bytes)
			break;
		at = memory.block[i].start + memory.block[i].bytes;
	}
	*index = i;
	return memory.end - at >= bytes ? at : 0;
}

static void *alloc_locked(size_t bytes)
{
	int fd = memory_fd_locked();
	uintptr_t at;
	size_t index;

	if (fd < 0 || (!memory.start && reserve_locked(bytes)))
		return NULL;
	if (memory.count == memory.room) {
		size_t room = memory.room ? 2 * memory.room : 64;
		struct block *grown = realloc(memory.block, room * sizeof(*grown));

		if (!grown)
			return NULL;
		memory.block = grown;
		memory.room = room;
	}
	at = find_gap(bytes, &index);
	if (!at || mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, (off_t)at) == MAP_FAILED)
		return NULL;
	memmove(&memory.block[index + 1], &memory.block[index],
		(memory.count - index) * sizeof(*memory.block));
	memory.block[index] = (struct block){ at, bytes };
	memory.count++;
	return (void *)at;
}

HCA_EXPORT void *softhca_arena_alloc(size_t bytes)
{
	void *addr = NULL;

	if (bytes <= SIZE_MAX - HCA_PAGE) {
		bytes = hca_align_up(bytes ? bytes : 1, HCA_PAGE);
		pthread_mutex_lock(&memory.lock);
		addr = alloc_locked(bytes);
		pthread_mutex_unlock(&memory.lock);
	}
	if (!addr)
		errno = ENOMEM;
	return addr;
}

static struct block *find_block(uintptr_t addr)
{
	size_t low = 0, high = memory.count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		struct block *b = &memory.block[middle];

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

	pthread_mutex_lock(&memory.lock);
	b = find_block((uintptr_t)addr);
	if (b && b->start == (uintptr_t)addr) {
		/* The pages first: a new allocation here starts from zeros. */
		fallocate(memory.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)b->start, (off_t)b->bytes);
		mmap(addr, b->bytes, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		memory.count--;
		memmove(b, b + 1, (size_t)(&memory.block[memory.count] - b) * sizeof(*b));
	}
	pthread_mutex_unlock(&memory.lock);
}

HCA_EXPORT bool softhca_arena_contains(const void *addr, size_t bytes)
{
	uintptr_t at = (uintptr_t)addr, start = memory.start, end = memory.end;

	return at >= start && at < end && bytes <= end - at;
}

bool hca_memory_in_arena(const void *addr, size_t bytes)
{
	struct block *b;
	bool inside;

	if (!softhca_arena_contains(addr, bytes))
		return false;
	pthread_mutex_lock(&memory.lock);
	b = find_block((uintptr_t)addr);
	inside = b && bytes <= b->bytes - ((uintptr_t)addr - b->start);
	pthread_mutex_unlock(&memory.lock);
	return inside;
}
