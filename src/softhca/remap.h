/* remap.h - moving memory onto the segment, in place. */
#ifndef HCA_REMAP_H
#define HCA_REMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Move memory of this process onto the segment: the whole pages of the range,
 * or with `edges` also the pages that it shares with its neighbours.  Private
 * anonymous memory only.  On return [*start, *end) is what peers can map: all
 * of that, or nothing (equal).  Nothing also when a real device has pages of it.
 *
 * Nobody may write to those pages meanwhile: the write could be lost.
 */
void hca_remap(void *addr, size_t bytes, bool edges, uint64_t *start, uint64_t *end);

/* Is all of it on the segment, readable and writable?  Cheaper than the above. */
bool hca_remap_is_done(const void *addr, size_t bytes);

/*
 * Memory whose pages others hold on to: a real device goes on with the pages
 * that it found when they were registered there, so these stay where they are.
 * A range from before it is registered until after it is deregistered; `owner`
 * names it.  NULL: no memory.
 */
struct hca_pinned;
struct hca_pinned *hca_pin(const void *addr, size_t bytes);
void hca_pin_set_owner(struct hca_pinned *p, const void *owner);
void hca_unpin(struct hca_pinned *p);
/* What its owner is the only one to know: NULL, nothing. */
struct hca_pinned *hca_pin_of(const void *owner);

/*
 * In a child of fork, before anything else: what was moved must not be shared
 * with the parent.  The child gets a private view, not a snapshot: pages that
 * it has not written to show what the parent does to them.
 */
void hca_remap_make_private(void);

#endif
