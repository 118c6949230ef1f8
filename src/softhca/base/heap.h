/*
 * heap.h - allocation of pieces of this process's segment.
 *
 * Sizes are rounded to powers of two of lines; a freed piece is kept for the same
 * size.  Bookkeeping is private, so that a peer cannot disturb it.  The caller
 * holds the lock (fabric.slow).
 */
#ifndef HCA_HEAP_H
#define HCA_HEAP_H

#include <stddef.h>
#include <stdint.h>

enum { HCA_HEAP_CLASSES = 28 };		/* 1 line ... 2^27 lines */

struct hca_heap {
	unsigned char *base;
	int fd;				/* the segment; base is at `offset` in it */
	uint64_t offset;
	uint64_t lines, top;
	struct {
		uint32_t *line;
		size_t count, room;
	} free[HCA_HEAP_CLASSES];
};

void hca_heap_init(struct hca_heap *h, void *base, uint64_t bytes, int fd, uint64_t offset);
void hca_heap_destroy(struct hca_heap *h);

/* Zeroed.  0 and *line (offset in lines), or -ENOMEM. */
int hca_heap_alloc(struct hca_heap *h, size_t bytes, uint32_t *line);
void hca_heap_free(struct hca_heap *h, uint32_t line, size_t bytes);

#endif
