/*
 * atomic.h - atomic operations on the peer's memory.
 *
 * Memory that is mapped locally is changed by the processor's own atomic
 * operation: atomic with respect to every process that maps it, the owner
 * included.  Memory that only the kernel reaches (copy.h), or a misaligned word,
 * is read, changed and written back under a lock word in the fabric segment, one
 * per adapter: atomic with respect to all other requests through that adapter, as
 * IBV_ATOMIC_HCA promises.  The memory alone decides between the two methods, so all
 * requesters use the same: a requester that cannot map memory that others can map
 * (no descriptors, no address space) is refused.
 *
 * The lock word names its holder.  The next requester takes it over from a dead
 * holder.  A stopped holder (a signal, a debugger) makes other requests wait in
 * their send queues, a second at most; then they take the lock.  From a holder that
 * merely waits for a processor they take it after five.  A holder checks the lock
 * again before it writes, so only a holder that is held up for so long between that
 * check and its write writes late: into the word that it was about to change.  Where
 * the owner copies (bounce.h) and is stopped within the copy, the word may have been
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
