/* flush.c - the error state of a queue pair. */
#include "util/clock.h"
#include "softhca/engine/engine.h"
#include "softhca/engine/flush.h"
#include "softhca/engine/deferred_wait.h"
#include "softhca/object/event.h"
#include "softhca/engine/pace.h"
#include "softhca/engine/post.h"

/* A live process's claim of a receive is respected for so long. */
enum { CLAIM_NS = 1000000000 };

void hca_sq_flush(struct hca_qp *qp)
{
	struct hca_sq *sq = &qp->sq;

	hca_pace_stop(qp);
	sq->blocked = false;
	sq->again_ns = 0;
	while (hca_sq_oldest(sq) != sq->posted) {
		uint32_t position = hca_sq_oldest(sq);
		struct hca_wqe *w = &sq->wqe[position & sq->mask];

		hca_sq_pop(qp);
		hca_sq_complete(qp, &w->wr, position, 0, IBV_WC_WR_FLUSH_ERR, 0);
	}
}

void hca_qp_lose_peer(struct hca_qp *qp)
{
	struct hca_sq *sq = &qp->sq;
	uint32_t position = hca_sq_oldest(sq);
	struct hca_wqe *w = &sq->wqe[position & sq->mask];

	if (position == sq->posted) {
		hca_event_qp(qp, IBV_EVENT_QP_FATAL);
	} else {
		hca_sq_pop(qp);
		hca_sq_complete(qp, &w->wr, position, 0, IBV_WC_RETRY_EXC_ERR, 0);
	}
	hca_qp_fail(qp);
}

void hca_sq_fail(struct hca_qp *qp)
{
	bool ends;

	if (qp->reliable) {
		hca_qp_fail(qp);
		return;
	}
	if (hca_qp_state(qp) != IBV_QPS_RTS && hca_qp_state(qp) != IBV_QPS_SQD)
		return;
	atomic_store(&qp->state, IBV_QPS_SQE);
	qp->fast = false;
	ends = qp->pace && hca_release_due(qp, UINT64_MAX);
	qp->link->qp_stop(qp);
	hca_sq_flush(qp);
	if (ends)
		hca_engine_add(qp);
}

/*
 * Withdraw this receive; false: a completion may still come.  A dead process's claim may
 * have led to a completion, with others after it, that waits in the mailbox for an earlier
 * entry which another process is writing: all of them are read before anything is flushed.
 */
static bool receive_withdraw(struct hca_qp *qp, uint32_t position)
{
	struct hca_rq *rq = &qp->rq;
	struct hca_shm_recv *r = hca_rq_entry(rq->ring, position, rq->mask, rq->stride);
	uint64_t state = hca_shm_state(position, HCA_POSTED);

	if (atomic_compare_exchange_strong(&r->state, &state, hca_shm_state(position, HCA_FREE)))
		return true;
	/* First the claimer's fate, then the completions that it has left. */
	return qp->fabric->link->slot_fate(qp->fabric, hca_shm_claimer(state)) != HCA_FATE_ALIVE &&
	       hca_cq_drain(hca_recv_cq(qp));
}

/* Pass receives [from, to), which are over, unless the first has been completed meanwhile. */
static bool pass(struct hca_qp *qp, uint32_t from, uint32_t to)
{
	struct hca_cq *cq = hca_recv_cq(qp);
	struct hca_rq *rq = &qp->rq;
	bool passed;

	hca_lock(&cq->lock);
	passed = atomic_load_explicit(&rq->next, memory_order_relaxed) == from;
	if (passed)
		atomic_store_explicit(&rq->next, to, memory_order_relaxed);
	hca_unlock(&cq->lock);
	return passed;
}

static void complete_flushed(struct hca_qp *qp, uint32_t from, uint32_t to)
{
	struct hca_rq *rq = &qp->rq;

	for (; from != to; from++) {
		struct hca_completion c = { .qp = qp, .receive = true, .opcode = IBV_WC_RECV,
					    .status = IBV_WC_WR_FLUSH_ERR, .position = from,
					    .wr_id = rq->wr_id[from & rq->mask],
					    .visible_ns = rq->visible_ns };

		atomic_store(&hca_rq_entry(rq->ring, from, rq->mask, rq->stride)->state,
			     hca_shm_state(from, HCA_FREE));
		if (hca_cq_add(hca_recv_cq(qp), &c))
			hca_fabric_fault(qp->fabric);
	}
}

/* Receives stay in the SRQ; wait for the end of claims by messages to this queue pair. */
static bool flush_srq(struct hca_qp *qp)
{
	if (qp->last_told)
		return false;
	if (!rg_reached(qp->rq.flush_deadline_ns, rg_now_ns()) &&
	    ((qp->datagram ? hca_shared_busy(qp->shared) :
			     qp->link->peer_in_access_section(qp)) ||
	     !hca_cq_drain(hca_recv_cq(qp))))
		return true;
	qp->last_told = true;
	hca_event_qp(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	return false;
}

/* The receives of a queue pair that accepts any sender. */
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
			hca_fabric_fault(qp->fabric);
	}
}

bool hca_rq_flush(struct hca_qp *qp)
{
	struct hca_rq *rq = &qp->rq;
	uint32_t at, posted, to;

	if (qp->shared)
		return qp->ibv.qp_base.srq ? flush_srq(qp) : flush_shared(qp);
	for (;;) {
		hca_cq_drain(hca_recv_cq(qp));	/* entries that have arrived come first */
		at = atomic_load_explicit(&rq->next, memory_order_relaxed);
		posted = atomic_load_explicit(&rq->posted, memory_order_relaxed);
		if (at == posted)
			return false;
		if (receive_withdraw(qp, at))
			to = at + 1;
		else if (rg_reached(rq->flush_deadline_ns, rg_now_ns()))
			to = posted;	/* all at once: none succeeds after this one */
		else if (atomic_load_explicit(&rq->next, memory_order_relaxed) == at)
			return true;
		else
			continue;
		if (pass(qp, at, to))
			complete_flushed(qp, at, to);
	}
}

void hca_qp_fail(struct hca_qp *qp)
{
	bool remains, ends;

	if (hca_qp_state(qp) == IBV_QPS_ERR)
		return;
	atomic_store(&qp->state, IBV_QPS_ERR);
	qp->fast = false;
	/* Writes are complete, except for ends whose memory is being moved. */
	ends = qp->pace && hca_release_due(qp, UINT64_MAX);
	hca_qp_withdraw(qp);
	qp->link->qp_stop(qp);
	hca_sq_flush(qp);
	hca_lock(&qp->rq_lock);
	qp->rq.flush_deadline_ns = rg_now_ns() + CLAIM_NS;
	remains = hca_rq_flush(qp);
	hca_unlock(&qp->rq_lock);
	if (remains || ends)
		hca_engine_add(qp);
}
