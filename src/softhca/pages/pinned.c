/* pinned.c - memory that real devices have registered: see pinned.h. */
#include <stdlib.h>

#include "softhca/base/base.h"
#include "softhca/pages/memory.h"
#include "softhca/pages/pinned.h"
#include "softhca/pages/remap.h"

struct hca_pinned {
	struct hca_pinned *next, **at;
	uint64_t start, end;		/* whole pages */
	const void *owner;
};

static struct hca_pinned *pinned;	/* under hca_remap_lock */

struct hca_pinned *hca_pin(const void *addr, size_t bytes)
{
	struct hca_pinned *p = calloc(1, sizeof(*p));
	sigset_t before;

	if (!p)
		return NULL;
	p->start = hca_align_down((uintptr_t)addr, hca_page_bytes());
	p->end = hca_align_up((uintptr_t)addr + bytes, hca_page_bytes());
	hca_remap_lock(&before);
	p->next = pinned;
	p->at = &pinned;
	if (p->next)
		p->next->at = &p->next;
	pinned = p;
	hca_remap_unlock(&before);
	return p;
}

void hca_pin_set_owner(struct hca_pinned *p, const void *owner)
{
	sigset_t before;

	hca_remap_lock(&before);
	p->owner = owner;
	hca_remap_unlock(&before);
}

struct hca_pinned *hca_pin_of(const void *owner)
{
	struct hca_pinned *p;
	sigset_t before;

	hca_remap_lock(&before);
	for (p = pinned; p && p->owner != owner; p = p->next)
		;
	hca_remap_unlock(&before);
	return p;
}

struct hca_pinned *hca_pin_like(const void *owner, const void *addr, size_t bytes)
{
	const uint64_t page = hca_page_bytes(), start = hca_align_down((uintptr_t)addr, page);
	const uint64_t end = hca_align_up((uintptr_t)addr + bytes, page);
	struct hca_pinned *p;
	sigset_t before;

	hca_remap_lock(&before);
	for (p = pinned; p; p = p->next)
		if (p->owner == owner && p->start == start && p->end == end)
			break;
	hca_remap_unlock(&before);
	return p;
}

void hca_unpin(struct hca_pinned *p)
{
	sigset_t before;

	if (!p)
		return;
	hca_remap_lock(&before);
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	hca_remap_unlock(&before);
	free(p);
}

bool hca_is_pinned(uint64_t start, uint64_t end)
{
	const struct hca_pinned *p;

	for (p = pinned; p; p = p->next)
		if (p->start < end && start < p->end)
			return true;
	return false;
}
