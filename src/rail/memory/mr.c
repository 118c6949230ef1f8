/* mr.c - the registration cache. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/err.h"
#include "memwatch/memwatch.h"
#include "rail/memory/mr.h"

/* ---- The log of memory that goes away ----------------------------------- */

enum { LOG_ENTRIES = 1024 };		/* a power of two */

/* Any thread writes entries, without a lock; an entry is valid for position n if turn is n + 1. */
static struct {
	_Atomic uint64_t turn;
	_Atomic uintptr_t start;
	_Atomic size_t bytes;
} log_entry[LOG_ENTRIES];
static _Atomic uint64_t log_head;

void rail_mr_invalidate(const void *addr, size_t bytes)
{
	uint64_t n = atomic_fetch_add(&log_head, 1);
	unsigned i = n % LOG_ENTRIES;

	atomic_store(&log_entry[i].turn, 0);
	atomic_store(&log_entry[i].start, (uintptr_t)addr);
	atomic_store(&log_entry[i].bytes, bytes);
	atomic_store(&log_entry[i].turn, n + 1);
}

/* False when the entry has been overwritten, or its writer has not come to the end. */
static bool log_read(uint64_t n, uintptr_t *start, size_t *bytes)
{
	unsigned i = n % LOG_ENTRIES;

	if (atomic_load(&log_entry[i].turn) != n + 1)
		return false;
	*start = atomic_load(&log_entry[i].start);
	*bytes = atomic_load(&log_entry[i].bytes);
	return atomic_load(&log_entry[i].turn) == n + 1;
}

/* ---- Entries ------------------------------------------------------------ */

static void entry_destroy(struct rail_mr_cache *c, struct rail_mr *mr)
{
	c->detach(c->user, mr);
	free(mr);
}

static int entry_make(struct rail_mr_cache *c, uintptr_t start, size_t bytes, struct rail_mr **out)
{
	struct rail_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return -ENOMEM;
	mr->start = start;
	mr->bytes = bytes;
	if (c->watched)
		mr->in_library = rg_memwatch_in_library(start, bytes, &mr->unloads);
	rc = c->attach(c->user, mr);
	if (rc) {
		free(mr);
		return rc;
	}
	*out = mr;
	return 0;
}

/* The index of the first entry that ends after addr. */
static size_t entry_search(const struct rail_mr_cache *c, uintptr_t addr)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->sorted[middle]->start + c->sorted[middle]->bytes > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static bool entry_covers(const struct rail_mr *mr, uintptr_t start, size_t bytes)
{
	return start >= mr->start && start - mr->start <= mr->bytes &&
	       bytes <= mr->bytes - (start - mr->start);
}

