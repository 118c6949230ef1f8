/*
 * memory.h - this process's memory segment: what every peer can map.
 *
 * One sparse memfd per process, file offset = virtual address.  The arena
 * lives on it from the start; other memory can be moved onto it in place
 * (remap.h).  Peers map windows of it, so that moving data is one copy.
 *
 * A child of fork starts without one; what it inherited stays a shared mapping
 * of the parent's, unknown to the child's library.
 */
#ifndef HCA_MEMORY_H
#define HCA_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its descriptor, made on first use; or -errno with the line set. */
int hca_memory_fd(void);

/* Does the whole range lie in one allocation of the arena? */
bool hca_memory_in_arena(const void *addr, size_t bytes);

#endif
