/* copy.h - copies of a few bytes, without a call of the C library, and of some KiB. */
#ifndef RG_UTIL_COPY_H
#define RG_UTIL_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/compiler.h"

/* memmove, in blocks: copy.c has the reason.  For messages of some KiB. */
void rg_copy_blocks(void *to, const void *from, size_t bytes);
/* The same to memory that another core has read, in the faster of two ways: copy_choice.h. */
void rg_copy_to_other_core(void *to, const void *from, size_t bytes);
/* This process's choice of a class, below RG_COPY_CLASSES. */
struct rg_copy_cell;
struct rg_copy_cell *rg_copy_choice(unsigned class);

/* The same; the lengths of one or two numbers are copied in place, as two words that may overlap. */
static inline void rg_copy_short(void *to, const void *from, size_t bytes)
{
	uint64_t first, last;

	if (unlikely(bytes - sizeof(first) > sizeof(last))) {
		rg_copy_blocks(to, from, bytes);
		return;
	}
	memcpy(&first, from, sizeof(first));
	memcpy(&last, (const unsigned char *)from + bytes - sizeof(last), sizeof(last));
	memcpy(to, &first, sizeof(first));
	memcpy((unsigned char *)to + bytes - sizeof(last), &last, sizeof(last));
}

#endif
