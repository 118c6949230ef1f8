/*
 * copy.h - moving bytes between two lists of spans.
 *
 * One side is always in this process (here); the other may have spans that
 * are only in the peer: for the kernel to copy (process_vm_readv/writev), or for
 * the peer itself (bounce.h).
 */
#ifndef HCA_COPY_H
#define HCA_COPY_H

#include <string.h>

#include "object/qp.h"

/*
 * Copy n bytes so that whoever polls the last 8 (or the last byte of fewer)
 * and finds them new finds all others in place.  Who sends to himself may let
 * both overlap: then the result is of no use, but nothing else happens.
 */
static inline void hca_copy_last_last(unsigned char *to, const unsigned char *from, size_t n)
{
	uint64_t tail;

	if (hca_likely(n >= sizeof(tail))) {
		unsigned char *last = to + n - sizeof(tail);

		memcpy(&tail, from + n - sizeof(tail), sizeof(tail));
		if (n > sizeof(tail))
			memmove(to, from, n - sizeof(tail));
		if (hca_likely((uintptr_t)last % sizeof(tail) == 0)) {
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
 * Towards the remote end the last 8 bytes become visible last.
 * 0; -ESRCH: the peer is gone; -EBUSY: not now; other -errno: memory that is not
 * there.
 */
int hca_copy(struct hca_peer *peer, const struct hca_message *m, enum hca_direction direction,
	     size_t skip, size_t n);

/*
 * The same of one run whose other end is only in the peer, under a key of the
 * peer's: by the kernel or by the peer itself (bounce.h; -EBUSY: not now, and
 * -EINPROGRESS).
 */
int hca_copy_remote(struct hca_peer *peer, enum hca_direction direction, void *local,
		    uint64_t remote, uint32_t key, size_t n);

/* What is not mapped is copied by the peer, as far as is known. */
bool hca_copy_bounces(const struct hca_peer *peer);

#endif
