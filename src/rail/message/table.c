/* table.c - handles. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/message/table.h"

enum { TABLE_FIRST = 256, TABLE_MAX = 1 << 30 };

static const uint32_t none = UINT32_MAX;

static int table_grow(struct rail_table *t)
{
	uint32_t count = t->count ? 2 * t->count : TABLE_FIRST;
	struct rail_entry *entry;

	if (count > TABLE_MAX)
		return -ENOMEM;
	entry = realloc(t->entry, count * sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	memset(entry + t->count, 0, (count - t->count) * sizeof(*entry));
	for (uint32_t i = t->count; i < count; i++) {
		entry[i].generation = 1;
		entry[i].next_free = i + 1 < count ? i + 1 : t->first_free;
	}
	t->first_free = t->count;
	t->entry = entry;
	t->count = count;
	return 0;
}

int rail_table_init(struct rail_table *t)
{
	t->entry = NULL;
	t->count = 0;
	t->first_free = none;
	return table_grow(t);
}

void rail_table_fini(struct rail_table *t)
{
	free(t->entry);
	t->entry = NULL;
	t->count = 0;
}

static uint64_t handle_of(const struct rail_table *t, uint32_t i)
{
	return (uint64_t)t->entry[i].generation << 32 | i;
}

int rail_table_add(struct rail_table *t, struct rail_peer *peer, uint64_t *handle)
{
	struct rail_entry *e;

	if (t->first_free == none && table_grow(t))
		return -ENOMEM;
	e = &t->entry[t->first_free];
	*handle = handle_of(t, t->first_free);
	t->first_free = e->next_free;
	e->peer = peer;
	e->op = NULL;
	return 0;
}

struct rail_entry *rail_table_find(struct rail_table *t, const struct rail_peer *peer,
				   uint64_t handle)
{
	uint32_t i = (uint32_t)handle;
	struct rail_entry *e = i < t->count ? &t->entry[i] : NULL;

	return e && e->peer == peer && e->generation == handle >> 32 ? e : NULL;
}

uint64_t rail_table_find_rts(const struct rail_table *t, const struct rail_peer *peer,
			     uint64_t theirs)
{
	for (uint32_t i = 0; i < t->count; i++) {
		const struct rail_entry *e = &t->entry[i];

		if (e->peer == peer && !e->op && e->rts.handle == theirs)
			return handle_of(t, i);
	}
	return 0;
}

void rail_table_remove(struct rail_table *t, uint64_t handle)
{
	uint32_t i = (uint32_t)handle;
	struct rail_entry *e = &t->entry[i];

	e->peer = NULL;
	if (++e->generation == 0)
		e->generation = 1;
	e->next_free = t->first_free;
	t->first_free = i;
}
