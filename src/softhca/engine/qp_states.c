/* qp_states.c - queue pairs: creation, state changes, destruction. */
#include "softhca/engine/qp_states.h"

#include <stdlib.h>
#include <string.h>

#include "softhca/engine/engine.h"
#include "softhca/engine/flush.h"
#include "softhca/engine/pace.h"
#include "softhca/engine/post.h"
#include "softhca/object/device.h"
#include "softhca/object/event.h"
#include "softhca/object/loss.h"
#include "softhca/object/mcast.h"
#include "softhca/object/query.h"
#include "softhca/engine/wr.h"

/* ---- Creation ------------------------------------------------------------ */

static void free_qp(struct hca_qp *qp)
{
	hca_links_qp_free(qp);
	hca_batch_free(qp);
	hca_pace_free(qp);
	hca_qp_free(qp);
}

static struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init, bool batches)
{
	struct hca_qp *qp;
	int rc = hca_qp_new(pd, init, &qp);

	if (rc) {
		errno = rc;
		return NULL;
	}
	rc = hca_links_qp_make(qp);
	if (!rc && qp->fabric->spec.timed)
		rc = hca_pace_make(qp);
	if (!rc && batches)
		rc = hca_batch_make(qp);
	if (!rc)
		rc = hca_qp_claim_index(qp);
	if (rc) {
		free_qp(qp);
		errno = rc;
		return NULL;
	}
	qp->ibv.qp_base.handle = qp->index;
	hca_lock(&qp->fabric->life);	/* not while its completion queue moves */
	hca_qp_publish(qp);
	hca_unlock(&qp->fabric->life);
	init->cap = qp->cap;
	atomic_fetch_add(&hca_pd_of(pd)->objects, 1);
	atomic_fetch_add(&hca_send_cq(qp)->objects, 1);
	atomic_fetch_add(&hca_recv_cq(qp)->objects, 1);
	return &qp->ibv.qp_base;
}

struct ibv_qp *hca_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	return qp_create(pd, init, false);
}

