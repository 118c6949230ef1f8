/* heap.c - allocation of pieces of this process's segment. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/heap.h"
#include "softhca/base/layout.h"
#include "softhca/base/segment.h"

static unsigned heap_class(size_t bytes)
{
	uint64_t lines = (bytes + HCA_LINE - 1) / HCA_LINE;
	unsigned class = 0;

	while ((1ull << class) < lines)
		class++;
	return class;
}

void hca_heap_init(struct hca_heap *h, void *base, uint64_t bytes, int fd, uint64_t offset)
{
	memset(h, 0, sizeof(*h));
	h->base = base;
	h->fd = fd;
	h->offset = offset;
	h->lines = bytes / HCA_LINE;
	h->top = 1;			/* line 0 is never allocated: offset 0 means none */
}

void hca_heap_destroy(struct hca_heap *h)
{
	unsigned i;

	for (i = 0; i < HCA_HEAP_CLASSES; i++)
		free(h->free[i].line);
	memset(h, 0, sizeof(*h));
}

static int heap_reserve(const struct hca_heap *h, uint64_t line, uint64_t lines)
{
	return hca_segment_reserve(h->fd, h->offset + line * HCA_LINE, lines * HCA_LINE)
		? -ENOMEM : 0;
}

int hca_heap_alloc(struct hca_heap *h, size_t bytes, uint32_t *line)
{
	unsigned class = heap_class(bytes);
	uint64_t lines, at;

	if (class >= HCA_HEAP_CLASSES)
		return -ENOMEM;
	lines = 1ull << class;
	if (h->free[class].count) {
		*line = h->free[class].line[h->free[class].count - 1];
		if (heap_reserve(h, *line, lines))
			return -ENOMEM;
		h->free[class].count--;
		memset(h->base + (uint64_t)*line * HCA_LINE, 0, lines * HCA_LINE);
		return 0;
	}
	/* A piece of a page or more begins on one. */
	at = hca_align_up(h->top, lines < HCA_PAGE / HCA_LINE ? lines : HCA_PAGE / HCA_LINE);
	if (at > h->lines || lines > h->lines - at || heap_reserve(h, at, lines))
		return -ENOMEM;
	h->top = at + lines;
	*line = (uint32_t)at;
	return 0;
}

void hca_heap_free(struct hca_heap *h, uint32_t line, size_t bytes)
{
	unsigned class = heap_class(bytes);
	size_t size = (size_t)HCA_LINE << class;

	if (h->free[class].count == h->free[class].room) {
		size_t room = h->free[class].room ? 2 * h->free[class].room : 16;
		uint32_t *grown = realloc(h->free[class].line, room * sizeof(*grown));

		if (!grown)
			return;		/* lost: the segment is large and sparse */
		h->free[class].line = grown;
		h->free[class].room = room;
	}
	/*
	 * The pages go back to the system.  It rounds the length up to whole pages: a piece of less
	 * than one, where pages are large, has neighbours there.
	 */
	if (size >= HCA_PAGE && size >= (size_t)sysconf(_SC_PAGESIZE))
		madvise(h->base + (uint64_t)line * HCA_LINE, size, MADV_REMOVE);
	h->free[class].line[h->free[class].count++] = line;
}
