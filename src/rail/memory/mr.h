/*
 * mr.h - the registration cache: whole buffers, registered on first use on all
 * adapters, kept until room is needed or the memory goes away.
 *
 * A hit allocates nothing and takes no lock: one comparison with the last entry, else a
 * binary search.  A miss registers whole pages, joined with the entries that overlap them.
 * So entries in the cache are disjoint.
 *
 * Stale entries: memory that is unmapped and mapped again has other pages under the same
 * address.  rail_mr_invalidate (rail.h; a listener of memwatch.h, called by any thread
 * before the memory goes) writes the range into a log of the process.  Every cache reads
 * the new part of the log before each lookup.  Static data of a library goes without a
 * report; its entries compare the count of unloaded libraries at each use.  Where memory
 * cannot be watched, registrations live for one operation: `each`.
 *
 * One thread owns a cache; the log belongs to all threads.
 */
#ifndef RAIL_MR_H
#define RAIL_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/rail.h"

struct ibv_mr;

struct rail_mr {
	uintptr_t start;
	size_t bytes;
	struct ibv_mr *on[RAIL_ALL];	/* index: adapter */
	uint32_t refs;			/* operations that use it */
	bool pinned;			/* rail_mr_pin: never evicted or joined */
	bool stale;			/* pinned: the pages have gone, others came */
	bool detached;			/* no longer found; goes with the last reference */
	bool in_library;		/* watched: memory of a shared object ... */
	uint64_t unloads;		/* ... and the libraries unloaded before */
	uint64_t used;			/* time of last use, counted in lookups */
};

struct rail_mr_cache {
	/* Fill on[] for start, bytes: 0, or -errno with on[] empty.  detach: undo it. */
	int (*attach)(void *user, struct rail_mr *mr);
	void (*detach)(void *user, struct rail_mr *mr);
	void *user;
	size_t max_entries, max_bytes;	/* for entries neither pinned nor in use */
	bool watched;			/* registrations name pages; memwatch.h reports their end */
	bool each;			/* keep only pinned entries */
	/* The rest is private. */
	struct rail_mr *last;
	uint64_t clock, log_seen;
	struct rail_mr **sorted;
	size_t count, capacity, bytes;
	size_t loose;			/* detached entries in use */
	size_t page;
	uint64_t hits, misses, evictions, invalidations;
};

/* librailmpi gives these four functions to src/vbench, too. */
#pragma GCC visibility push(default)

/* Set the first block of fields before. */
int rail_mr_cache_init(struct rail_mr_cache *cache);
void rail_mr_cache_fini(struct rail_mr_cache *cache);

/* The registration that covers the range, with one reference.  One line on failure. */
int rail_mr_get(struct rail_mr_cache *cache, const void *addr, size_t bytes,
		struct rail_mr **out);
void rail_mr_put(struct rail_mr_cache *cache, struct rail_mr *mr);

#pragma GCC visibility pop

/* May an operation that is under way use any of these bytes? */
bool rail_mr_in_use(const struct rail_mr_cache *cache, uintptr_t start, size_t bytes);

/* Advice after the reason of a failed registration: often the limit of locked memory. */
const char *rail_mr_hint(int rc);

/* Register memory until rail_mr_unpin with the same address. */
int rail_mr_pin(struct rail_mr_cache *cache, void *addr, size_t bytes);
/* 0; -ENOENT: nothing is pinned at addr; -EBUSY: an operation uses it.  *bytes: its size. */
int rail_mr_unpin(struct rail_mr_cache *cache, void *addr, size_t *bytes);
bool rail_mr_is_pinned(const struct rail_mr_cache *cache, const void *addr);

#endif