struct ibv_qp *hca_qp_create_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *init)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bool batches = init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	const uint64_t atomics = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	uint64_t lacks = hca_context_personality(c)->no_atomics ? atomics : 0;
	uint64_t missing = batches ? init->send_ops_flags &
				     (~hca_batch_ops(init->qp_type) | lacks) : 0;

	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	if ((init->comp_mask & ~known) || missing ||
	    ((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && init->create_flags)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	/* The extended structure begins with the plain one. */
	return qp_create(init->pd, (struct ibv_qp_init_attr *)(void *)init, batches);
}

/* ---- State changes ------------------------------------------------------- */

/* Forget everything outstanding.  fabric.life held, qp->lock not. */
static void reset(struct hca_qp *qp)
{
	struct hca_rq *rq = &qp->rq;
	uint32_t at;

	hca_qp_withdraw(qp);
	hca_lock(&qp->lock);
	qp->fast = false;
	atomic_store(&qp->state, IBV_QPS_RESET);
	hca_unlock(&qp->lock);
	hca_engine_remove(qp);
	/* A peer stopped in its access section may go on: its target is not used again. */
	if (!hca_links_quiesce(qp->fabric, qp)) {
		qp->unquiet = hca_recv_cq(qp)->unquiet = true;
		if (qp->shared)
			qp->shared->unquiet = true;
	}

	hca_lock(&qp->lock);
	hca_links_qp_reset(qp);
	qp->link = hca_qp_first_link(qp);
	while (hca_sq_oldest(&qp->sq) != qp->sq.posted)
		hca_sq_pop(qp);
	qp->sq.wait = HCA_NOT_WAITING;
	qp->sq.begun = qp->sq.posted;
	qp->sq.blocked = false;
	qp->sq.again_ns = 0;
	qp->sq.bytes_head = qp->sq.bytes_used = 0;
	hca_pace_reset(qp);
	hca_lock(&qp->rq_lock);
	hca_cq_purge(hca_recv_cq(qp), qp);
	hca_cq_purge(hca_send_cq(qp), qp);
	atomic_store(&qp->sq.done, qp->sq.posted);
	for (at = rq->next; at != rq->posted; at++)
		atomic_store(&hca_rq_entry(rq->ring, at, rq->mask, rq->stride)->state,
			     hca_shm_state(at, HCA_FREE));
	rq->next = rq->done = rq->posted;
	if (qp->shared && !qp->ibv.qp_base.srq)
		hca_shared_clear(qp->shared);
	qp->last_told = false;
	atomic_store(&qp->shm->rq_head, rq->posted);
	atomic_store(&qp->shm->fault, 0);
	qp->listening = false;
	atomic_store(&qp->shm->first, HCA_FIRST_IGNORED);
	hca_unlock(&qp->rq_lock);
	memset(&qp->attr, 0, sizeof(qp->attr));
	hca_unlock(&qp->lock);
}

/*
 * Publish the accept token: from then on the peer may send.  A peer of another host does not ask for
 * it, and one of this host that has its number is another.
 */
static void open_to_peer(struct hca_qp *qp)
{
	uint32_t opened;

	if (!qp->datagram) {
		qp->listening = true;
		atomic_store(&qp->shm->first, HCA_FIRST_EXPECTED);
	}
	if (!qp->datagram && hca_qp_on_wire(qp))
		return;
	/* The number is new, so no accept token equals an earlier one of this index. */
	opened = atomic_fetch_add(&qp->fabric->accept_tokens, 1) + 1;
	atomic_store_explicit(&qp->shm->accept, (uint64_t)opened << 32 |
			      (qp->datagram ? HCA_ANY_SENDER : qp->conn.qpn), memory_order_release);
}

/* The link that leads to an address; NULL: none. */
static const struct hca_link_operations *link_to(const struct hca_fabric *f, uint32_t address)
{
	return address == HCA_ADDRESS_REMOTE || f->wire_always ? f->wire : f->link;
}

/* The peer's adapter places what arrives; a wire's does in order. */
static void set_late(struct hca_qp *qp)
{
	uint32_t port;

	qp->late = qp->conn.address != HCA_ADDRESS_REMOTE &&
		   hca_personality_at(&qp->fabric->spec, qp->conn.address, &port)->late;
	qp->sq.short_max = qp->operations & 1u << IBV_WR_RDMA_WRITE && !qp->late ? qp->sq.inline_max : 0;
}

static int find_address(const struct hca_qp *qp, const struct ibv_ah_attr *ah, uint32_t *address)
{
	const struct ibv_context *c = qp->ibv.qp_base.context;

	if (ah->port_num < 1 || ah->port_num > qp->fabric->spec.ports || !hca_source_exists(c, ah))
		return EINVAL;
	return -hca_route(c, ah, address);
}

/* The address of the peer; a connected queue pair keeps its link. */
static int set_address(struct hca_qp *qp, uint32_t address, bool connected)
{
	const struct hca_link_operations *link = link_to(qp->fabric, address);

	if (!link || (connected && link != qp->link))
		return EHOSTUNREACH;
	qp->link = link;
	qp->conn.address = address;
	set_late(qp);
	return 0;
}

/* INIT -> RTR. */
static int connect_peer(struct hca_qp *qp)
{
	int rc = qp->link->qp_connect(qp);

	if (!rc)
		open_to_peer(qp);
	else
		qp->link = hca_qp_first_link(qp);
	return rc;
}

static int change(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask, int from, int to)
{
	uint32_t address = 0;
	/* First, since an address that is refused has a line. */
	int rc = mask & IBV_QP_AV ? find_address(qp, &a->ah_attr, &address) : 0;

	if (!rc)
		rc = hca_qp_check_values(qp, a, mask);
	if (!rc && (mask & IBV_QP_AV))
		rc = set_address(qp, address, from != IBV_QPS_INIT);
	if (rc)
		return rc;
	hca_qp_apply(qp, a, mask);
	if (qp->pace && (mask & (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_PORT)))
		hca_pace_connect(qp);
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		rc = connect_peer(qp);
	if (rc)
		return rc;
	if (to == IBV_QPS_RTS)
		hca_qp_check_first(qp, true);
	if (from == IBV_QPS_RTS && to == IBV_QPS_SQD) {
		qp->draining = true;
		qp->drain_told = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && a->en_sqd_async_notify;
	}
	qp->fast = false;
	atomic_store(&qp->state, to);
	if (to == IBV_QPS_RTS) {
		hca_loss_start(qp->fabric);
		if (qp->link->qp_sends)
			qp->link->qp_sends(qp);
	}
	hca_sq_progress(qp);
	return 0;
}

static int modify_locked(struct hca_qp *qp, struct ibv_qp_attr *a, int mask)
{
	int from = hca_qp_state(qp), to, rc;

	if ((mask & IBV_QP_CUR_STATE) && (int)a->cur_qp_state != from)
		return EINVAL;
	to = mask & IBV_QP_STATE ? (int)a->qp_state : from;
	rc = hca_qp_state_check(qp->ibv.qp_base.qp_type, (enum ibv_qp_state)from,
				(enum ibv_qp_state)to, mask);
	if (rc)
		return rc;
	if (to == IBV_QPS_RESET) {
		reset(qp);
		return 0;
	}
	hca_lock(&qp->lock);
	if (hca_qp_state(qp) != from)
		rc = EINVAL;		/* an error came meanwhile */
	else if (to == IBV_QPS_ERR)
		hca_qp_fail(qp);
	else
		rc = change(qp, a, mask, from, to);
	hca_unlock(&qp->lock);
	return rc;
}

int hca_qp_modify(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct hca_qp *qp = hca_qp_of(ibv);
	int rc;

	hca_engine_handle_events(qp->fabric);	/* a peer may have brought it to the error state */
	hca_lock(&qp->fabric->life);
	rc = modify_locked(qp, attr, mask);
	hca_unlock(&qp->fabric->life);
	if (!rc && (mask & IBV_QP_STATE))
		ibv->state = attr->qp_state;
	return rc;
}

/* ---- Queries, destruction ------------------------------------------------ */

int hca_qp_query(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct hca_qp *qp = hca_qp_of(ibv);

	hca_engine_handle_events(qp->fabric);
	hca_lock(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state)hca_qp_state(qp);
	attr->cap = qp->cap;
	attr->sq_draining = hca_qp_state(qp) == IBV_QPS_SQD && qp->draining;
	hca_unlock(&qp->lock);
	ibv->state = attr->qp_state;
	*init = (struct ibv_qp_init_attr){
		.qp_context = ibv->qp_context,
		.send_cq = ibv->send_cq,
		.recv_cq = ibv->recv_cq,
		.srq = ibv->srq,
		.cap = qp->cap,
		.qp_type = ibv->qp_type,
		.sq_sig_all = qp->signal_all,
	};
	return 0;
}

int hca_qp_destroy(struct ibv_qp *ibv)
{
	struct hca_qp *qp = hca_qp_of(ibv);
	struct hca_fabric *f = qp->fabric;

	if (hca_mcast_attached(qp))
		return EBUSY;
	hca_lock(&f->life);
	reset(qp);
	f->link->number_release(f, hca_qpn(qp));
	pthread_mutex_lock(&f->slow);
	atomic_store(&f->qp[qp->index], NULL);
	hca_context_of(ibv->context)->device->qps--;
	pthread_mutex_unlock(&f->slow);
	/* A poller may still hold the pointer: it does so under the queue's lock. */
	hca_cq_purge(hca_recv_cq(qp), qp);
	hca_cq_purge(hca_send_cq(qp), qp);
	hca_unlock(&f->life);
	hca_event_forget_qp(qp);
	atomic_fetch_sub(&hca_recv_cq(qp)->objects, 1);
	atomic_fetch_sub(&hca_send_cq(qp)->objects, 1);
	atomic_fetch_sub(&hca_pd_of(ibv->pd)->objects, 1);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free_qp(qp);
	return 0;
}
