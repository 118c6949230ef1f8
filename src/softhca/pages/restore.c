/*
 * restore.c - moving memory back before the program could observe that it was moved.
 *
 * The code runs inside malloc, in signal handlers, in children of fork: it allocates nothing,
 * and the functions that it calls in the C library only make system calls.
 */
#include <pthread.h>

#include "softhca/base/base.h"
#include "softhca/base/layout.h"
#include "softhca/pages/memory.h"
#include "softhca/pages/remap_int.h"
#include "softhca/base/sys.h"

enum { CHUNK = 32 << 20 };		/* the most that exists twice during a copy */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void (*hca_remap_quiesce)(void);

static int prot_of(const struct hca_map *map)
{
	return (map->readable ? PROT_READ : 0) | (map->writable ? PROT_WRITE : 0) |
	       (map->executable ? PROT_EXEC : 0);
}

/* ---- Parts that peers map ------------------------------------------------ */

static void tell(struct hca_moved *m)
{
	if (m->changed)
		m->changed(m);
}

/*
 * Pages [start, end) are moved back: of each part that has such pages, the larger rest stays
 * mapped.
 */
static void shrink(uint64_t start, uint64_t end)
{
	struct hca_moved *m;

	for (m = hca_remap_state.list; m; m = m->next) {
		uint64_t before = start > m->start ? start - m->start : 0;
		uint64_t after = end < m->end ? m->end - end : 0;

		if (m->start >= m->end || end <= m->start || start >= m->end)
			continue;
		if (before >= after)
			m->end = m->start + before;
		else
			m->start = end;
		tell(m);
	}
}

/* ---- Copies -------------------------------------------------------------- */

/* Copy the pages that the segment holds. */
static bool fill_from_segment(uint64_t to, uint64_t start, uint64_t end)
{
	off_t data = (off_t)start, hole;
	long n;

	for (; (data = lseek(hca_memory.fd, data, SEEK_DATA)) >= 0 && data < (off_t)end;
	     data += n) {
		hole = lseek(hca_memory.fd, data, SEEK_HOLE);
		if (hole < 0 || hole > (off_t)end)
			hole = (off_t)end;
		n = hca_sys(SYS_pread64, hca_memory.fd, (long)(to + (uint64_t)data - start),
			    (long)(hole - data), (long)data, 0, 0);
		if (n <= 0)
			return false;
	}
	return data >= 0 || errno == ENXIO;
}

/*
 * Sanitizers do not check it: a page may hold bytes of any object.  volatile keeps the
 * compiler from calling memcpy.
 */
__attribute__((no_sanitize("address"))) __attribute__((no_sanitize("thread")))
static void copy_page(volatile uint64_t *to, const volatile uint64_t *from)
{
	const size_t words = hca_page_bytes() / sizeof(*to);
	size_t i;

	for (i = 0; i < words && !from[i]; i++)
		;
	/* A page of zeros was never touched, and the copy need not touch it. */
	for (; i < words; i++)
		to[i] = from[i];
}

static bool fill_from_memory(uint64_t to, const struct hca_map *map)
{
	const uint64_t page = hca_page_bytes();
	uint64_t at;

	if (!map->readable && !hca_sys_protect(map->start, map->end - map->start, PROT_READ))
		return false;
	for (at = map->start; at < map->end; at += page)
		copy_page((uint64_t *)(uintptr_t)(to + at - map->start),
			  (const uint64_t *)(uintptr_t)at);
	return true;
}

static bool restore_fill(uint64_t to, const struct hca_map *map)
{
	return hca_is_moved(map) ? fill_from_segment(to, map->start, map->end)
				 : fill_from_memory(to, map);
}

