/* remap.c - moving memory onto the segment, in place. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "layout.h"
#include "maps.h"
#include "memory.h"
#include "remap.h"
#include "segment.h"

/* Bytes moved, all in all and since the last sweep; under hca_memory.lock. */
static uint64_t moved, moved_since_sweep;

enum { SWEEP_BYTES = 256 << 20 };

/*
 * Is this a piece of the segment at its own address?  The arena's, too, since
 * the kernel makes one mapping of the two where they touch.
 */
static bool is_moved(const struct hca_map *map)
{
	return map->shared && map->inode == hca_memory.inode && map->offset == map->start;
}

static void make_private(uint64_t start, uint64_t end)
{
	if (start < end)
		mmap((void *)(uintptr_t)start, end - start, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, hca_memory.fd, (off_t)start);
}

/*
 * In a child of fork: what was moved must not be shared with the parent.  Not
 * a byte of the heap may be touched before this is done.
 */
void hca_remap_make_private(void)
{
	struct hca_maps m;
	struct hca_map map;

	if (!moved || hca_maps_open(0, HCA_MEMORY_BYTES, &m))
		return;
	moved = moved_since_sweep = 0;
	while (hca_maps_next(&m, &map)) {
		uint64_t below = hca_memory.start, above = hca_memory.end;

		if (!is_moved(&map))
			continue;
		/* The arena stays shared. */
		make_private(map.start, map.end < below ? map.end : below);
		make_private(map.start > above ? map.start : above, map.end);
	}
	hca_maps_close(&m);
}

static bool punch(uint64_t start, uint64_t end)
{
	return fallocate(hca_memory.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start,
			 (off_t)(end - start)) == 0;
}

static bool is_movable(const struct hca_map *map)
{
	return !map->shared && !map->inode && map->readable && map->writable &&
	       !map->executable && !map->stack;
}

static bool is_moved_and_open(const struct hca_map *map)
{
	return is_moved(map) && map->readable && map->writable;
}

static bool is_moved_or_movable(const struct hca_map *map)
{
	return is_moved(map) || is_movable(map);
}

/* Is every page of [start, end) in a mapping that fits? */
static bool all_pages(uint64_t start, uint64_t end, bool (*fits)(const struct hca_map *map))
{
	struct hca_maps m;
	struct hca_map map;
	uint64_t at = start;

	if (hca_maps_open(start, end - start, &m))
		return false;
	while (at < end && hca_maps_next(&m, &map) && map.start <= at && fits(&map))
		at = map.end;
	hca_maps_close(&m);
	return at >= end;
}

/* Which pages hold anything?  Those that were never touched need no copy. */
static size_t count_alike(int pagemap, uint64_t start, size_t pages, bool *touched)
{
	enum { CHUNK = 512 };
	const uint64_t present_or_swapped = 3ull << 62;
	uint64_t entry[CHUNK];
	size_t i, n = pages < CHUNK ? pages : CHUNK, bytes = n * sizeof(*entry);
	off_t at = (off_t)(start / hca_page_bytes() * sizeof(*entry));

	if (pread(pagemap, entry, bytes, at) != (ssize_t)bytes) {
		*touched = true;
		return pages;
	}
	*touched = entry[0] & present_or_swapped;
	for (i = 1; i < n && !(entry[i] & present_or_swapped) == !*touched; i++)
		;
	return i;
}

static bool copy_out(uint64_t start, uint64_t end)
{
	while (start < end) {
		/* Whole pages, whoever owns their bytes: past a sanitizer's pwrite. */
		ssize_t n = syscall(SYS_pwrite64, hca_memory.fd, (void *)(uintptr_t)start,
				    end - start, (off_t)start);

		if (n <= 0)
			return false;
		start += (uint64_t)n;
	}
	return true;
}

static bool copy_touched(uint64_t start, uint64_t end)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const uint64_t page = hca_page_bytes();
	uint64_t from = end;		/* what is to be copied begins there; end: nothing */
	bool ok = true, touched;

	while (ok && start < end) {
		size_t pages = count_alike(pagemap, start, (end - start) / page, &touched);
		uint64_t next = start + pages * page;

		if (touched && from == end)
			from = start;
		if (!touched && from != end) {
			ok = copy_out(from, start);
			from = end;
		}
		start = next;
	}
	if (ok)
		ok = copy_out(from, end);
	if (pagemap >= 0)
		close(pagemap);
	return ok;
}

/*
 * Page tables for what holds data, at once instead of by a fault per page.  By
 * reading: the kernel maps many pages around each, and writably, since nobody
 * keeps account of what is dirty in a memfd.
 */
static void populate(uint64_t start, uint64_t end)
{
#ifdef MADV_POPULATE_READ
	off_t data = (off_t)start, hole;

	for (; (data = lseek(hca_memory.fd, data, SEEK_DATA)) >= 0 && data < (off_t)end;
	     data = hole) {
		hole = lseek(hca_memory.fd, data, SEEK_HOLE);
		if (hole < 0 || hole > (off_t)end)
			hole = (off_t)end;
		madvise((void *)(uintptr_t)data, (size_t)(hole - data), MADV_POPULATE_READ);
	}
#endif
}

/* ---- What real devices have registered ----------------------------------- */

