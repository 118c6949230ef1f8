/* remap.c - moving memory onto the segment, in place. */
#include <pthread.h>

#include "softhca/base/base.h"
#include "softhca/base/layout.h"
#include "softhca/base/proc.h"
#include "softhca/pages/held.h"
#include "softhca/pages/landing.h"
#include "softhca/pages/memory.h"
#include "softhca/pages/remap_int.h"
#include "softhca/base/segment.h"
#include "softhca/base/sys.h"
#include "softhca/pages/pinned.h"

struct hca_remap_state hca_remap_state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Bytes moved since the last sweep; locked. */
static uint64_t moved_since_sweep;

enum {
	SWEEP_BYTES = 256 << 20,
	SLICE = 2 << 20,		/* the most that exists twice while it is moved */
	TURN = 32 << 20,		/* the most that is moved while landings wait */
};

void hca_remap_lock(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
	pthread_mutex_lock(&lock);
}

void hca_remap_unlock(const sigset_t *before)
{
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* To move memory: no landing is in progress.  The wait for them comes first (landing.h). */
static void lock_without_landings(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
	hca_landings_exclude();
	pthread_mutex_lock(&lock);
}

static void unlock_with_landings(const sigset_t *before)
{
	pthread_mutex_unlock(&lock);
	hca_landings_admit();
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

void hca_remap_reset_lock(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* ---- Kinds of mappings --------------------------------------------------- */

/* True for the arena, too: the kernel merges the two mappings where they touch. */
bool hca_is_moved(const struct hca_map *map)
{
	return map->shared && map->inode == hca_memory.inode && map->offset == map->start;
}

bool hca_is_view(const struct hca_map *map)
{
	return !map->shared && map->inode && map->offset == map->start &&
	       hca_ranges_touch(&hca_remap_state.ranges, map->start, map->end);
}

static bool is_movable(const struct hca_map *map)
{
	return !map->shared && map->readable && map->writable && !map->executable &&
	       !map->stack && (!map->inode || hca_is_view(map));
}

static bool is_moved_and_open(const struct hca_map *map)
{
	return hca_is_moved(map) && map->readable && map->writable;
}

static bool is_moved_or_movable(const struct hca_map *map)
{
	return hca_is_moved(map) || is_movable(map);
}

/* Is every page of [start, end) in a mapping for which fits is true? */
static bool all_pages(uint64_t start, uint64_t end, bool (*fits)(const struct hca_map *map))
{
	uint64_t at = start;
	struct hca_map map;

	if (!hca_remap_walk(start, end))
		return false;
	while (at < end && hca_remap_next(start, end, &map) && map.start <= at && fits(&map))
		at = map.end;
	hca_remap_walked();
	return at >= end;
}

/* ---- Copying ------------------------------------------------------------- */

/* The number of pages that are all touched or all untouched; untouched pages need no copy. */
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

static bool remap_copy_out(uint64_t start, uint64_t end)
{
	while (start < end) {
		/* A raw call: a sanitizer's pwrite would reject bytes of other objects. */
		long n = hca_sys(SYS_pwrite64, hca_memory.fd, (long)start, (long)(end - start),
				 (long)start, 0, 0);

		if (n <= 0)
			return false;
		start += (uint64_t)n;
	}
	return true;
}

static bool copy_touched(uint64_t start, uint64_t end)
{
	int pagemap = hca_proc_open("/proc/self/pagemap", O_RDONLY);
	const uint64_t page = hca_page_bytes();
	uint64_t from = end;		/* the next piece to be copied begins there; end: none */
	bool ok = true, touched;

	while (ok && start < end) {
		size_t pages = count_alike(pagemap, start, (end - start) / page, &touched);
		uint64_t next = start + pages * page;

		if (touched && from == end)
			from = start;
		if (!touched && from != end) {
			ok = remap_copy_out(from, start);
			from = end;
		}
		start = next;
	}
	if (ok)
		ok = remap_copy_out(from, end);
	if (pagemap >= 0)
		close(pagemap);
	return ok;
}

/*
 * Fill the page tables for pages with data, at once instead of by a fault per page.
 * Reading is enough: the kernel maps many pages around each, and writably, since it
 * does not track dirty pages of a memfd.
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
		hca_sys_advise((uint64_t)data, (uint64_t)(hole - data), MADV_POPULATE_READ);
	}
#endif
}

/* ---- Parts that peers can map -------------------------------------------- */

static void moved_list_add(struct hca_moved *m)
{
	m->next = hca_remap_state.list;
	m->at = &hca_remap_state.list;
	if (m->next)
		m->next->at = &m->next;
	hca_remap_state.list = m;
	m->listed = true;
}

static void list_remove(struct hca_moved *m)
{
	*m->at = m->next;
	if (m->next)
		m->next->at = m->at;
	m->listed = false;
}

static void set(struct hca_moved *m, uint64_t start, uint64_t end)
{
	m->start = start;
	m->end = end;
	m->moving = hca_remap_state.making_private > 0;
	if (m->from < m->to)
		moved_list_add(m);
}

void hca_moved_none(struct hca_moved *m, void *addr, size_t bytes)
{
	sigset_t before;

	m->from = (uintptr_t)addr;
	m->to = m->from + bytes;
	hca_remap_lock(&before);
	set(m, m->from, m->from);
	hca_remap_unlock(&before);
}

void hca_moved_part(struct hca_moved *m, const struct hca_moved *from, uint64_t start,
		    uint64_t end)
{
	sigset_t before;

	hca_remap_lock(&before);
	m->from = start;
	m->to = end;
	start = hca_later(start, from->start);
	if (from->end < end)
		end = from->end;
	set(m, start, start < end ? end : start);
	hca_remap_unlock(&before);
}

void hca_moved_replace(struct hca_moved *m, struct hca_moved *from)
{
	sigset_t before;

	hca_remap_lock(&before);
	if (m->listed)
		list_remove(m);
	if (from->listed)
		list_remove(from);
	m->from = from->from;
	m->to = from->to;
	set(m, from->start, from->end);
	hca_remap_unlock(&before);
}

/* A published registration gets another mapped part.  Locked. */
static void moved_renew(struct hca_moved *m, uint64_t start, uint64_t end)
{
	if (m->listed)
		list_remove(m);
	set(m, start, end);
	if (m->changed)
		m->changed(m);
}

void hca_moved_drop(struct hca_moved *m)
{
	sigset_t before;

	if (!m->listed)
		return;
	hca_remap_lock(&before);
	list_remove(m);
	hca_remap_unlock(&before);
}

/* ---- Moving -------------------------------------------------------------- */

static bool move_slice(uint64_t start, uint64_t end)
{
	long at = -ENOMEM;

	/* Earlier memory at this address may have left pages in the segment. */
	if (hca_sys_punch(hca_memory.fd, start, end) &&
	    !hca_segment_reserve(hca_memory.fd, start, end - start) && copy_touched(start, end))
		at = hca_sys_map(start, end - start, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, hca_memory.fd, start);
	if (hca_sys_failed(at)) {
		hca_sys_punch(hca_memory.fd, start, end);
		return false;
	}
	populate(start, end);
	moved_since_sweep += end - start;
	return true;
}

/* Move the pages of one private mapping; false: not all of them. */
static bool remap_move(const struct hca_map *map)
{
	uint64_t at, end;

	if (!hca_ranges_add(&hca_remap_state.ranges, map->start, map->end) ||
	    (map->inode && !hca_remap_copy_pages(map->start, map->end)))
		return false;
	for (at = map->start; at < map->end; at = end) {
		end = map->end - at > SLICE ? at + SLICE : map->end;
		if (!move_slice(at, end))
			return false;
	}
	return true;
}

/* Free pages of the segment in [at, end) that no mapping shows. */
static void sweep_piece(uint64_t at, uint64_t end)
{
	struct hca_map map;

	while (hca_remap_next(at, end, &map)) {
		if (map.inode != hca_memory.inode)
			continue;
		if (map.start > at)
			hca_sys_punch(hca_memory.fd, at, map.start);
		at = map.end;
	}
	if (at < end)
		hca_sys_punch(hca_memory.fd, at, end);
}

/*
 * Free pages of mappings that unseen calls removed, and pages that peers wrote after
 * they had been moved back.
 */
static void sweep(void)
{
	off_t data = 0, hole;

	for (; (data = lseek(hca_memory.fd, data, SEEK_DATA)) >= 0; data = hole) {
		hole = lseek(hca_memory.fd, data, SEEK_HOLE);
		if (hole < 0 || !hca_remap_walk((uint64_t)data, (uint64_t)hole))
			return;
		sweep_piece((uint64_t)data, (uint64_t)hole);
		hca_remap_walked();
	}
	moved_since_sweep = 0;
}

/* Does the segment cover addresses up to `end`? */
static bool has_room(uint64_t end)
{
	return hca_memory_fd() >= 0 && hca_memory.inode && end <= hca_memory.bytes;
}

/* Has a real device pinned pages here?  If they are the segment's already, it has pinned these. */
static bool is_kept(uint64_t start, uint64_t end)
{
	return hca_is_pinned(start, end) && !all_pages(start, end, hca_is_moved);
}

/* False: a part could not be moved; the rest stays moved. */
static bool move_some(uint64_t start, uint64_t end)
{
	struct hca_map map;
	bool ok = true;

	if (is_kept(start, end) || !hca_remap_walk(start, end))
		return false;
	while (ok && hca_remap_next(start, end, &map))
		if (!hca_is_moved(&map))
			ok = remap_move(&map);
	hca_remap_walked();
	return ok;
}

/*
 * Move much memory in turns: between two of them the lock is free and landings begin.  So the
 * result is what all pages are at the end.
 */
static bool move_all(uint64_t start, uint64_t end, sigset_t *before)
{
	bool ok = !is_kept(start, end);
	uint64_t at, to;

	for (at = start; ok && at < end; at = to) {
		to = end - at > TURN ? at + TURN : end;
		if (at > start) {
			unlock_with_landings(before);
			lock_without_landings(before);
		}
		ok = !hca_remap_state.forking && move_some(at, to);
	}
	if (moved_since_sweep > SWEEP_BYTES)
		sweep();
	return ok && (end - start <= TURN || all_pages(start, end, hca_is_moved));
}

bool hca_remap_again(struct hca_moved *m, void *addr, size_t bytes)
{
	const uint64_t page = hca_page_bytes(), first = hca_align_down((uintptr_t)addr, page);
	const uint64_t end = (uintptr_t)addr + bytes;
	sigset_t before;
	bool done;

	if (!bytes || !hca_ranges_touch(&hca_remap_state.ranges, first, end))
		return false;
	hca_remap_lock(&before);
	done = !hca_remap_state.forking &&
	       all_pages(first, hca_align_up(end, page), is_moved_and_open);
	if (done) {
		m->from = (uintptr_t)addr;
		m->to = end;
		set(m, m->from, end);
	}
	hca_remap_unlock(&before);
	return done;
}

void hca_remap(struct hca_moved *m, void *addr, size_t bytes, bool edges)
{
	const uint64_t page = hca_page_bytes(), start = (uintptr_t)addr, end = start + bytes;
	const uint64_t first = edges ? hca_align_down(start, page) : hca_align_up(start, page);
	const uint64_t last = edges ? hca_align_up(end, page) : hca_align_down(end, page);
	uint64_t unloads;
	sigset_t before;

	m->start = m->end = start;
	/*
	 * dlclose unmaps data of a library by a call that is not seen; a thread writes to its stack
	 * while another one moves a page of it.
	 */
	if (!bytes || first >= last || rg_memwatch_in_library(first, last - first, &unloads) ||
	    hca_held_by_stack(first, __builtin_frame_address(0)) || !has_room(last))
		return;
	lock_without_landings(&before);
	if (all_pages(first, last, is_moved_or_movable) && move_all(first, last, &before)) {
		m->from = start;
		m->to = end;
		set(m, hca_later(first, start), last < end ? last : end);
	}
	unlock_with_landings(&before);
}

const char *hca_remap_requested(struct hca_moved *m, const void *addr, size_t bytes,
				const void *frame)
{
	const uint64_t page = hca_page_bytes(), start = (uintptr_t)addr;
	const uint64_t first = hca_align_up(start, page);
	const uint64_t last = hca_align_down(start + bytes, page);
	const char *why;
	uint64_t unloads;
	sigset_t before;
	bool failed = false;

	if (first >= last)
		return "it holds no whole page";
	if (!hca_remap_watch())
		return "calls that change mappings cannot be watched";
	why = hca_held_by_process();
	if (!why && rg_memwatch_in_library(first, last - first, &unloads))
		why = "it belongs to a shared object";
	if (!why && !has_room(last))
		why = "there is no memory that peers can map";
	if (!why)
		why = hca_held_range(first, last, frame);
	if (why)
		return why;
	lock_without_landings(&before);
	if (hca_remap_state.forking || hca_is_pinned(first, last))
		why = "it is kept where it is";
	else if (!all_pages(first, last, is_moved_or_movable))
		why = "it is not private anonymous memory";
	else if (!move_all(first, last, &before))
		failed = true;
	else
		moved_renew(m, first, last);
	unlock_with_landings(&before);
	if (!failed)
		return why;
	hca_remap_back(addr, bytes);
	return "it could not be moved";
}
