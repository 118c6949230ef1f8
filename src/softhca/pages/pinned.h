/*
 * pinned.h - pinned memory: a real device goes on using the pages that it found at
 * registration, so these stay where they are.  A range is pinned from before it is
 * registered until after it is deregistered; `owner` identifies it.  NULL: no memory.
 */
#ifndef HCA_PINNED_H
#define HCA_PINNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_pinned;
struct hca_pinned *hca_pin(const void *addr, size_t bytes);
void hca_pin_set_owner(struct hca_pinned *p, const void *owner);
void hca_unpin(struct hca_pinned *p);
/* The pinned range of an owner; NULL: none. */
struct hca_pinned *hca_pin_of(const void *owner);
/* The pinned range of an owner that is exactly this range; NULL: none. */
struct hca_pinned *hca_pin_like(const void *owner, const void *addr, size_t bytes);
/* The caller holds hca_remap_lock. */
bool hca_is_pinned(uint64_t start, uint64_t end);

#endif
