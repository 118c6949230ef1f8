/*
 * memory.h - this process's memory segment, which every peer can map.
 *
 * The segment is a sparse memfd, file offset = virtual address.  If the segment has to be a file
 * and the file system has no files of that size, the segment is smaller, the arena lies within it,
 * and other memory is not moved.  The arena is on it from the start; other memory can be moved
 * onto it in place (remap.h).  Peers map windows of it, so that moving data is one copy.
 *
 * A child of fork starts without a segment.  The arena that it inherited stays shared with its
 * parent; moved memory is private to each (remap.h).
 */
#ifndef HCA_MEMORY_H
#define HCA_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The segment's descriptor, made on first use; or -errno with the line set. */
int hca_memory_fd(void);

/* In a child of fork, before its first use of this header; may be repeated. */
void hca_memory_after_fork(void);

/* Is the whole range in one allocation of the arena? */
bool hca_memory_in_arena(const void *addr, size_t bytes);

uint64_t hca_page_bytes(void);

/*
 * The state of a process, whose address space it mirrors.  For memory.c, remap.c and
 * restore.c.  The lock protects the descriptor and the arena; moved memory has its own
 * (hca_remap_lock), which may be taken inside of it and not the other way round.
 */
struct hca_memory {
	pthread_mutex_t lock;
	int fd;
	uint64_t bytes;			/* the segment's: addresses that it can hold */
	uint64_t inode;
	_Atomic uintptr_t start, end;	/* addresses reserved for the arena */
};
extern struct hca_memory hca_memory;

#endif
