/* remap_int.h - what remap.c, restore.c and pinned.c share. */
#ifndef HCA_REMAP_INT_H
#define HCA_REMAP_INT_H

#include "base/maps.h"
#include "base/ranges.h"
#include "pages/remap.h"

/* Under hca_remap_lock; hca_ranges_touch needs none. */
struct hca_remap_state {
	/*
	 * What was moved at some time and has not been unmapped since.  What it is now,
	 * /proc/self/maps tells: some went unseen perhaps, some was moved back.
	 */
	struct hca_ranges ranges;
	struct hca_moved *list;
	unsigned forking;		/* threads that are between the two ends of fork */
	struct hca_maps maps;		/* large for the stack of a signal handler */
};
extern struct hca_remap_state hca_remap_state;

/* In a child of fork, where another thread may have held it. */
void hca_remap_reset_lock(void);

/* Shared, on our segment, at its own address: moved, or the arena's. */
bool hca_is_moved(const struct hca_map *map);
/*
 * A private mapping of the segment, of this process or of one it is a child of: what
 * fork has left of memory that was moved.  All its pages are copies.
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

/* Private copies of all pages of a view, in place; they can be written to.  False: not of all. */
bool hca_remap_copy_pages(uint64_t start, uint64_t end);

#endif