static int entries_reserve(struct rail_mr_cache *c)
{
	size_t capacity = c->capacity ? 2 * c->capacity : 64;
	struct rail_mr **grown;

	if (c->count < c->capacity)
		return 0;
	grown = realloc(c->sorted, capacity * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->sorted = grown;
	c->capacity = capacity;
	return 0;
}

static void entry_insert(struct rail_mr_cache *c, struct rail_mr *mr)
{
	size_t i = entry_search(c, mr->start);

	memmove(&c->sorted[i + 1], &c->sorted[i], (c->count - i) * sizeof(*c->sorted));
	c->sorted[i] = mr;
	c->count++;
	c->bytes += mr->bytes;
}

/* Take the entry out of the table; it goes now, or with the last operation that uses it. */
static void entry_drop(struct rail_mr_cache *c, size_t i)
{
	struct rail_mr *mr = c->sorted[i];

	c->count--;
	memmove(&c->sorted[i], &c->sorted[i + 1], (c->count - i) * sizeof(*c->sorted));
	c->bytes -= mr->bytes;
	if (c->last == mr)
		c->last = NULL;
	mr->detached = true;
	if (mr->refs)
		c->loose++;
	else
		entry_destroy(c, mr);
}

static bool evict_one(struct rail_mr_cache *c)
{
	size_t oldest = c->count;

	for (size_t i = 0; i < c->count; i++) {
		const struct rail_mr *mr = c->sorted[i];

		if (mr->refs || mr->pinned)
			continue;
		if (oldest == c->count || mr->used < c->sorted[oldest]->used)
			oldest = i;
	}
	if (oldest == c->count)
		return false;
	entry_drop(c, oldest);
	c->evictions++;
	return true;
}

static void entries_invalidate(struct rail_mr_cache *c, uintptr_t start, size_t bytes)
{
	for (size_t i = entry_search(c, start); i < c->count; ) {
		struct rail_mr *mr = c->sorted[i];

		if (mr->start >= start && mr->start - start >= bytes)
			break;
		if (mr->pinned) {
			mr->stale = true;
			i++;
			continue;
		}
		entry_drop(c, i);
		c->invalidations++;
	}
}

static void catch_up(struct rail_mr_cache *c)
{
	uint64_t head = atomic_load(&log_head);

	while (c->log_seen != head) {
		uintptr_t start = 0;
		size_t bytes = SIZE_MAX;

		/* An unknown range may be everything. */
		if (head - c->log_seen > LOG_ENTRIES || !log_read(c->log_seen, &start, &bytes)) {
			c->log_seen = head;
			entries_invalidate(c, 0, SIZE_MAX);
			return;
		}
		c->log_seen++;
		entries_invalidate(c, start, bytes);
	}
}

const char *rail_mr_hint(int rc)
{
	return rc == -ENOMEM || rc == -EAGAIN ? " (locked memory? see ulimit -l)" : "";
}

/* ---- The cache ---------------------------------------------------------- */

int rail_mr_cache_init(struct rail_mr_cache *c)
{
	c->page = (size_t)sysconf(_SC_PAGESIZE);
	c->log_seen = atomic_load(&log_head);
	return entries_reserve(c);
}

void rail_mr_cache_fini(struct rail_mr_cache *c)
{
	while (c->count) {
		c->sorted[c->count - 1]->refs = 0;
		entry_drop(c, c->count - 1);
	}
	free(c->sorted);
	c->sorted = NULL;
	c->capacity = 0;
}

/*
 * Widen the range to whole pages and to the unpinned entries that overlap them.
 * False when a pinned entry does: then the range is registered alone, outside the table.
 */
static bool range_widen(struct rail_mr_cache *c, uintptr_t *start, uintptr_t *end)
{
	size_t i;

	*start &= ~(c->page - 1);
	*end = (*end + c->page - 1) & ~(c->page - 1);
	for (i = entry_search(c, *start); i < c->count && c->sorted[i]->start < *end; i++)
		if (c->sorted[i]->pinned)
			return false;
	i = entry_search(c, *start);
	while (i < c->count && c->sorted[i]->start < *end) {
		const struct rail_mr *mr = c->sorted[i];

		if (mr->start < *start)
			*start = mr->start;
		if (mr->start + mr->bytes > *end)
			*end = mr->start + mr->bytes;
		entry_drop(c, i);
	}
	return true;
}

static int make_room_and_retry(struct rail_mr_cache *c, uintptr_t start, size_t bytes,
			       struct rail_mr **out)
{
	int rc;

	do
		rc = entry_make(c, start, bytes, out);
	while ((rc == -ENOMEM || rc == -EAGAIN || rc == -ENOSPC) && evict_one(c));
	return rc;
}

static int entry_add(struct rail_mr_cache *c, uintptr_t addr, size_t bytes, struct rail_mr **out)
{
	uintptr_t start = addr, end = addr + bytes;
	struct rail_mr *mr;
	bool cached;
	int rc;

	c->misses++;
	rc = entries_reserve(c);
	if (rc)
		return rc;
	cached = !c->each && range_widen(c, &start, &end);
	if (!cached) {
		start = addr;
		end = addr + bytes;
	}
	rc = make_room_and_retry(c, start, end - start, &mr);
	/* The neighbours may have gone, or forbid a registration of the ends of these pages. */
	if (rc && (start != addr || end != addr + bytes))
		rc = make_room_and_retry(c, addr, bytes, &mr);
	if (rc)
		return rc;
	mr->detached = !cached;
	if (cached)
		entry_insert(c, mr);
	else
		c->loose++;
	mr->refs = 1;
	mr->used = ++c->clock;
	while (c->count > c->max_entries || c->bytes > c->max_bytes)
		if (!evict_one(c))
			break;
	*out = mr;
	return 0;
}

/* Lost pages are no longer reported: register memory for each operation from now on. */
static void stop_keeping(struct rail_mr_cache *c)
{
	if (c->each)
		return;
	c->each = true;
	entries_invalidate(c, 0, SIZE_MAX);
	rg_warn("memory cannot be watched any more, since another library has changed the C "
		"library's functions: buffers are registered for each message from now on");
}

/* Have the pages perhaps gone, without a report, or with one that pinned memory outlives? */
static bool is_doubtful(const struct rail_mr *mr)
{
	return mr->stale || (mr->in_library && mr->unloads != rg_memwatch_unloads());
}

/* Register the same range, with its pages of now.  False: an operation uses the old ones. */
static bool entry_renew(struct rail_mr_cache *c, struct rail_mr *mr)
{
	if (mr->refs)
		return false;
	c->detach(c->user, mr);
	mr->stale = c->attach(c->user, mr) != 0;
	return !mr->stale;
}

/* The entry that covers the range, with unchanged pages; NULL: none. */
static struct rail_mr *entry_lookup(struct rail_mr_cache *c, uintptr_t start, size_t bytes)
{
	size_t i = entry_search(c, start);
	struct rail_mr *mr = i < c->count ? c->sorted[i] : NULL;

	if (!mr || !entry_covers(mr, start, bytes))
		return NULL;
	if (!is_doubtful(mr))
		return mr;
	if (mr->pinned)
		return entry_renew(c, mr) ? mr : NULL;
	entry_drop(c, i);
	c->invalidations++;
	return NULL;
}

int rail_mr_get(struct rail_mr_cache *c, const void *addr, size_t bytes, struct rail_mr **out)
{
	uintptr_t start = (uintptr_t)addr;
	struct rail_mr *mr;
	int rc;

	if (c->watched && !rg_memwatch_check())
		stop_keeping(c);
	if (c->log_seen != atomic_load_explicit(&log_head, memory_order_acquire))
		catch_up(c);
	mr = c->last;
	if (!mr || !entry_covers(mr, start, bytes) || is_doubtful(mr)) {
		mr = entry_lookup(c, start, bytes);
		if (!mr) {
			rc = entry_add(c, start, bytes, out);
			/* -EFAULT: read-only memory, which the caller can copy. */
			if (rc && rc != -EFAULT)
				rg_error("cannot register %zu bytes of memory for the rails: %s%s",
					 bytes, strerror(-rc), rail_mr_hint(rc));
			return rc;
		}
		c->last = mr;
	}
	c->hits++;
	mr->refs++;
	mr->used = ++c->clock;
	*out = mr;
	return 0;
}

void rail_mr_put(struct rail_mr_cache *c, struct rail_mr *mr)
{
	mr->refs--;
	if (!mr->detached || mr->refs)
		return;
	c->loose--;
	entry_destroy(c, mr);
}

bool rail_mr_in_use(const struct rail_mr_cache *c, uintptr_t start, size_t bytes)
{
	for (size_t i = entry_search(c, start); i < c->count && c->sorted[i]->start < start + bytes; i++)
		if (c->sorted[i]->refs)
			return true;
	return c->loose;
}

int rail_mr_pin(struct rail_mr_cache *c, void *addr, size_t bytes)
{
	struct rail_mr *mr;
	int rc;

	entries_invalidate(c, (uintptr_t)addr, bytes);
	rc = entries_reserve(c);
	if (!rc)
		rc = make_room_and_retry(c, (uintptr_t)addr, bytes, &mr);
	if (rc)
		return rc;
	mr->pinned = true;
	entry_insert(c, mr);
	c->bytes -= mr->bytes;		/* pinned memory does not count against max_bytes */
	return 0;
}

static size_t find_pinned(const struct rail_mr_cache *c, const void *addr)
{
	size_t i = entry_search(c, (uintptr_t)addr);

	if (i < c->count && c->sorted[i]->pinned && entry_covers(c->sorted[i], (uintptr_t)addr, 1))
		return i;
	return c->count;
}

int rail_mr_unpin(struct rail_mr_cache *c, void *addr, size_t *bytes)
{
	size_t i = find_pinned(c, addr);

	if (i == c->count || c->sorted[i]->start != (uintptr_t)addr)
		return -ENOENT;
	if (c->sorted[i]->refs)
		return -EBUSY;
	*bytes = c->sorted[i]->bytes;
	c->bytes += *bytes;
	entry_drop(c, i);
	return 0;
}

bool rail_mr_is_pinned(const struct rail_mr_cache *c, const void *addr)
{
	return find_pinned(c, addr) < c->count;
}
