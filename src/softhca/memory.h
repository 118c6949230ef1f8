/*
 * memory.h - this process's memory segment: what every peer can map.
 *
 * One sparse memfd per process, file offset = virtual address.  The arena
 * lives on it from the start; other memory can be moved onto it in place
 * (remap.h).  Peers map windows of it, so that moving data is one copy.
 *
 * A child of fork starts without one.  The arena that it inherited stays shared
 * with its parent; of memory that was moved it gets a private view.
 */
#ifndef HCA_MEMORY_H
#define HCA_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its descriptor, made on first use; or -errno with the line set. */
int hca_memory_fd(void);

/* In a child of fork, first of all; again does no harm. */
void hca_memory_after_fork(void);

/* Does the whole range lie in one allocation of the arena? */
bool hca_memory_in_arena(const void *addr, size_t bytes);

uint64_t hca_page_bytes(void);

/* One per process by nature: it mirrors the address space.  For memory.c and remap.c. */
struct hca_memory {
	pthread_mutex_t lock;
	int fd;
	uint64_t inode;
	_Atomic uintptr_t start, end;	/* addresses reserved for the arena */
};
extern struct hca_memory hca_memory;
int hca_memory_fd_locked(void);

#endif
