/* copy.h - copies of a few bytes and of some KiB. */
#ifndef RG_UTIL_COPY_H
#define RG_UTIL_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/compiler.h"

/* memcpy; the lengths of one or two numbers are copied in place, as two words that may overlap. */
static inline void rg_copy_short(void *to, const void *from, size_t bytes)
{
	uint64_t first, last;

	if (unlikely(bytes - sizeof(first) > sizeof(last))) {
		memcpy(to, from, bytes);
		return;
	}
	memcpy(&first, from, sizeof(first));
	memcpy(&last, (const unsigned char *)from + bytes - sizeof(last), sizeof(last));
	memcpy(to, &first, sizeof(first));
	memcpy((unsigned char *)to + bytes - sizeof(last), &last, sizeof(last));
}

/*
 * memcpy in blocks, for messages of some KiB.  From about 2 KiB on the C library copies by one string
 * instruction, which some processors execute four times slower where both ends have nearly the same
 * place in their pages.
 */
static inline void rg_copy_blocks(void *to, const void *from, size_t bytes)
{
	enum { BLOCK = 1024 };
	unsigned char *out = to;
	const unsigned char *in = from;

	for (; bytes > BLOCK; bytes -= BLOCK) {
		memcpy(out, in, BLOCK);
		out += BLOCK;
		in += BLOCK;
	}
	memcpy(out, in, bytes);
}

#endif
