/* qp.c - queue pairs: creation, state changes, queries, destruction. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "object/device.h"
#include "engine/engine.h"
#include "object/mcast.h"
#include "object/loss.h"
#include "engine/pace.h"
#include "base/segment.h"
#include "object/srq.h"
#include "link/memory/ud.h"

static const unsigned access_all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_MW_BIND;

/* ---- Creation ------------------------------------------------------------ */

static int check_init(const struct ibv_pd *pd, const struct ibv_qp_init_attr *a)
{
	if (!hca_operations(a->qp_type))
		return EOPNOTSUPP;
	if (!a->send_cq || !a->recv_cq || a->cap.max_send_wr > HCA_WR_MAX ||
	    a->cap.max_send_sge > HCA_SGE_MAX || a->cap.max_inline_data > HCA_INLINE_MAX)
		return EINVAL;
	/* As the kernel sees it: objects of one file only. */
	if (!hca_same_file(pd->context, a->send_cq->context) ||
	    !hca_same_file(pd->context, a->recv_cq->context) ||
	    (a->srq && !hca_same_file(pd->context, a->srq->context)))
		return EINVAL;
	/* With an SRQ, what is asked of the receive queue is of no account. */
	if (!a->srq && (a->cap.max_recv_wr > HCA_WR_MAX || a->cap.max_recv_sge > HCA_SGE_MAX))
		return EINVAL;
	return 0;
}

/* What is granted: never less than asked for.  Receives that are shared are not in the ring. */
static void grant(struct hca_qp *qp, const struct ibv_qp_cap *asked, bool shared)
{
	struct hca_sq *sq = &qp->sq;
	struct hca_rq *rq = &qp->rq;

	sq->depth = hca_pow2(asked->max_send_wr);
	sq->mask = sq->depth - 1;
	sq->sge_max = asked->max_send_sge < 4 ? 4 : asked->max_send_sge;
	/* UCX sends datagrams as long as can be sent inline: these must fit into a packet. */
	sq->inline_max = qp->datagram ? (uint32_t)qp->fabric->spec.mtu : HCA_INLINE_GRANT;
	if (sq->inline_max < asked->max_inline_data)
		sq->inline_max = asked->max_inline_data;
	rq->depth = shared ? 1 : hca_pow2(asked->max_recv_wr);
	rq->mask = rq->depth - 1;
	rq->stride = hca_rq_stride(shared ? 0 : asked->max_recv_sge, &rq->sge_max);
	qp->cap = (struct ibv_qp_cap){
		.max_send_wr = sq->depth, .max_recv_wr = shared ? 0 : rq->depth,
		.max_send_sge = sq->sge_max, .max_recv_sge = shared ? 0 : rq->sge_max,
		.max_inline_data = sq->inline_max,
	};
}

/* The queues' memory; what is not touched costs address space only. */
static int make_queues(struct hca_qp *qp)
{
	struct hca_fabric *f = qp->fabric;
	struct hca_sq *sq = &qp->sq;
	struct hca_rq *rq = &qp->rq;
	void *ring;
	int rc;

	sq->bytes_size = (size_t)(sq->depth + 1) * hca_align_up(sq->inline_max, 8);
	ring = mmap(NULL, sq->bytes_size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ring == MAP_FAILED)
		return ENOMEM;
	sq->bytes = ring;
	sq->wqe = calloc(sq->depth, sizeof(*sq->wqe));
	sq->sge = calloc((size_t)sq->depth * sq->sge_max, sizeof(*sq->sge));
	rq->wr_id = calloc(rq->depth, sizeof(*rq->wr_id));
	rq->room = calloc(rq->depth, sizeof(*rq->room));
	if (!sq->wqe || !sq->sge || !rq->wr_id || !rq->room)
		return ENOMEM;
	pthread_mutex_lock(&f->slow);
	rc = hca_heap_alloc(&f->heap, (size_t)rq->depth * rq->stride, &rq->line);
	pthread_mutex_unlock(&f->slow);
	if (rc)
		return ENOMEM;
	rq->ring = f->self->heap + (uint64_t)rq->line * HCA_LINE;
	return 0;
}

