/*
 * atomics.h - atomic operations on words that several processes and links change.
 *
 * Memory that all requesters map is changed by the processor's own atomic operation: atomic with
 * respect to every process that maps it, the owner included.  Memory that some requesters only
 * reach through the kernel, or a misaligned word, is read, changed and written back under a lock
 * word in the fabric segment, one per adapter: atomic with respect to all other requests through
 * that adapter, as IBV_ATOMIC_HCA promises.  The memory alone decides between the two methods, so
 * all requesters of this host, and the responder for those of other hosts, use the same.
 *
 * The lock word names its holder.  The next requester takes it over from a dead
 * holder.  A stopped holder (a signal, a debugger) makes other requests wait, a second at most;
 * then they take the lock.  From a holder that merely waits for a processor they take it after
 * five.  A holder checks the lock again before it writes, so only a holder that is held up for so
 * long between that check and its write writes late: into the word that it was about to change.
 */
#ifndef HCA_ATOMICS_H
#define HCA_ATOMICS_H

#include <infiniband/verbs.h>

#include "softhca/object/fabric.h"

enum { HCA_WORD = 8 };

/* An operation that waits for the lock, over all its tries. */
struct hca_atomic_wait {
	uint64_t holder, since_ns;	/* the present holder, first seen then; zeros: none */
};

/* The word after the operation. */
static inline uint64_t hca_atomic_result(enum ibv_wr_opcode op, uint64_t old, uint64_t compare_add,
					 uint64_t swap)
{
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return old + compare_add;
	return old == compare_add ? swap : old;
}

/* The processor's operation on an aligned word: the word before. */
static inline uint64_t hca_atomic_on_processor(enum ibv_wr_opcode op, void *at,
					       uint64_t compare_add, uint64_t swap)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)at;
	uint64_t old = compare_add;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return atomic_fetch_add(word, compare_add);
	atomic_compare_exchange_strong(word, &old, swap);
	return old;
}

/* Do all requesters map this word of this process, registered under `key`? */
bool hca_atomic_is_mapped(const struct hca_fabric *f, uint32_t key, uint64_t at);

/* The lock of the adapter with a port of this address. */
struct hca_atomic_lock {
	_Atomic uint64_t *word;
	uint64_t turn;
};

/* Take it; false: a process that is alive holds it (0.2 ms have passed). */
bool hca_atomic_lock(struct hca_fabric *f, uint32_t address, struct hca_atomic_wait *wait,
		     struct hca_atomic_lock *lock);
/* False: this process was held up for so long that another one has taken it. */
static inline bool hca_atomic_lock_holds(const struct hca_atomic_lock *lock)
{
	return atomic_load_explicit(lock->word, memory_order_relaxed) == lock->turn;
}
void hca_atomic_unlock(const struct hca_atomic_lock *lock);

#endif
