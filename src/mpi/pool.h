/* pool.h - blocks that are used again: a free list per power of two. */
#ifndef RAILMPI_POOL_H
#define RAILMPI_POOL_H

#include <stddef.h>

enum { POOL_CLASSES = 40 };

union pool_head;

/* `get` and `put` are all that is set at first. */
struct pool {
	void *(*get)(size_t bytes);	/* aligned to cache lines; NULL: out of memory */
	void (*put)(void *memory);
	union pool_head *free[POOL_CLASSES];
};

/* NULL: out of memory.  Allocates only while a size class grows; never gives back until stop. */
void *pool_get(struct pool *pool, size_t bytes);
void pool_put(struct pool *pool, void *block);
void pool_stop(struct pool *pool);

/* Memory of the C library, for a pool. */
void *pool_heap_get(size_t bytes);

#endif
