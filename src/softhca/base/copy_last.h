/* copy_last.h - copies whose end becomes visible last, for programs that poll memory. */
#ifndef HCA_COPY_LAST_H
#define HCA_COPY_LAST_H

#include <stdint.h>
#include <string.h>

#include "softhca/base/base.h"
#include "softhca/base/layout.h"
#include "util/copy.h"

/* All of a line but its last 8 bytes.  Pollers poll lines most: no call. */
static inline void hca_copy_line_begin(unsigned char *to, const unsigned char *from)
{
	typedef uint64_t words __attribute__((vector_size(16)));
	words a, b, c;
	uint64_t d;

	memcpy(&a, from, 16);
	memcpy(&b, from + 16, 16);
	memcpy(&c, from + 32, 16);
	memcpy(&d, from + 48, 8);
	memcpy(to, &a, 16);
	memcpy(to + 16, &b, 16);
	memcpy(to + 32, &c, 16);
	memcpy(to + 48, &d, 8);
}

/*
 * Copy n bytes so that a poll that finds the last 8 (or the last byte of fewer)
 * new finds all others in place.  A process that sends to itself may let both
 * overlap: then the result is undefined, but no other memory changes.
 */
static inline void hca_copy_last_last(unsigned char *to, const unsigned char *from, size_t n)
{
	uint64_t tail;

	if (likely(n >= sizeof(tail))) {
		unsigned char *last = to + n - sizeof(tail);

		memcpy(&tail, from + n - sizeof(tail), sizeof(tail));
		if (n == HCA_LINE)
			hca_copy_line_begin(to, from);
		else if (n > sizeof(tail))
			rg_copy_to_other_core(to, from, n - sizeof(tail));
		if (likely((uintptr_t)last % sizeof(tail) == 0)) {
			atomic_store_explicit((_Atomic uint64_t *)(void *)last, tail,
					      memory_order_release);
			return;
		}
		/* Bytes of the tail may become visible one by one; the last one is stored last. */
		memcpy(last, &tail, sizeof(tail) - 1);
		atomic_store_explicit((_Atomic unsigned char *)(to + n - 1),
				      ((unsigned char *)&tail)[sizeof(tail) - 1],
				      memory_order_release);
	} else if (n == 4 && (uintptr_t)to % 4 == 0) {
		uint32_t word;

		memcpy(&word, from, sizeof(word));
		atomic_store_explicit((_Atomic uint32_t *)(void *)to, word, memory_order_release);
	} else if (n) {
		memmove(to, from, n - 1);
		atomic_store_explicit((_Atomic unsigned char *)(to + n - 1), from[n - 1],
				      memory_order_release);
	}
}

#endif