/* Receives that many may take: an SRQ's, or those of a queue pair to which anybody may send. */
static int make_shared(struct hca_qp *qp, const struct ibv_qp_init_attr *init)
{
	int rc;

	if (init->srq) {
		qp->ibv.qp_base.srq = init->srq;
		qp->shared = &hca_srq_of(init->srq)->shared;
		atomic_fetch_add(&hca_srq_of(init->srq)->objects, 1);
		return 0;
	}
	if (!qp->datagram)
		return 0;
	qp->shared = calloc(1, sizeof(*qp->shared));
	rc = !qp->shared ? ENOMEM : hca_shared_make(qp->shared, qp->fabric, qp->pd,
						    init->cap.max_recv_wr, init->cap.max_recv_sge);
	if (!rc) {
		qp->cap.max_recv_wr = qp->shared->depth;
		qp->cap.max_recv_sge = qp->shared->sge_max;
	}
	return rc;
}

static void free_shared(struct hca_qp *qp)
{
	struct ibv_srq *srq = qp->ibv.qp_base.srq;

	if (srq)
		atomic_fetch_sub(&hca_srq_of(srq)->objects, 1);
	else if (qp->shared) {
		hca_shared_free(qp->shared);
		free(qp->shared);
	}
}

static int take_index(struct hca_qp *qp)
{
	struct hca_fabric *f = qp->fabric;
	uint32_t i;

	pthread_mutex_lock(&f->slow);
	for (i = 0; i < HCA_QPS_MAX && atomic_load(&f->qp[i]); i++)
		;
	if (i < HCA_QPS_MAX) {
		uint32_t qpn = hca_segment_reserve(f->self_fd, offsetof(struct hca_shm_process, qp) +
						   i * sizeof(*qp->shm), sizeof(*qp->shm))
			? 0 : hca_fabric_take_qpn(f, i);

		if (qpn) {
			qp->index = i;
			qp->shm = &f->self->qp[i];
			memset(qp->shm, 0, sizeof(*qp->shm));
			qp->ibv.qp_base.qp_num = qpn;
			atomic_store(&f->qp[i], qp);
			if (i >= atomic_load(&f->qp_top))
				atomic_store(&f->qp_top, i + 1);
		} else {
			i = HCA_QPS_MAX;
		}
	}
	pthread_mutex_unlock(&f->slow);
	return i < HCA_QPS_MAX ? 0 : ENOMEM;
}

void hca_qp_tell_cq(struct hca_qp *qp)
{
	const struct hca_cq *cq = hca_recv_cq(qp);

	atomic_store(&qp->shm->cq, (uint64_t)cq->line << 32 | cq->size);
}

static void publish_shape(struct hca_qp *qp)
{
	qp->shm->bell[0] = hca_context_of(qp->ibv.qp_base.context)->events.bell.number;
	qp->shm->bell[1] = hca_cq_bell(hca_send_cq(qp));
	qp->shm->bell[2] = hca_cq_bell(hca_recv_cq(qp));
	qp->shm->qpn = hca_qpn(qp);
	qp->shm->pd = qp->pd;
	qp->shm->rq_pd = qp->pd;
	if (qp->shared) {
		qp->shm->rq_line = qp->shared->line;
		qp->shm->rq_count = qp->shared->depth;
		qp->shm->rq_stride = qp->shared->view.stride;
		qp->shm->rq_pd = qp->shared->pd;
		qp->shm->shared_line = qp->shared->shm_line;
	} else {
		qp->shm->rq_line = qp->rq.line;
		qp->shm->rq_count = qp->rq.depth;
		qp->shm->rq_stride = qp->rq.stride;
	}
	hca_qp_tell_cq(qp);
}

