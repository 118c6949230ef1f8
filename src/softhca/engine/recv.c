/* recv.c - the receive queue: posting. */
#include "softhca/engine/engine.h"
#include "softhca/engine/flush.h"
#include "softhca/engine/post.h"

static int rq_post_one(struct hca_qp *qp, const struct ibv_recv_wr *wr)
{
	struct hca_rq *rq = &qp->rq;
	uint32_t at = atomic_load_explicit(&rq->posted, memory_order_relaxed);
	struct hca_shm_recv *r = hca_rq_entry(rq->ring, at, rq->mask, rq->stride);
	uint64_t room = 0;
	int i;

	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->sge_max))
		return EINVAL;
	if (unlikely(at - atomic_load_explicit(&rq->done, memory_order_acquire) >= rq->depth))
		return ENOMEM;
	rq->wr_id[at & rq->mask] = wr->wr_id;
	r->sge_count = (uint32_t)wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		r->sge[i] = (struct hca_shm_sge){ wr->sg_list[i].addr, wr->sg_list[i].length,
						  wr->sg_list[i].lkey };
		room += wr->sg_list[i].length;
	}
	rq->room[at & rq->mask] = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
	atomic_store_explicit(&rq->posted, at + 1, memory_order_release);
	/* From here on the peer may claim it. */
	atomic_store_explicit(&r->state, hca_shm_state(at, HCA_POSTED), memory_order_release);
	return 0;
}

/* A queue pair that accepts any sender (UD), or uses an SRQ (EINVAL). */
static int post_shared(struct hca_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int rc;

	if (unlikely(qp->ibv.qp_base.srq || hca_qp_state(qp) == IBV_QPS_RESET)) {
		*bad = wr;
		return EINVAL;
	}
	rc = hca_shared_post(qp->shared, wr, bad);
	if (unlikely(hca_qp_state(qp) == IBV_QPS_ERR)) {
		hca_lock(&qp->rq_lock);
		if (hca_rq_flush(qp))
			hca_engine_add(qp);
		hca_unlock(&qp->rq_lock);
	}
	return rc;
}

int hca_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct hca_qp *qp = hca_qp_of(ibv);
	int rc = 0;

	if (qp->shared)
		return post_shared(qp, wr, bad);
	hca_lock(&qp->rq_lock);
	if (unlikely(hca_qp_state(qp) == IBV_QPS_RESET)) {
		rc = EINVAL;
		*bad = wr;
	}
	for (; wr && !rc; wr = wr->next) {
		rc = rq_post_one(qp, wr);
		if (unlikely(rc))
			*bad = wr;
	}
	if (unlikely(hca_qp_state(qp) == IBV_QPS_ERR) && hca_rq_flush(qp))
		hca_engine_add(qp);
	hca_unlock(&qp->rq_lock);
	return rc;
}