struct hca_pinned {
	struct hca_pinned *next, **at;
	uint64_t start, end;		/* whole pages */
	const void *owner;
};

static struct hca_pinned *pinned;	/* under hca_memory.lock */

struct hca_pinned *hca_pin(const void *addr, size_t bytes)
{
	struct hca_pinned *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->start = hca_align_down((uintptr_t)addr, hca_page_bytes());
	p->end = hca_align_up((uintptr_t)addr + bytes, hca_page_bytes());
	pthread_mutex_lock(&hca_memory.lock);
	p->next = pinned;
	p->at = &pinned;
	if (p->next)
		p->next->at = &p->next;
	pinned = p;
	pthread_mutex_unlock(&hca_memory.lock);
	return p;
}

void hca_pin_set_owner(struct hca_pinned *p, const void *owner)
{
	pthread_mutex_lock(&hca_memory.lock);
	p->owner = owner;
	pthread_mutex_unlock(&hca_memory.lock);
}

struct hca_pinned *hca_pin_of(const void *owner)
{
	struct hca_pinned *p;

	pthread_mutex_lock(&hca_memory.lock);
	for (p = pinned; p && p->owner != owner; p = p->next)
		;
	pthread_mutex_unlock(&hca_memory.lock);
	return p;
}

void hca_unpin(struct hca_pinned *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&hca_memory.lock);
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	pthread_mutex_unlock(&hca_memory.lock);
	free(p);
}

static bool is_pinned(uint64_t start, uint64_t end)
{
	const struct hca_pinned *p;

	for (p = pinned; p; p = p->next)
		if (p->start < end && start < p->end)
			return true;
	return false;
}

/* ---- Moving -------------------------------------------------------------- */

/* Pages of one private anonymous mapping; false: nothing has changed. */
static bool move(uint64_t start, uint64_t end)
{
	const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
	void *at = MAP_FAILED;

	/* Somebody's memory may have been here before. */
	if (punch(start, end) && !hca_segment_reserve(hca_memory.fd, start, end - start) &&
	    copy_touched(start, end))
		at = mmap((void *)(uintptr_t)start, end - start, PROT_READ | PROT_WRITE, flags,
			  hca_memory.fd, (off_t)start);
	if (at == MAP_FAILED) {
		punch(start, end);
		return false;
	}
	populate(start, end);
	moved += end - start;
	moved_since_sweep += end - start;
	return true;
}

/* What was moved once and has been unmapped since still takes memory: give it back. */
static void sweep(void)
{
	off_t data = 0, hole;
	struct hca_maps m;
	struct hca_map map;
	uint64_t at;

	for (; (data = lseek(hca_memory.fd, data, SEEK_DATA)) >= 0; data = hole) {
		hole = lseek(hca_memory.fd, data, SEEK_HOLE);
		if (hole < 0 || hca_maps_open((uint64_t)data, (uint64_t)(hole - data), &m))
			return;
		at = (uint64_t)data;
		while (hca_maps_next(&m, &map)) {
			if (!map.shared || map.inode != hca_memory.inode)
				continue;
			if (map.start > at)
				punch(at, map.start);
			at = map.end;
		}
		if (at < (uint64_t)hole)
			punch(at, (uint64_t)hole);
		hca_maps_close(&m);
	}
	moved_since_sweep = 0;
}

/* False: some of it could not be moved; what was, stays. */
static bool remap_locked(uint64_t start, uint64_t end)
{
	struct hca_maps m;
	struct hca_map map;
	bool ok = true;

	/* Where the pages are the segment's already, a real device has these. */
	if (is_pinned(start, end) && !all_pages(start, end, is_moved))
		return false;
	if (hca_memory_fd_locked() < 0 || hca_maps_open(start, end - start, &m))
		return false;
	while (ok && hca_maps_next(&m, &map))
		if (!is_moved(&map))
			ok = move(map.start > start ? map.start : start,
				  map.end < end ? map.end : end);
	hca_maps_close(&m);
	if (moved_since_sweep > SWEEP_BYTES)
		sweep();
	return ok;
}

bool hca_remap_is_done(const void *addr, size_t bytes)
{
	uint64_t first = hca_align_down((uintptr_t)addr, hca_page_bytes());
	bool done;

	pthread_mutex_lock(&hca_memory.lock);
	done = moved && all_pages(first, (uintptr_t)addr + bytes, is_moved_and_open);
	pthread_mutex_unlock(&hca_memory.lock);
	return done;
}

void hca_remap(void *addr, size_t bytes, bool edges, uint64_t *start, uint64_t *end)
{
	uint64_t first = (uintptr_t)addr, last = first + bytes;

	*start = *end = first;
	if (edges) {
		first = hca_align_down(first, hca_page_bytes());
		last = hca_align_up(last, hca_page_bytes());
	} else {
		first = hca_align_up(first, hca_page_bytes());
		last = hca_align_down(last, hca_page_bytes());
	}
	if (!bytes || first >= last)
		return;
	pthread_mutex_lock(&hca_memory.lock);
	if (all_pages(first, last, is_moved_or_movable) && remap_locked(first, last)) {
		*start = first > (uintptr_t)addr ? first : (uintptr_t)addr;
		*end = last < (uintptr_t)addr + bytes ? last : (uintptr_t)addr + bytes;
	}
	pthread_mutex_unlock(&hca_memory.lock);
}
