/* pool.h - blocks for messages that came too early: a free list per power of two. */
#ifndef RAILMPI_POOL_H
#define RAILMPI_POOL_H

#include <stddef.h>

/* NULL: out of memory.  Allocates only while a size class grows; never gives back until stop. */
void *pool_get(size_t bytes);
void pool_put(void *block);
void pool_stop(void);

#endif
