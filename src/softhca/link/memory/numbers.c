/* numbers.c - numbers of queue pairs, in the fabric segment. */
#include "softhca/link/memory/ask.h"
#include "softhca/link/memory/numbers.h"

#include "softhca/link/memory/state.h"

void hca_numbers_free_of(struct hca_fabric *f, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < HCA_FABRIC_QPS; i++) {
		uint64_t e = atomic_load_explicit(&f->shm->qp[i], memory_order_relaxed);

		if ((e >> 16 & 0xffff) == slot + 1)
			atomic_compare_exchange_strong(&f->shm->qp[i], &e, e & 0xffff);
	}
}

static void reap_dead(struct hca_fabric *f)
{
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++) {
		if (atomic_load(&f->shm->slot[i].phase) == HCA_PRESENT &&
		    !hca_slot_alive(&f->link_state->me, f->shm, i))
			hca_numbers_free_of(f, i);
	}
}

static uint32_t claim_once(struct hca_fabric *f, uint32_t index)
{
	uint32_t tries, at;

	for (tries = 0; tries < HCA_FABRIC_QPS; tries++) {
		uint64_t e;

		at = atomic_fetch_add_explicit(&f->shm->qp_cursor, 1, memory_order_relaxed) %
		     HCA_FABRIC_QPS;
		if (at == 0 || at == HCA_FABRIC_QPS - 1)
			continue;	/* 0 and 1 are reserved, 0xffffff is multicast */
		e = atomic_load_explicit(&f->shm->qp[at], memory_order_relaxed);
		if (e >> 16 & 0xffff)
			continue;
		if (atomic_compare_exchange_strong(&f->shm->qp[at], &e,
						   hca_shm_qp_entry(index, f->slot,
								    (uint32_t)e + 1)))
			return at << HCA_QPN_GEN_BITS |
			       (((uint32_t)e + 1) & ((1 << HCA_QPN_GEN_BITS) - 1));
	}
	return 0;
}

uint32_t hca_number_claim(struct hca_fabric *f, uint32_t index)
{
	uint32_t qpn = claim_once(f, index);

	if (qpn)
		return qpn;
	reap_dead(f);
	return claim_once(f, index);
}

void hca_number_release(struct hca_fabric *f, uint32_t qpn)
{
	_Atomic uint64_t *entry = &f->shm->qp[qpn >> HCA_QPN_GEN_BITS];
	uint64_t e = atomic_load(entry);

	if ((e >> 16 & 0xffff) == f->slot + 1)
		atomic_compare_exchange_strong(entry, &e, e & 0xffff);
}

int hca_number_find(const struct hca_fabric *f, uint32_t qpn, uint32_t *slot, uint32_t *index)
{
	uint32_t mask = (1 << HCA_QPN_GEN_BITS) - 1;
	uint64_t e;

	if (qpn >> HCA_QPN_GEN_BITS >= HCA_FABRIC_QPS)
		return -ENOENT;
	e = atomic_load(&f->shm->qp[qpn >> HCA_QPN_GEN_BITS]);
	*slot = (uint32_t)(e >> 16 & 0xffff) - 1;
	*index = (uint32_t)(e >> 32);
	if (*slot >= HCA_PROCS_MAX || *index >= HCA_QPS_MAX || ((uint32_t)e & mask) != (qpn & mask))
		return -ENOENT;
	return 0;
}
