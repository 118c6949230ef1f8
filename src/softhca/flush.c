/* flush.c - the error state of a queue pair. */
#include "clock.h"
#include "engine.h"
#include "event.h"
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

void hca_sq_fail(struct hca_qp *qp)
{
	if (qp->reliable) {
		hca_qp_fail(qp);
		return;
	}
	if (hca_qp_state(qp) != IBV_QPS_RTS && hca_qp_state(qp) != IBV_QPS_SQD)
		return;
	atomic_store(&qp->state, IBV_QPS_SQE);
	qp->fast = false;
	if (qp->pace)
		hca_held_release(qp, UINT64_MAX);
	hca_sq_flush(qp);
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
	    !rg_reached(rq->flush_deadline_ns, rg_now_ns()))
		return false;
	atomic_store(&r->state, hca_shm_state(position, HCA_FREE));
	return true;
}

/* Its receives stay in the SRQ; what messages to it had claimed has been completed. */
static bool flush_srq(struct hca_qp *qp)
{
	if (qp->last_told)
		return false;
	if (!rg_reached(qp->rq.flush_deadline_ns, rg_now_ns()) &&
	    (qp->datagram ? hca_shared_busy(qp->shared) : hca_peer_inside(qp)))
		return true;
	hca_cq_drain(hca_recv_cq(qp));
	qp->last_told = true;
	hca_event_qp(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	return false;
}

/* Receives that anybody may have claimed. */
static bool flush_shared(struct hca_qp *qp)
{
	struct hca_cq *cq = hca_recv_cq(qp);

	for (;;) {
		struct hca_completion c = { .qp = qp, .receive = true, .opcode = IBV_WC_RECV,
					    .status = IBV_WC_WR_FLUSH_ERR };
		int rc;

		hca_cq_drain(cq);
		hca_lock(&qp->shared->lock);
		rc = hca_shared_withdraw(qp->shared,
					 rg_reached(qp->rq.flush_deadline_ns, rg_now_ns()),
					 &c.position, &c.wr_id);
		hca_unlock(&qp->shared->lock);
		if (rc <= 0)
			return rc < 0;
		c.visible_ns = qp->rq.visible_ns;
		if (hca_cq_add(cq, &c))
			hca_engine_fault(qp->fabric);
	}
}

bool hca_rq_flush(struct hca_qp *qp)
{
	struct hca_rq *rq = &qp->rq;
	struct hca_cq *cq = hca_recv_cq(qp);

	if (qp->shared)
		return qp->ibv.qp_base.srq ? flush_srq(qp) : flush_shared(qp);
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
