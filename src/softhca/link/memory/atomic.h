/*
 * atomic.h - atomic operations on the peer's memory.
 *
 * Memory that is mapped here is changed by the processor's own atomic
 * operation: atomic with respect to everybody who maps it, the owner's
 * programs included.  What only the kernel reaches (copy.h), or lies askew, is
 * read, changed and written back under a lock word in the fabric segment, one
 * per adapter: atomic with respect to all others that come through that
 * adapter, which is what IBV_ATOMIC_HCA promises.  Which of the two it is
 * depends on the memory alone, so all requesters do the same: one who cannot map
 * what others can (no descriptors, no address space) is refused.
 *
 * The word names its holder: who dies with it loses it to the next who asks.
 * Who is stopped with it (by a signal, by a debugger) makes others wait in their send
 * queues, a second at most; then they take it.  From one who merely waits for a
 * processor they take it after five.  It looks again before it writes, so that only one
 * held up between that look and its write for so long does so late: into the word that
 * it was about to change.  Where the owner copies (bounce.h) and is stopped within it,
 * nobody knows whether the word was changed: the request fails, rather than be done
 * twice.
 */
#ifndef HCA_ATOMIC_H
#define HCA_ATOMIC_H

#include "object/qp.h"

/*
 * Carry out the request on the 8 bytes at the message's remote end; what was
 * there goes to the local end, in this machine's byte order.  0; -EBUSY: the
 * lock is held by somebody who lives; -ESRCH, other -errno as hca_copy.
 */
int hca_atomic(struct hca_qp *qp, const struct ibv_send_wr *wr);

#endif
