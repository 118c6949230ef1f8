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

#include "softhca/base/copy_last.h"
#include "softhca/object/qp.h"

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