static void free_queues(struct hca_qp *qp)
{
	struct hca_fabric *f = qp->fabric;

	if (qp->rq.ring && !qp->unquiet) {
		pthread_mutex_lock(&f->slow);
		hca_heap_free(&f->heap, qp->rq.line, (size_t)qp->rq.depth * qp->rq.stride);
		pthread_mutex_unlock(&f->slow);
	}
	free_shared(qp);
	hca_ud_free(qp);
	hca_batch_free(qp);
	hca_pace_free(qp);
	if (qp->sq.bytes)
		munmap(qp->sq.bytes, qp->sq.bytes_size);
	free(qp->sq.wqe);
	free(qp->sq.sge);
	free(qp->rq.wr_id);
	free(qp->rq.room);
	free(qp);
}

static void fill_base(struct hca_qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	struct ibv_qp *base = &qp->ibv.qp_base;

	base->context = pd->context;
	base->qp_context = init->qp_context;
	base->pd = pd;
	base->send_cq = init->send_cq;
	base->recv_cq = init->recv_cq;
	base->handle = qp->index;
	base->state = IBV_QPS_RESET;
	base->qp_type = init->qp_type;
	pthread_mutex_init(&base->mutex, NULL);
	pthread_cond_init(&base->cond, NULL);
}

static struct ibv_qp *create(struct ibv_pd *pd, struct ibv_qp_init_attr *init, bool batches)
{
	int rc = check_init(pd, init);
	struct hca_qp *qp;

	qp = rc ? NULL : calloc(1, sizeof(*qp));
	if (!qp) {
		errno = rc ? rc : ENOMEM;
		return NULL;
	}
	qp->fabric = hca_pd_of(pd)->fabric;
	qp->pd = hca_pd_of(pd)->id;
	qp->signal_all = init->sq_sig_all;
	qp->message.to = &qp->conn;
	qp->datagram = init->qp_type == IBV_QPT_UD;
	qp->reliable = init->qp_type == IBV_QPT_RC;
	qp->operations = hca_operations(init->qp_type);
	grant(qp, &init->cap, init->srq || qp->datagram);
	fill_base(qp, pd, init);
	rc = make_queues(qp);
	if (!rc)
		rc = make_shared(qp, init);
	if (!rc && qp->datagram)
		rc = hca_ud_make(qp);
	if (!rc && qp->fabric->spec.timed)
		rc = hca_pace_make(qp);
	if (!rc && batches)
		rc = hca_batch_make(qp);
	if (!rc)
		rc = take_index(qp);
	if (rc) {
		free_queues(qp);
		errno = rc;
		return NULL;
	}
	qp->ibv.qp_base.handle = qp->index;
	hca_lock(&qp->fabric->engine.lock);	/* not while its completion queue moves */
	publish_shape(qp);
	hca_unlock(&qp->fabric->engine.lock);
	init->cap = qp->cap;
	atomic_fetch_add(&hca_pd_of(pd)->objects, 1);
	atomic_fetch_add(&hca_send_cq(qp)->objects, 1);
	atomic_fetch_add(&hca_recv_cq(qp)->objects, 1);
	return &qp->ibv.qp_base;
}

struct ibv_qp *hca_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	return create(pd, init, false);
}

struct ibv_qp *hca_qp_create_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *init)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bool batches = init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint64_t missing = batches ? init->send_ops_flags & ~hca_batch_ops(init->qp_type) : 0;

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
	return create(init->pd, (struct ibv_qp_init_attr *)(void *)init, batches);
}

/* ---- State changes ------------------------------------------------------- */

