/*
 * size_memory.h - buffers of many GiB.
 *
 * A buffer is 4 MiB, mapped as often as it takes: its bytes are all the same.  Only windows have pages of
 * their own: around each limit, and at both ends.  There every byte says whose it is, and gaps stay
 * as they were.  So a message of 8 GiB takes no more memory than one of 100 MiB.
 */
#ifndef SIZE_MEMORY_H
#define SIZE_MEMORY_H

#include "suite.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Memory in blocks of `block` bytes, with gaps after them; block 0: in one piece. */
struct shape {
	size_t block, gap;
};

extern const struct shape plain, gapped;

enum { WINDOWS = 16 };

struct memory {
	unsigned char *at;
	size_t mapped;
	size_t bytes;			/* bytes of the message */
	size_t room;			/* for so many of them, or of a longer one */
	struct shape shape;
	int windows;
	struct { size_t begin, end; } window[WINDOWS];	/* whole pages, in order, apart */
};

/* For a message of so many bytes; room for as many, or for less or more. */
struct memory memory_make(struct shape shape, size_t bytes, size_t room);
void memory_free(struct memory *m);
/* The buffer that a rank sends, and a buffer before any receive. */
void memory_fill(struct memory *m, unsigned message);
void memory_blank(struct memory *m);
/*
 * The message has come, and nothing else is written.  If there was less room than it needs, what has
 * come of it is not said.
 */
void memory_verify(const struct memory *m, int source, unsigned message);
/* Byte m of such a message of that rank. */
unsigned char memory_content(size_t bytes, size_t m, int source, unsigned message);
/*
 * From here on the process gets no more than 128 MiB of memory, so that no message is copied whole.
 * Not natively: how the libraries do it is their business.
 */
void memory_limit(bool on);

#endif
