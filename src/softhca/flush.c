/* flush.c - the error state of a queue pair. */
#include "clock.h"
#include "engine.h"
#include "pace.h"

/* A claim by a process that lives is respected for so long. */
enum { CLAIM_NS = 1000000000 };

void hca_sq_flush(struct hca_qp *qp)
{
	struct hca_sq *sq = &qp->sq;

	hca_pace_reset(qp);
	while (sq->next != sq->posted) {
		struct hca_wqe *w = &sq->wqe[sq->next & sq->mask];
		uint32_t position = sq->next;

		hca_sq_pop(qp);
		hca_sq_complete(qp, &w->wr, position, 0, IBV_WC_WR_FLUSH_ERR, 0);
	}
}

void hca_sq_died(struct hca_qp *qp)
{
	struct hca_sq *sq = &qp->sq;
	struct hca_wqe *w = &sq->wqe[sq->next & sq->mask];
	uint32_t position = sq->next;

	if (position == sq->posted)
		return;
	hca_sq_pop(qp);
	hca_sq_complete(qp, &w->wr, position, 0, IBV_WC_RETRY_EXC_ERR, 0);
}

/* Will nobody touch the buffers of this receive any more? */
static bool withdraw(struct hca_qp *qp, uint32_t position)
{
	struct hca_rq *rq = &qp->rq;
	struct hca_shm_recv *r = hca_rq_entry(rq->ring, position, rq->mask, rq->stride);
	uint64_t state = hca_shm_state(position, HCA_POSTED);

	if (atomic_compare_exchange_strong(&r->state, &state, hca_shm_state(position, HCA_FREE)))
		return true;
	if (hca_slot_fate(qp->fabric, hca_shm_claimer(state)) == HCA_FATE_ALIVE &&
	    rg_now_ns() < rq->flush_deadline_ns)
		return false;
	atomic_store(&r->state, hca_shm_state(position, HCA_FREE));
	return true;
}

bool hca_rq_flush(struct hca_qp *qp)
{
	struct hca_rq *rq = &qp->rq;
	struct hca_cq *cq = hca_recv_cq(qp);

	for (;;) {
		struct hca_completion c = { .qp = qp, .receive = true, .opcode = IBV_WC_RECV,
					    .status = IBV_WC_WR_FLUSH_ERR };

		hca_cq_drain(cq);	/* what has arrived comes first */
		c.position = atomic_load_explicit(&rq->next, memory_order_relaxed);
		if (c.position == atomic_load_explicit(&rq->posted, memory_order_relaxed))
			return false;
		if (!withdraw(qp, c.position))
			return true;
		c.wr_id = rq->wr_id[c.position & rq->mask];
		c.visible_ns = rq->visible_ns;
		atomic_store_explicit(&rq->next, c.position + 1, memory_order_relaxed);
		if (hca_cq_add(cq, &c))
			hca_engine_fault(qp->fabric);
	}
}

void hca_qp_fail(struct hca_qp *qp)
{
	bool remains;

	if (hca_qp_state(qp) == IBV_QPS_ERR)
		return;
	atomic_store(&qp->state, IBV_QPS_ERR);
	qp->fast = false;
	if (qp->pace)
		hca_held_release(qp, UINT64_MAX);	/* what was written, was written */
	atomic_store_explicit(&qp->shm->gate, 0, memory_order_release);
	hca_sq_flush(qp);
	hca_lock(&qp->rq_lock);
	qp->rq.flush_deadline_ns = rg_now_ns() + CLAIM_NS;
	remains = hca_rq_flush(qp);
	hca_unlock(&qp->rq_lock);
	if (remains)
		hca_engine_add(qp);
}