/* Everything that was outstanding is forgotten.  engine.lock held, qp->lock not. */
static void reset(struct hca_qp *qp)
{
	struct hca_rq *rq = &qp->rq;
	uint32_t at;

	atomic_store_explicit(&qp->shm->gate, 0, memory_order_release);
	hca_lock(&qp->lock);
	qp->fast = false;
	atomic_store(&qp->state, IBV_QPS_RESET);
	hca_unlock(&qp->lock);
	hca_engine_remove(qp);
	/* A peer that was stopped within it may go on one day: what it writes to is not used again. */
	if (!hca_quiesce(qp->fabric, qp)) {
		qp->unquiet = hca_recv_cq(qp)->unquiet = true;
		if (qp->shared)
			qp->shared->unquiet = true;
	}

	hca_lock(&qp->lock);
	hca_transfer_drop(qp);
	hca_conn_drop(&qp->conn);
	hca_ud_reset(qp);
	while (qp->sq.next != qp->sq.posted)
		hca_sq_pop(qp);
	qp->sq.wait = HCA_NOT_WAITING;
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

static int check_values(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	const struct hca_spec *s = &qp->fabric->spec;

	if (((mask & IBV_QP_PORT) && (a->port_num < 1 || a->port_num > s->ports)) ||
	    ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index != 0) ||
	    ((mask & IBV_QP_ACCESS_FLAGS) && (a->qp_access_flags & ~access_all)) ||
	    ((mask & IBV_QP_PATH_MTU) &&
	     (a->path_mtu < IBV_MTU_256 || 128ull << a->path_mtu > s->mtu)) ||
	    ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > s->reads) ||
	    ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > s->reads) ||
	    ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31) ||
	    ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7) ||
	    ((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7) ||
	    ((mask & IBV_QP_TIMEOUT) && a->timeout > 31) ||
	    ((mask & IBV_QP_DEST_QPN) && a->dest_qp_num > 0xffffff))
		return EINVAL;
	return 0;
}

static void apply(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *to = &qp->attr;

	if (mask & IBV_QP_PORT) {
		struct hca_device *d = hca_context_of(qp->ibv.qp_base.context)->device;

		to->port_num = a->port_num;
		qp->address = hca_address(&qp->fabric->spec, d->node, d->hca, a->port_num);
		qp->shm->address = qp->address;
		if (qp->datagram)
			hca_mcast_moved(qp);
	}
	if (mask & IBV_QP_PKEY_INDEX)
		to->pkey_index = a->pkey_index;
	if (mask & IBV_QP_ACCESS_FLAGS) {
		to->qp_access_flags = a->qp_access_flags;
		atomic_store(&qp->shm->access, a->qp_access_flags);
	}
	if (mask & IBV_QP_QKEY)
		atomic_store(&qp->shm->qkey, to->qkey = a->qkey);
	if (mask & IBV_QP_AV)
		to->ah_attr = a->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		to->path_mtu = a->path_mtu;
	if (mask & IBV_QP_DEST_QPN) {
		to->dest_qp_num = a->dest_qp_num;
		qp->conn.qpn = a->dest_qp_num;
	}
	if (mask & IBV_QP_RQ_PSN)
		to->rq_psn = a->rq_psn & 0xffffff;
	if (mask & IBV_QP_SQ_PSN)
		to->sq_psn = a->sq_psn & 0xffffff;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
		to->max_dest_rd_atomic = a->max_dest_rd_atomic;
		qp->shm->reads = a->max_dest_rd_atomic;
	}
	if (mask & IBV_QP_MIN_RNR_TIMER) {
		to->min_rnr_timer = a->min_rnr_timer;
		atomic_store(&qp->shm->rnr_timer, a->min_rnr_timer);
	}
	if (mask & IBV_QP_TIMEOUT)
		to->timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		to->retry_cnt = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		to->rnr_retry = a->rnr_retry;
	if (mask & IBV_QP_ALT_PATH) {
		to->alt_ah_attr = a->alt_ah_attr;
		to->alt_port_num = a->alt_port_num;
		to->alt_pkey_index = a->alt_pkey_index;
		to->alt_timeout = a->alt_timeout;
	}
	if (mask & IBV_QP_PATH_MIG_STATE)
		to->path_mig_state = a->path_mig_state;
}

/* From here on the peer may send. */
static void open_gate(struct hca_qp *qp)
{
	uint32_t opened;

	if (qp->ibv.qp_base.qp_type != IBV_QPT_UD) {
		qp->listening = true;
		atomic_store(&qp->shm->first, HCA_FIRST_EXPECTED);
	}
	/* No gate looks like another that was in this place, whoever's it was. */
	opened = atomic_fetch_add(&qp->fabric->gates, 1) + 1;
	atomic_store_explicit(&qp->shm->gate, (uint64_t)opened << 32 |
			      (qp->datagram ? HCA_ANYBODY : qp->conn.qpn), memory_order_release);
}

