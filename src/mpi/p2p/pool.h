/* pool.h - reused blocks of memory: a free list per power of two. */
#ifndef RAILMPI_POOL_H
#define RAILMPI_POOL_H

#include <stddef.h>

enum { POOL_CLASSES = 40 };

union pool_head;

/* Initialise `get` and `put`, and `largest` if it matters, the rest to zero. */
struct pool {
	void *(*get)(size_t bytes);	/* aligned to cache lines; NULL: out of memory */
	void (*put)(void *memory);
	size_t largest;			/* longer blocks are not kept; 0: all are */
	union pool_head *free[POOL_CLASSES];
};

/*
 * NULL: out of memory.  Allocates while a size class grows, frees in pool_stop; longer memory than
 * the largest class is allocated and freed each time.
 */
void *pool_get(struct pool *pool, size_t bytes);
void pool_put(struct pool *pool, void *block);
void pool_stop(struct pool *pool);

/* Memory from the C library, as a pool's `get`. */
void *pool_heap_get(size_t bytes);

#endif
