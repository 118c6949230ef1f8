/*
 * memory.h - memory and its life: changes by programs that a registration cache must survive.
 *
 * A *life* is one buffer from its beginning to its end.  Its *kind* says how it begins, how it
 * changes between messages (is unmapped and mapped again, grown, moved, emptied...), and how it
 * ends.  Each buffer has a *shadow*: every byte that the program may expect to read in the buffer.
 * Code that changes a buffer changes the shadow by other means (message.c by the pattern of
 * the message, a kind by the documented effect of its call), so that one comparison finds a
 * message that is wrong, a byte outside of the message that was written, and a promise of the
 * operating system that no longer holds.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../page.h"
#include "../random.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kind;

struct life {
	const struct kind *kind;
	unsigned char *mem;	/* the buffer now */
	size_t bytes;		/* the present length */
	unsigned char *shadow;	/* the expected contents; room for limit bytes */
	size_t limit;		/* bytes is never more; whole pages */
	uint64_t random;	/* the state of life_draw */
	/* The kind's own. */
	unsigned char *home;
	void *own;
	int fd;
	unsigned turn;
};

enum {
	KIND_SEND_ONLY = 1,	/* nothing can be received into it */
	KIND_ALONE = 2,		/* a process has one life at a time */
	KIND_SHOWN = 4,		/* a documented limit: counted, never an error */
};

/*
 * begin and change return NULL, or one line that says what failed.  For begin that is a reason to
 * skip the kind; begin leaves a buffer of limit bytes.  change leaves one of need bytes or more;
 * after a failure of it only end is called.
 */
struct kind {
	const char *name;
	const char *(*begin)(struct life *l);
	const char *(*change)(struct life *l, size_t need);
	void (*end)(struct life *l);
	/* Bring the shadow's bytes to the memory, where that takes more than memcpy. */
	void (*store)(struct life *l, size_t at, size_t bytes);
	unsigned flags;
};

/* Tables end with a kind without a name. */
extern const struct kind map_kinds[], heap_kinds[], shared_kinds[], thread_kinds[], fork_kinds[];

/* The program has several threads that do this at once. */
extern bool life_threaded;

/* Before MPI_Init: get memory from malloc. */
void heap_early(size_t bytes);

/* A random number below n. */
static inline size_t life_draw(struct life *l, size_t n)
{
	return (size_t)random_below(&l->random, n);
}

static inline size_t life_round(size_t bytes, size_t page)
{
	return (bytes + page - 1) / page * page;
}

/* Pages of the buffer: all, or some. */
static inline void life_pages(struct life *l, size_t page, size_t *at, size_t *bytes)
{
	size_t pages = l->bytes / page;
	bool all = pages < 2 || life_draw(l, 2);
	size_t first = all ? 0 : life_draw(l, pages - 1);

	*at = first * page;
	*bytes = (all ? pages : 1 + life_draw(l, pages - first)) * page;
}

/* The buffer is here now, and holds zeros; or its old contents, and zeros after them. */
static inline void life_is_zero(struct life *l, void *mem, size_t bytes)
{
	l->mem = (unsigned char *)mem;
	l->bytes = bytes;
	memset(l->shadow, 0, bytes);
}

static inline void life_is_kept(struct life *l, void *mem, size_t bytes)
{
	if (bytes > l->bytes)
		memset(l->shadow + l->bytes, 0, bytes - l->bytes);
	l->mem = (unsigned char *)mem;
	l->bytes = bytes;
}

/* ... or unknown contents from `kept` on: the shadow takes them as they are. */
static inline void life_is_unknown(struct life *l, void *mem, size_t kept, size_t bytes)
{
	l->mem = (unsigned char *)mem;
	l->bytes = bytes;
	if (bytes > kept)
		memcpy(l->shadow + kept, l->mem + kept, bytes - kept);
}

/* Bytes that no other seed gives. */
static inline void life_pattern(unsigned char *to, size_t bytes, uint64_t seed)
{
	uint64_t word, state = seed * 0xd6e8feb86659fd93u;

	while (bytes) {
		size_t n = bytes < sizeof(word) ? bytes : sizeof(word);

		word = random_next(&state);
		memcpy(to, &word, n);
		to += n;
		bytes -= n;
	}
}

/* The last error of a call, as one line. */
const char *life_failed(const char *call);

/*
 * A frame: memory that lives only while a function runs.  That runs in a thread: body makes the
 * memory, hands it to frame_wait, and returns after that.  NULL, or what failed.
 */
const char *frame_enter(struct life *l, void (*body)(struct life *l, size_t need), size_t need,
			size_t stack_bytes);
void frame_wait(struct life *l, void *mem, size_t bytes);
void frame_leave(struct life *l);

/* Data of module.so; NULL: it has fewer bytes.  of_file: 0x5a in each byte, else zeros. */
__attribute__((visibility("default"))) unsigned char *module_data(size_t bytes, bool of_file);
__attribute__((visibility("default"))) unsigned char *module_tls(size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
