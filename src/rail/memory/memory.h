/*
 * memory.h - memory that the adapters reach best: the software HCA's arena, else
 * anonymous pages.
 */
#ifndef RAIL_MEMORY_H
#define RAIL_MEMORY_H

#include <stddef.h>

struct rail_ctx;

/* NULL: no memory. */
void *rail_memory_map(struct rail_ctx *ctx, size_t bytes);
void rail_memory_unmap(struct rail_ctx *ctx, void *addr, size_t bytes);

/* Start the context's registration cache, on its adapters.  0 or -errno. */
int rail_memory_open(struct rail_ctx *ctx);

#endif
