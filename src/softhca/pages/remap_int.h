/* remap_int.h - declarations that remap.c, restore.c and pinned.c share. */
#ifndef HCA_REMAP_INT_H
#define HCA_REMAP_INT_H

#include "softhca/base/maps.h"
#include "softhca/base/ranges.h"
#include "softhca/pages/remap.h"

/* Under hca_remap_lock; hca_ranges_touch needs none. */
struct hca_remap_state {
	/*
	 * Memory that was moved at some time and has not been unmapped since.  /proc/self/maps
	 * has its present state: a part may have been unmapped unseen, or moved back.
	 */
	struct hca_ranges ranges;
	struct hca_moved *list;
	unsigned forking;		/* from hca_remap_before_fork to hca_remap_after_fork */
	unsigned making_private;	/* forks that make it private: new registrations are moving */
	struct hca_maps maps;		/* too large for the stack of a signal handler */
};
extern struct hca_remap_state hca_remap_state;

/* In a child of fork: another thread of the parent may have held the lock. */
void hca_remap_reset_lock(void);

/* Is it shared, on this process's segment, at its own address: moved, or the arena's? */
bool hca_is_moved(const struct hca_map *map);
/*
 * A view: a private mapping of the segment of this process or of an ancestor, into which
 * fork has turned moved memory.  All its pages are copies.
 */
bool hca_is_view(const struct hca_map *map);

/* A walk over the mappings of a range; one at a time. */
static inline bool hca_remap_walk(uint64_t start, uint64_t end)
{
	return !hca_maps_open(start, end - start, &hca_remap_state.maps);
}

/* The part of the next mapping that is in [start, end). */
static inline bool hca_remap_next(uint64_t start, uint64_t end, struct hca_map *map)
{
	if (!hca_maps_next(&hca_remap_state.maps, map))
		return false;
	if (map->start < start) {
		map->offset += start - map->start;
		map->start = start;
	}
	if (map->end > end)
		map->end = end;
	return true;
}

static inline void hca_remap_walked(void)
{
	hca_maps_close(&hca_remap_state.maps);
}

/* Make private, writable copies of all pages of a view, in place.  False: some are left. */
bool hca_remap_copy_pages(uint64_t start, uint64_t end);

#endif
