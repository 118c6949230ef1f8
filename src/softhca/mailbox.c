/* mailbox.c - the producer's side of a completion queue in another process. */
#include "cq.h"

enum claim { CLAIMED, TAKEN, FULL };

/* Try the slot of one position. */
static enum claim try_claim(struct hca_mailbox *m, uint32_t position, uint32_t slot)
{
	struct hca_shm_cqe *e = &m->shm->slot[position & m->mask];
	uint32_t lap = position >> m->shift;
	uint64_t free = hca_shm_state(lap, HCA_FREE);
	uint64_t state = free;
	uint32_t ahead;

	if (atomic_compare_exchange_strong_explicit(&e->state, &state,
						    hca_shm_state(lap, hca_shm_claimed(slot)),
						    memory_order_acquire, memory_order_acquire))
		return CLAIMED;
	if (hca_shm_kind(state) >= HCA_REVOKED)
		return TAKEN;
	/* Laps have 32 - shift significant bits: compare in those. */
	ahead = (uint32_t)(state >> 32) - lap;
	return ahead << m->shift >> 31 ? FULL : TAKEN;
}

int hca_mailbox_put(struct hca_mailbox *m, uint32_t slot, const struct hca_shm_cqe *cqe)
{
	uint32_t position = atomic_load_explicit(&m->shm->tail, memory_order_relaxed);
	uint32_t tries = 0;

	for (;;) {
		struct hca_shm_cqe *e = &m->shm->slot[position & m->mask];
		uint32_t lap = position >> m->shift;
		uint64_t mine = hca_shm_state(lap, hca_shm_claimed(slot));
		enum claim claim = try_claim(m, position, slot);

		/* Others may have gone round meanwhile; nobody goes round for ever. */
		if (claim == FULL || tries++ > 4 * m->mask + 64) {
			atomic_store_explicit(&m->shm->overflow, 1, memory_order_release);
			return -ENOSPC;
		}
		position++;
		if (claim == TAKEN)
			continue;
		atomic_store_explicit(&m->shm->tail, position, memory_order_relaxed);
		e->visible_ns = cqe->visible_ns;
		e->qp_index = cqe->qp_index;
		e->qpn = cqe->qpn;
		e->position = cqe->position;
		e->bytes = cqe->bytes;
		e->imm = cqe->imm;
		e->src_qp = cqe->src_qp;
		e->status = cqe->status;
		e->opcode = cqe->opcode;
		e->flags = cqe->flags;
		e->solicited = cqe->solicited;
		if (hca_likely(atomic_compare_exchange_strong_explicit(
			    &e->state, &mine, hca_shm_state(lap, HCA_FULL),
			    memory_order_release, memory_order_relaxed)))
			return 0;
		/* We were too slow: the owner has revoked the claim.  Nobody else used it. */
		if (mine == hca_shm_state(lap, hca_shm_revoked(slot)))
			atomic_compare_exchange_strong_explicit(
				&e->state, &mine, hca_shm_state(lap, HCA_RETURNED),
				memory_order_release, memory_order_relaxed);
	}
}