static int change(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask, int from, int to)
{
	uint32_t address = 0;

	if (check_values(qp, a, mask))
		return EINVAL;
	if (mask & IBV_QP_AV) {
		if (a->ah_attr.port_num > qp->fabric->spec.ports ||
		    (a->ah_attr.is_global && a->ah_attr.grh.sgid_index >= HCA_GIDS))
			return EINVAL;
		if (hca_route(qp->fabric, &a->ah_attr, &address))
			return EHOSTUNREACH;
		qp->conn.address = address;
	}
	apply(qp, a, mask);
	if (qp->pace && (mask & (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_PORT)))
		hca_pace_connect(qp);
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		open_gate(qp);
	if (to == IBV_QPS_RTS)
		hca_qp_look_for_first(qp, true);
	if (from == IBV_QPS_RTS && to == IBV_QPS_SQD) {
		qp->draining = true;
		qp->drain_told = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && a->en_sqd_async_notify;
	}
	qp->fast = false;
	atomic_store(&qp->state, to);
	if (to == IBV_QPS_RTS)
		hca_fault_start(qp->fabric);
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
		rc = EINVAL;		/* an error came between */
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

	hca_engine_look(qp->fabric);	/* a peer may have brought it to the error state */
	hca_lock(&qp->fabric->engine.lock);
	rc = modify_locked(qp, attr, mask);
	hca_unlock(&qp->fabric->engine.lock);
	if (!rc && (mask & IBV_QP_STATE))
		ibv->state = attr->qp_state;
	return rc;
}

/* ---- Queries, destruction ------------------------------------------------ */

int hca_qp_query(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct hca_qp *qp = hca_qp_of(ibv);

	hca_engine_look(qp->fabric);
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

/*
 * The last eight bytes of a message come last: what memory polling needs, and
 * what "in order" is asked for.  With a timing model other bytes land before
 * their time: poll the CQ.  What the kernel copies is in order on x86 only.
 */
int hca_qp_data_in_order(struct ibv_qp *ibv, enum ibv_wr_opcode op, uint32_t flags)
{
#if !defined(__x86_64__) && !defined(__i386__)
	return 0;
#endif
	return !flags && !hca_qp_of(ibv)->pace &&
	       (op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM || op == IBV_WR_SEND ||
		op == IBV_WR_SEND_WITH_IMM);
}

void hca_qp_retried(struct hca_qp *qp, uint32_t times)
{
	struct hca_context *c = hca_context_of(qp->ibv.qp_base.context);

	atomic_fetch_add_explicit(&c->retries[qp->attr.port_num - 1], times,
				  memory_order_relaxed);
}

int hca_qp_destroy(struct ibv_qp *ibv)
{
	struct hca_qp *qp = hca_qp_of(ibv);
	struct hca_fabric *f = qp->fabric;

	if (hca_mcast_attached(qp))
		return EBUSY;
	hca_lock(&f->engine.lock);
	reset(qp);
	hca_fabric_give_qpn(f, hca_qpn(qp));
	pthread_mutex_lock(&f->slow);
	atomic_store(&f->qp[qp->index], NULL);
	pthread_mutex_unlock(&f->slow);
	/* A poller may still hold the pointer: it does so under the queue's lock. */
	hca_cq_purge(hca_recv_cq(qp), qp);
	hca_cq_purge(hca_send_cq(qp), qp);
	hca_unlock(&f->engine.lock);
	hca_event_forget_qp(qp);
	atomic_fetch_sub(&hca_recv_cq(qp)->objects, 1);
	atomic_fetch_sub(&hca_send_cq(qp)->objects, 1);
	atomic_fetch_sub(&hca_pd_of(ibv->pd)->objects, 1);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free_queues(qp);
	return 0;
}
