/* lookup.c - rows of a file by way and coordinate. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/lookup.h"

static size_t hash_of(const char *way, double x)
{
	uint64_t bits, h;

	x = x == 0 ? 0 : x;	/* -0 equals 0 */
	memcpy(&bits, &x, sizeof(bits));
	h = bits ^ (uint64_t)(uintptr_t)way * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return (size_t)(h ^ h >> 31);
}

/* The place of a key, or the free place where it belongs. */
static size_t *place_of(const struct lookup *l, const struct report_row *row, const char *way,
			double x)
{
	size_t at = hash_of(way, x) & l->mask;

	for (; l->place[at]; at = (at + 1) & l->mask) {
		const struct report_row *there = &row[l->place[at] - 1];

		if (there->x == x && there->way == way)
			break;
	}
	return &l->place[at];
}

int lookup_build(struct lookup *l, const struct report_row *row, size_t count)
{
	size_t size = 16;

	while (size < 2 * count)
		size *= 2;
	*l = (struct lookup){ .place = calloc(size, sizeof(l->place[0])), .mask = size - 1 };
	if (!l->place)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		size_t *place = place_of(l, row, row[i].way, row[i].x);

		if (!*place)
			*place = i + 1;
	}
	return 0;
}

const struct report_row *lookup_find(const struct lookup *l, const struct report_row *row,
				     const char *way, double x)
{
	size_t place = l->place ? *place_of(l, row, way, x) : 0;

	return place ? &row[place - 1] : NULL;
}

void lookup_free(struct lookup *l)
{
	free(l->place);
	l->place = NULL;
}