static uint64_t fresh(uint64_t bytes)
{
	long at = hca_sys_map(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return hca_sys_failed(at) ? 0 : (uint64_t)at;
}

/* Move the filled pages at `from` onto [start, end). */
static bool take_place(uint64_t from, uint64_t start, uint64_t end, int prot)
{
	const uint64_t bytes = end - start;

	if ((prot == (PROT_READ | PROT_WRITE) || hca_sys_protect(from, bytes, prot)) &&
	    hca_sys_put(from, bytes, start)) {
		hca_sys_punch(hca_memory.fd, start, end);	/* no descriptor in a child */
		return true;
	}
	hca_sys_unmap(from, bytes);
	return false;
}

/* Turn one mapping, moved or a view, into anonymous memory with the same data. */
static void put_back(const struct hca_map *map)
{
	struct hca_map part = *map;
	uint64_t from;

	for (part.start = map->start; part.start < map->end; part.start = part.end) {
		part.offset = part.start;
		part.end = map->end - part.start > CHUNK ? part.start + CHUNK : map->end;
		from = fresh(part.end - part.start);
		if (!from)
			return;
		if (!restore_fill(from, &part)) {
			hca_sys_unmap(from, part.end - part.start);
			return;
		}
		if (!take_place(from, part.start, part.end, prot_of(map)))
			return;
	}
}

/* ---- Searching ----------------------------------------------------------- */

static bool restore_is_ours(const struct hca_map *map)
{
	return hca_is_moved(map) || hca_is_view(map);
}

/* A search for moved memory and views in [at, end), among all that was ever moved. */
struct search {
	uint64_t at, end, stop;		/* at: position of the walk, which ends at stop */
	bool walking;
};

static bool next_piece(struct search *s, struct hca_map *piece)
{
	for (;;) {
		if (!s->walking) {
			if (!hca_ranges_next(&hca_remap_state.ranges, &s->at, s->end, &s->stop) ||
			    !hca_remap_walk(s->at, s->stop))
				return false;
			s->walking = true;
		}
		while (hca_remap_next(s->at, s->stop, piece))
			if (restore_is_ours(piece))
				return true;
		hca_remap_walked();
		s->walking = false;
		s->at = s->stop;
	}
}

static void put_all_back(uint64_t start, uint64_t end)
{
	struct search s = { .at = start, .end = end };
	struct hca_map piece;

	while (next_piece(&s, &piece))
		put_back(&piece);
}

/* ---- Calls of the program ------------------------------------------------ */

/*
 * The pages are about to be unmapped and need no copy: until the call is made, empty pages
 * take their place.  (A hole would let another thread map something there.)
 */
static void restore_drop(uint64_t start, uint64_t end)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
	struct search s = { .at = start, .end = end };
	struct hca_map piece;

	while (next_piece(&s, &piece)) {
		if (!hca_is_moved(&piece) ||
		    hca_sys_failed(hca_sys_map(piece.start, piece.end - piece.start,
					       prot_of(&piece), flags, -1, 0)))
			continue;
		hca_sys_punch(hca_memory.fd, piece.start, piece.end);
	}
	hca_ranges_remove(&hca_remap_state.ranges, start, end);
}

/* Is it private memory with one protection throughout; in how many mappings? */
static bool is_uniform(uint64_t start, uint64_t end, int *prot, unsigned *pieces, bool *ours)
{
	struct hca_map map;
	uint64_t at = start;

	*prot = PROT_NONE;
	*pieces = 0;
	*ours = false;
	if (!hca_remap_walk(start, end))
		return false;
	while (at < end && hca_remap_next(start, end, &map) && map.start == at) {
		if (!restore_is_ours(&map) && (map.shared || map.inode || map.stack))
			break;
		if ((*pieces)++ && prot_of(&map) != *prot)
			break;
		*prot = prot_of(&map);
		*ours |= restore_is_ours(&map);
		at = map.end;
	}
	hca_remap_walked();
	return at >= end;
}

/*
 * Move the range back into one new mapping: mremap accepts only one, and moving parts has
 * split it.
 */
static bool put_back_as_one(uint64_t start, uint64_t end)
{
	unsigned pieces;
	struct hca_map map;
	uint64_t from;
	bool ours, ok;
	int prot;

	if (!is_uniform(start, end, &prot, &pieces, &ours))
		return false;
	if (pieces == 1 && !ours)
		return true;
	from = fresh(end - start);
	ok = from && hca_remap_walk(start, end);
	if (ok) {
		while (ok && hca_remap_next(start, end, &map))
			ok = restore_fill(from + (map.start - start), &map);
		hca_remap_walked();
	}
	if (ok)
		return take_place(from, start, end, prot);
	if (from)
		hca_sys_unmap(from, end - start);
	return false;
}

/* The whole pages of the call; false: the kernel will refuse the call. */
static bool is_range(enum rg_mem_call call, uintptr_t start, size_t bytes, uint64_t *first,
		     uint64_t *last)
{
	const uint64_t page = hca_page_bytes();

	if (call == RG_MEM_MOVE && !bytes)
		bytes = 1;		/* asks for a second mapping of shared memory */
	if (!bytes || start > HCA_MEMORY_BYTES || bytes > HCA_MEMORY_BYTES - start)
		return false;
	*first = hca_align_up(start, page);
	*last = hca_align_up(start + bytes, page);
	/* Only the end of the heap may be anywhere. */
	return *first < *last && (*first == start || call == RG_MEM_UNMAP);
}

void hca_remap_hear(enum rg_mem_call call, uintptr_t start, size_t bytes)
{
	uint64_t first, last;
	sigset_t before;
	int err = errno;

	if (call > RG_MEM_DISCARD || !is_range(call, start, bytes, &first, &last) ||
	    !hca_ranges_touch(&hca_remap_state.ranges, first, last))
		return;
	hca_remap_lock(&before);
	shrink(first, last);
	if (call == RG_MEM_UNMAP && first == start)
		restore_drop(first, last);
	else if (call != RG_MEM_MOVE || !put_back_as_one(first, last))
		put_all_back(first, last);
	/* Discarded or restored pages may be in several pieces, which matters to mremap. */
	if (call == RG_MEM_REPLACE)
		hca_ranges_remove(&hca_remap_state.ranges, first, last);
	hca_remap_unlock(&before);
	errno = err;
}

/* ---- Fork ---------------------------------------------------------------- */

