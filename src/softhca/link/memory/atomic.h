/*
 * atomic.h - atomic operations on the peer's memory (object/atomics.h).
 *
 * A requester that cannot map memory that others can map (no descriptors, no address space) is
 * refused.  Where the owner copies (bounce.h) and is stopped within the copy, the word may have been
 * changed or not: the request fails, rather than being done twice.
 */
#ifndef HCA_ATOMIC_H
#define HCA_ATOMIC_H

#include "softhca/object/qp.h"

/*
 * Carry out the request on the 8 bytes at the message's remote end; the old value
 * goes to the local end, in this machine's byte order.  0; -EBUSY: a process
 * that is alive holds the lock; -ESRCH, other -errno as hca_copy.
 */
int hca_atomic(struct hca_qp *qp, const struct ibv_send_wr *wr);

#endif
