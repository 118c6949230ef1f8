/* ranges.c - see ranges.h. */
#include "softhca/base/ranges.h"

#include "softhca/base/base.h"

enum { TRIES = 100 };

static uint64_t start_of(const struct hca_ranges *r, uint32_t i)
{
	return atomic_load_explicit(&r->range[i].start, memory_order_acquire);
}

static uint64_t range_end(const struct hca_ranges *r, uint32_t i)
{
	return atomic_load_explicit(&r->range[i].end, memory_order_acquire);
}

static void range_put(struct hca_ranges *r, uint32_t i, uint64_t start, uint64_t end)
{
	atomic_store_explicit(&r->range[i].start, start, memory_order_release);
	atomic_store_explicit(&r->range[i].end, end, memory_order_release);
}

/* The first range that ends after addr. */
static uint32_t ranges_find(const struct hca_ranges *r, uint64_t addr, uint32_t count)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (range_end(r, middle) > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

bool hca_ranges_touch(const struct hca_ranges *r, uint64_t start, uint64_t end)
{
	int tries;

	if (!atomic_load_explicit(&r->count, memory_order_acquire))
		return false;
	for (tries = 0; tries < TRIES; tries++) {
		uint32_t turn = atomic_load_explicit(&r->turn, memory_order_acquire);
		uint32_t count = atomic_load_explicit(&r->count, memory_order_acquire);
		uint32_t i = ranges_find(r, start, count);
		bool touch = i < count && start_of(r, i) < end;

		if (!(turn & 1) && atomic_load_explicit(&r->turn, memory_order_relaxed) == turn)
			return touch;
		rg_relax(UINT64_MAX);
	}
	return true;			/* the caller checks again under the lock */
}

/* ---- Changing it, under the lock ----------------------------------------- */

/* A reader that finds a word that is put from here on finds the odd turn, too, when it looks again. */
static void ranges_begin(struct hca_ranges *r)
{
	atomic_fetch_add_explicit(&r->turn, 1, memory_order_relaxed);
}

static void done(struct hca_ranges *r, uint32_t count)
{
	atomic_store_explicit(&r->count, count, memory_order_release);
	atomic_fetch_add_explicit(&r->turn, 1, memory_order_release);
}

/* Move the entries from `from` on to `to`; the new count. */
static uint32_t shift(struct hca_ranges *r, uint32_t from, uint32_t to)
{
	uint32_t count = r->count, i;

	if (to < from)
		for (i = from; i < count; i++)
			range_put(r, i - from + to, start_of(r, i), range_end(r, i));
	else
		for (i = count; i-- > from;)
			range_put(r, i - from + to, start_of(r, i), range_end(r, i));
	return count - from + to;
}

bool hca_ranges_add(struct hca_ranges *r, uint64_t start, uint64_t end)
{
	uint32_t first, last;

	/* Ranges that it overlaps or touches become one with it. */
	first = ranges_find(r, start - 1, r->count);
	for (last = first; last < r->count && start_of(r, last) <= end; last++)
		;
	if (first == last && r->count == HCA_RANGES_MAX)
		return false;
	if (first < last) {
		start = start_of(r, first) < start ? start_of(r, first) : start;
		end = hca_later(end, range_end(r, last - 1));
	}
	ranges_begin(r);
	last = shift(r, last, first + 1);
	range_put(r, first, start, end);
	done(r, last);
	return true;
}

void hca_ranges_remove(struct hca_ranges *r, uint64_t start, uint64_t end)
{
	uint32_t first = ranges_find(r, start, r->count), last, keep;
	uint64_t before, after;

	for (last = first; last < r->count && start_of(r, last) < end; last++)
		;
	if (first == last)
		return;
	before = start_of(r, first);
	after = range_end(r, last - 1);
	keep = first + (before < start) + (after > end);
	if (keep > last && r->count == HCA_RANGES_MAX)
		return;
	ranges_begin(r);
	last = shift(r, last, keep);
	if (before < start)
		range_put(r, first, before, start);
	if (after > end)
		range_put(r, keep - 1, end, after);
	done(r, last);
}

void hca_ranges_reset(struct hca_ranges *r)
{
	atomic_store(&r->count, 0);
	atomic_store(&r->turn, 0);
}

bool hca_ranges_next(const struct hca_ranges *r, uint64_t *start, uint64_t end, uint64_t *stop)
{
	uint32_t count = r->count, i = ranges_find(r, *start, count);

	if (*start >= end || i == count || start_of(r, i) >= end)
		return false;
	*start = hca_later(*start, start_of(r, i));
	*stop = range_end(r, i) < end ? range_end(r, i) : end;
	return true;
}
