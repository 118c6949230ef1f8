/* pool.c - see pool.h. */
#include "pool.h"

#include <stdint.h>
#include <stdlib.h>

enum { CLASS_MIN_LOG2 = 7, CLASSES = 40 };

/* In front of every block, one cache line, so that blocks stay aligned to lines. */
union head {
	struct {
		union head *next;
		unsigned class;
	};
	_Alignas(64) char line[64];
};

static union head *free_blocks[CLASSES];

static unsigned class_of(size_t bytes)
{
	unsigned log2 = bytes <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1);

	return log2 <= CLASS_MIN_LOG2 ? 0 : log2 - CLASS_MIN_LOG2;
}

void *pool_get(size_t bytes)
{
	unsigned class = class_of(bytes);
	union head *h = free_blocks[class];

	if (h) {
		free_blocks[class] = h->next;
		return h + 1;
	}
	h = aligned_alloc(64, sizeof(*h) + ((size_t)1 << (class + CLASS_MIN_LOG2)));
	if (!h)
		return NULL;
	h->class = class;
	return h + 1;
}

void pool_put(void *block)
{
	union head *h = (union head *)block - 1;

	h->next = free_blocks[h->class];
	free_blocks[h->class] = h;
}

void pool_stop(void)
{
	union head *h;
	unsigned c;

	for (c = 0; c < CLASSES; c++)
		while ((h = free_blocks[c])) {
			free_blocks[c] = h->next;
			free(h);
		}
}