/* For older kernels: an atomic write that changes nothing, safe with other threads. */
static void touch_pages(uint64_t start, uint64_t end)
{
	for (; start < end; start += hca_page_bytes())
		atomic_fetch_or_explicit((_Atomic unsigned char *)(uintptr_t)start, 0,
					 memory_order_relaxed);
}

bool hca_remap_copy_pages(uint64_t start, uint64_t end)
{
	long rc;

	do
		rc = hca_sys(SYS_madvise, (long)start, (long)(end - start), MADV_POPULATE_WRITE,
			     0, 0, 0);
	while (rc == -EAGAIN || rc == -EINTR);
	if (rc == -EINVAL)
		touch_pages(start, end);
	return !rc || rc == -EINVAL;
}

/*
 * Other threads go on writing: at any time each page is the shared one or a private copy
 * made from it.
 */
static void make_private(const struct hca_map *map)
{
	uint64_t at, end;

	if (!map->writable || !map->readable || map->executable) {
		put_back(map);		/* not writable: no write can be lost */
		return;
	}
	if (hca_sys_failed(hca_sys_map(map->start, map->end - map->start, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, hca_memory.fd,
				       map->start)))
		return;			/* the child will try */
	for (at = map->start; at < map->end; at = end) {
		end = map->end - at > CHUNK ? at + CHUNK : map->end;
		if (hca_remap_copy_pages(at, end))
			hca_sys_punch(hca_memory.fd, at, end);
	}
}

/*
 * Mark registrations in [start, end) moving and unmapped: peers may be copying to their pages
 * by mapping, and through another registration by address.  True: at least one.
 */
static bool send_away(uint64_t start, uint64_t end)
{
	struct hca_moved *m;
	bool any = false;

	for (m = hca_remap_state.list; m; m = m->next) {
		if (m->from >= end || m->to <= start)
			continue;
		m->end = m->start;
		m->moving = true;
		tell(m);
		any = true;
	}
	return any;
}

/* Must any page become private?  If none, no peer has to wait, nor be waited for. */
static bool any_moved(uint64_t start, uint64_t end)
{
	struct search s = { .at = start, .end = end };
	struct hca_map piece;
	bool any = false;

	while (!any && next_piece(&s, &piece))
		any = hca_is_moved(&piece);
	if (s.walking)
		hca_remap_walked();
	return any;
}

/* Nothing is moved between this and end_private. */
static void begin_private(uint64_t start, uint64_t end)
{
	struct search s = { .at = start, .end = end };
	struct hca_moved *m;
	struct hca_map piece;
	sigset_t before;
	bool used;

	hca_remap_lock(&before);
	hca_remap_state.forking++;
	hca_remap_state.making_private++;
	used = any_moved(start, end) && send_away(start, end);
	hca_remap_unlock(&before);
	if (used && hca_remap_quiesce)
		hca_remap_quiesce();
	hca_remap_lock(&before);
	while (next_piece(&s, &piece))
		if (hca_is_moved(&piece))
			make_private(&piece);
	/* Only the last thread knows that the move is over. */
	hca_remap_state.making_private--;
	for (m = hca_remap_state.list; m && !hca_remap_state.making_private; m = m->next) {
		if (!m->moving)
			continue;
		m->moving = false;
		tell(m);
	}
	hca_remap_unlock(&before);
}

static void end_private(void)
{
	sigset_t before;

	hca_remap_lock(&before);
	hca_remap_state.forking--;
	hca_remap_unlock(&before);
}

void hca_remap_before_fork(void)
{
	begin_private(0, HCA_MEMORY_BYTES);
}

void hca_remap_after_fork(void)
{
	end_private();
}

void hca_remap_back(const void *addr, size_t bytes)
{
	const uint64_t page = hca_page_bytes(), start = hca_align_down((uintptr_t)addr, page);
	const uint64_t end = hca_align_up((uintptr_t)addr + bytes, page);

	if (!hca_ranges_touch(&hca_remap_state.ranges, start, end))
		return;
	begin_private(start, end);
	end_private();
}

/* A thread of the parent was changing the set: rebuild it from the mappings. */
static void find_views(void)
{
	struct hca_map map;

	hca_ranges_reset(&hca_remap_state.ranges);
	if (!hca_remap_walk(0, HCA_MEMORY_BYTES))
		return;
	while (hca_remap_next(0, HCA_MEMORY_BYTES, &map))
		if (!map.shared && map.inode && map.offset == map.start)
			hca_ranges_add(&hca_remap_state.ranges, map.start, map.end);
	hca_remap_walked();
}

void hca_remap_in_child(void)
{
	struct search s = { .end = HCA_MEMORY_BYTES };
	struct hca_map piece;

	hca_remap_reset_lock();
	hca_remap_state.list = NULL;
	hca_remap_state.forking = hca_remap_state.making_private = 0;
	if (hca_remap_state.ranges.turn & 1)
		find_views();
	/* Pieces that could not be made private before. */
	while (next_piece(&s, &piece))
		if (hca_is_moved(&piece))
			put_back(&piece);
}
