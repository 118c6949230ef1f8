/*
 * ranges.h - a set of address ranges that a signal handler or malloc can query at any time.
 *
 * Changes and all other queries happen under a lock of the caller's; hca_ranges_touch
 * takes none.  Nothing is allocated.
 */
#ifndef HCA_RANGES_H
#define HCA_RANGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than a process can map, unless vm.max_map_count was raised; touched as used. */
enum { HCA_RANGES_MAX = 1 << 18 };

struct hca_range {
	_Atomic uint64_t start, end;
};

struct hca_ranges {
	_Atomic uint32_t turn;		/* odd: it is being changed */
	_Atomic uint32_t count;
	struct hca_range range[HCA_RANGES_MAX];	/* ascending, apart from each other */
};

/* Does the set touch [start, end)?  Without the lock, true may be out of date. */
bool hca_ranges_touch(const struct hca_ranges *r, uint64_t start, uint64_t end);

/* False: there is no room. */
bool hca_ranges_add(struct hca_ranges *r, uint64_t start, uint64_t end);
/* Without room to split one range into two, a part of it stays. */
void hca_ranges_remove(struct hca_ranges *r, uint64_t start, uint64_t end);
/* Empty it in a child of fork, even if a change was in progress. */
void hca_ranges_reset(struct hca_ranges *r);

/* The first part of the set in [*start, end); false: none. */
bool hca_ranges_next(const struct hca_ranges *r, uint64_t *start, uint64_t end, uint64_t *stop);

#endif
