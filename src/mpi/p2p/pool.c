/* pool.c - see pool.h. */
#include "mpi/p2p/pool.h"

#include <stdint.h>
#include <stdlib.h>

enum { CLASS_MIN_LOG2 = 7, CLASS_NONE = POOL_CLASSES, LINE = 64 };

/* In front of every block, one cache line, so that blocks stay aligned to lines. */
union pool_head {
	struct {
		union pool_head *next;
		unsigned class;
	};
	_Alignas(LINE) char line[LINE];
};

static unsigned pool_class(size_t bytes)
{
	unsigned log2 = bytes <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1);

	return log2 <= CLASS_MIN_LOG2 ? 0 : log2 - CLASS_MIN_LOG2;
}

static void *get_new(struct pool *pool, size_t bytes, unsigned class)
{
	union pool_head *h = pool->get(sizeof(*h) + bytes);

	if (!h)
		return NULL;
	h->class = class;
	return h + 1;
}

void *pool_get(struct pool *pool, size_t bytes)
{
	unsigned class = pool_class(bytes);
	union pool_head *h;

	if (pool->largest && bytes > pool->largest)
		return get_new(pool, (bytes + LINE - 1) / LINE * LINE, CLASS_NONE);
	h = pool->free[class];
	if (!h)
		return get_new(pool, (size_t)1 << (class + CLASS_MIN_LOG2), class);
	pool->free[class] = h->next;
	return h + 1;
}

void pool_put(struct pool *pool, void *block)
{
	union pool_head *h = (union pool_head *)block - 1;

	if (h->class == CLASS_NONE) {
		pool->put(h);
		return;
	}
	h->next = pool->free[h->class];
	pool->free[h->class] = h;
}

void pool_stop(struct pool *pool)
{
	union pool_head *h;
	unsigned c;

	for (c = 0; c < POOL_CLASSES; c++)
		while ((h = pool->free[c])) {
			pool->free[c] = h->next;
			pool->put(h);
		}
}

void *pool_heap_get(size_t bytes)
{
	return aligned_alloc(64, bytes);
}
