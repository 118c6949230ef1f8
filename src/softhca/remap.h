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
 * of that, or nothing (equal).
 *
 * Nobody may write to those pages meanwhile: the write could be lost.
 */
void hca_remap(void *addr, size_t bytes, bool edges, uint64_t *start, uint64_t *end);

/*
 * In a child of fork, before anything else: what was moved must not be shared
 * with the parent.  The child gets a private view, not a snapshot: pages that
 * it has not written to show what the parent does to them.
 */
void hca_remap_make_private(void);

#endif
