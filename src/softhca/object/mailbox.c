/* mailbox.c - the producer's side of a completion queue in another process. */
#include "softhca/object/cq.h"

#include "util/clock.h"

enum claim { CLAIMED, TAKEN, FULL };

/* ---- Waking the owner ---------------------------------------------------- */

static int send_wakeup(struct hca_mailbox *m)
{
	if (m->wakeup)
		hca_wakeup_send(m->wakeup);
	else if (m->peer)
		return m->wake_peer(m->peer, m->shm->wakeup);
	return 0;
}

void hca_mailbox_fire(struct hca_mailbox *m, bool special)
{
	uint64_t armed = atomic_load(&m->shm->armed), fired;
	int tries;

	/* Other producers fire it, too, and its owner rearms it: the loop is bounded. */
	for (tries = 0; tries < 16 && hca_shm_wakes(armed); tries++) {
		fired = (armed & ~7ull) | HCA_FIRED;
		if (hca_shm_armed(armed) == HCA_ARMED_SOLICITED && !special)
			return;
		if (armed != fired &&
		    !atomic_compare_exchange_strong(&m->shm->armed, &armed, fired))
			continue;
		/* If no wake-up can be sent, it is left to the next producer. */
		if (send_wakeup(m) == 0)
			atomic_compare_exchange_strong(&m->shm->armed, &fired,
						       (fired & ~7ull) | HCA_RUNG);
		return;
	}
}

/* ---- Putting ------------------------------------------------------------- */

/* Try to claim the slot of one position; TAKEN: *next is the position to try next. */
static enum claim try_claim(struct hca_mailbox *m, uint32_t position, uint32_t slot,
			    uint32_t *next)
{
	struct hca_shm_cqe *e = &m->shm->slot[position & m->mask];
	uint32_t lap = position >> m->shift;
	uint64_t free = hca_shm_state(lap, HCA_FREE);
	uint64_t state = free;
	uint32_t ahead, from;

	if (atomic_compare_exchange_strong_explicit(&e->state, &state,
						    hca_shm_state(lap, hca_shm_claimed(slot)),
						    memory_order_acquire, memory_order_acquire))
		return CLAIMED;
	*next = position + 1;
	if (hca_shm_kind(state) >= HCA_REVOKED)
		return TAKEN;
	/* Laps have 32 - shift significant bits: compare in these bits. */
	ahead = (uint32_t)(state >> 32) - lap;
	if (ahead << m->shift >> 31)
		return FULL;
	/*
	 * A producer that was stopped before this, or read the tail of one that was, may
	 * be late by many laps.  The slot's entry of the lap before its present one has been
	 * consumed: trying from there on skips no free slot.
	 */
	from = position + (ahead << m->shift) - m->mask;
	if ((int32_t)(from - *next) > 0)
		*next = from;
	return TAKEN;
}

int hca_mailbox_put(struct hca_mailbox *m, uint32_t slot, const struct hca_shm_cqe *cqe)
{
	uint32_t position = atomic_load_explicit(&m->shm->tail, memory_order_relaxed);
	uint32_t tries = 0, next;

	for (;;) {
		struct hca_shm_cqe *e = &m->shm->slot[position & m->mask];
		uint32_t lap = position >> m->shift;
		uint64_t mine = hca_shm_state(lap, hca_shm_claimed(slot));
		enum claim claim = try_claim(m, position, slot, &next);

		/* Other producers may have advanced meanwhile: the loop is bounded. */
		if (claim == FULL || tries++ > 4 * m->mask + 64) {
			atomic_store_explicit(&m->shm->overflow, 1, memory_order_release);
			return -ENOSPC;
		}
		if (claim == TAKEN) {
			position = next;
			continue;
		}
		position++;
		atomic_store_explicit(&m->shm->tail, position, memory_order_relaxed);
		e->visible_ns = cqe->visible_ns;
		if (unlikely(m->shm->stamped && !cqe->visible_ns))
			e->visible_ns = rg_now_ns();
		e->qp_index = cqe->qp_index;
		e->qpn = cqe->qpn;
		e->position = cqe->position;
		e->entry = cqe->entry;
		e->bytes = cqe->bytes;
		e->imm = cqe->imm;
		e->src_qp = cqe->src_qp;
		e->status = cqe->status;
		e->opcode = cqe->opcode;
		e->flags = cqe->flags;
		e->slid = cqe->slid;
		e->sl = cqe->sl;
		e->solicited = cqe->solicited;
		if (likely(atomic_compare_exchange_strong_explicit(
			    &e->state, &mine, hca_shm_state(lap, HCA_FULL),
			    memory_order_seq_cst, memory_order_relaxed))) {
			hca_mailbox_wake(m, cqe->solicited || cqe->status);
			return 0;
		}
		/* Too late: the owner has revoked the claim.  No other process used the slot. */
		if (mine == hca_shm_state(lap, hca_shm_revoked(slot)))
			atomic_compare_exchange_strong_explicit(
				&e->state, &mine, hca_shm_state(lap, HCA_RETURNED),
				memory_order_release, memory_order_relaxed);
	}
}
