/*
 * copy.h - moving bytes between two lists of spans.
 *
 * The local side is always in this process; the remote side may have spans that are
 * only in the peer: the kernel copies them (process_vm_readv/writev), or the peer
 * itself (bounce.h).
 */
#ifndef HCA_COPY_H
#define HCA_COPY_H

#include <string.h>

#include "softhca/object/qp.h"
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
			rg_copy_blocks(to, from, n - sizeof(tail));
		if (likely((uintptr_t)last % sizeof(tail) == 0)) {
			atomic_store_explicit((_Atomic uint64_t *)(void *)last, tail,
					      memory_order_release);
			return;
		}
		atomic_thread_fence(memory_order_release);
		memcpy(last, &tail, sizeof(tail));
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

enum hca_direction { HCA_TO_REMOTE, HCA_FROM_REMOTE };

/*
 * Bytes [skip, skip + n) of a message between its local and its remote spans.
 * `last`: towards the remote end the last 8 bytes become visible last.
 * 0; -ESRCH: the peer is gone; -EBUSY: not now; other -errno: absent memory.
 */
int hca_copy(struct hca_peer *peer, const struct hca_message *m, enum hca_direction direction,
	     size_t skip, size_t n, bool last);

/*
 * hca_copy for one run whose remote end is only in the peer, under a key of the
 * peer's: the kernel or the peer itself copies.  Also -EINPROGRESS (bounce.h).
 */
int hca_copy_remote(struct hca_peer *peer, enum hca_direction direction, void *local,
		    uint64_t remote, uint32_t key, size_t n);

/*
 * hca_copy_remote towards the peer, in an access section that has found the memory not moving: an
 * owner that wants to move it waits for the end of the section.  Waiting here for the move would
 * deadlock.
 */
int hca_copy_reached(struct hca_peer *peer, void *local, uint64_t remote, uint32_t key, size_t n);

/* Does the peer copy memory that is not mapped, as far as is known? */
bool hca_copy_bounces(const struct hca_peer *peer);

#endif
