/* qp.c - queue pairs: their queues, their attributes, their published part. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "softhca/base/segment.h"
#include "softhca/object/device.h"
#include "softhca/object/link.h"
#include "softhca/object/mcast.h"
#include "softhca/object/net.h"
#include "softhca/object/qp.h"
#include "softhca/object/srq.h"

/*
 * IBV_ACCESS_FLUSH_GLOBAL and _PERSISTENT of rdma-core 46: programs allow them without a check of
 * the device's capabilities, and adapters without flushes accept them.
 */
enum { ACCESS_FLUSH = 1 << 8 | 1 << 9 };

static const unsigned access_all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_MW_BIND | ACCESS_FLUSH;

/* ---- Creation ------------------------------------------------------------ */

static const struct hca_personality *personality_of(const struct hca_qp *qp)
{
	return hca_context_personality(qp->ibv.qp_base.context);
}

/* Operations of the adapter. */
static uint32_t operations(const struct hca_personality *p, enum ibv_qp_type type)
{
	const uint32_t atomics = 1u << IBV_WR_ATOMIC_CMP_AND_SWP |
				 1u << IBV_WR_ATOMIC_FETCH_AND_ADD;

	if ((type == IBV_QPT_UD && p->no_ud) || (type == IBV_QPT_UC && p->no_uc))
		return 0;
	return hca_operations(type) & ~(p->no_atomics ? atomics : 0);
}

static int check_init(const struct ibv_pd *pd, const struct ibv_qp_init_attr *a)
{
	const struct hca_personality *p = hca_context_personality(pd->context);

	if (!operations(p, a->qp_type))
		return EOPNOTSUPP;
	if (!a->send_cq || !a->recv_cq || a->cap.max_send_wr > p->wr_max ||
	    a->cap.max_send_sge > p->sge_max || a->cap.max_inline_data > HCA_INLINE_MAX ||
	    a->cap.max_inline_data > p->inline_max)
		return EINVAL;
	/* Like the kernel: objects of one file only. */
	if (!hca_same_file(pd->context, a->send_cq->context) ||
	    !hca_same_file(pd->context, a->recv_cq->context) ||
	    (a->srq && !hca_same_file(pd->context, a->srq->context)))
		return EINVAL;
	/* With an SRQ, the capacities asked of the receive queue do not count. */
	if (!a->srq && (a->cap.max_recv_wr > p->wr_max || a->cap.max_recv_sge > p->sge_max))
		return EINVAL;
	return 0;
}

static uint32_t least(uint32_t value, uint64_t most)
{
	return value < most ? value : (uint32_t)most;
}

/* Granted capacities: never less than requested.  Shared receives are not in the ring. */
static void grant(struct hca_qp *qp, const struct ibv_qp_cap *asked, bool shared)
{
	const struct hca_personality *p = personality_of(qp);
	struct hca_sq *sq = &qp->sq;
	struct hca_rq *rq = &qp->rq;

	sq->depth = hca_pow2(asked->max_send_wr);
	sq->mask = sq->depth - 1;
	sq->sge_max = least(asked->max_send_sge < 4 ? 4 : asked->max_send_sge, p->sge_max);
	/* UCX sends datagrams up to the inline limit: they must fit into a packet. */
	sq->inline_max = qp->datagram ? hca_port_mtu(qp->fabric, 0) : HCA_INLINE_GRANT;
	if (sq->inline_max < asked->max_inline_data || p->inline_max != HCA_NONE)
		sq->inline_max = asked->max_inline_data;
	sq->short_max = qp->operations & 1u << IBV_WR_RDMA_WRITE ? sq->inline_max : 0;
	rq->depth = shared ? 1 : hca_pow2(asked->max_recv_wr);
	rq->mask = rq->depth - 1;
	rq->stride = hca_rq_stride(shared ? 0 : asked->max_recv_sge, &rq->sge_max);
	rq->sge_max = least(rq->sge_max, p->sge_max);
	qp->cap = (struct ibv_qp_cap){
		.max_send_wr = least(sq->depth, p->wr_max),
		.max_recv_wr = shared ? 0 : least(rq->depth, p->wr_max),
		.max_send_sge = sq->sge_max, .max_recv_sge = shared ? 0 : rq->sge_max,
		.max_inline_data = sq->inline_max,
	};
}

/* The queues' memory; untouched pages cost address space only. */
static int qp_make_queues(struct hca_qp *qp)
{
	struct hca_fabric *f = qp->fabric;
	struct hca_sq *sq = &qp->sq;
	struct hca_rq *rq = &qp->rq;
	void *ring;
	int rc;

	sq->bytes_size = (size_t)(sq->depth + 1) * hca_align_up(sq->inline_max ? sq->inline_max : 1, 8);
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

/* Shared receives: an SRQ's, or a queue pair's to which any sender may send. */
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

/* The words that hca_qp_publish leaves as they are.  Peers of the last holder may still look at it. */
static void clear_published(struct hca_shm_qp *shm)
{
	hca_put(shm->accept, 0);
	hca_put(shm->access, 0);
	hca_put(shm->rnr_timer, 0);
	hca_put(shm->qkey, 0);
	hca_put(shm->address, 0);
	hca_put(shm->shared_line, 0);
	hca_put(shm->reads, 0);
	hca_put(shm->pkey, 0);
	hca_put(shm->rq_head, 0);
	hca_put(shm->fault, 0);
	hca_put(shm->first, HCA_FIRST_IGNORED);
	hca_put(shm->access_section, 0);
}

int hca_qp_claim_index(struct hca_qp *qp)
{
	struct hca_device *d = hca_context_of(qp->ibv.qp_base.context)->device;
	struct hca_fabric *f = qp->fabric;
	uint32_t i;

	pthread_mutex_lock(&f->slow);
	for (i = d->qps < personality_of(qp)->qps ? 0 : HCA_QPS_MAX;
	     i < HCA_QPS_MAX && atomic_load(&f->qp[i]); i++)
		;
	if (i < HCA_QPS_MAX) {
		uint32_t qpn =
		    hca_segment_reserve(f->self_fd,
					offsetof(struct hca_shm_process, qp) + i * sizeof(*qp->shm),
					sizeof(*qp->shm))
			? 0
			: f->link->number_claim(f, i);

		if (qpn) {
			qp->index = i;
			qp->shm = &f->self->qp[i];
			clear_published(qp->shm);
			qp->ibv.qp_base.qp_num = qpn;
			atomic_store(&f->qp[i], qp);
			d->qps++;
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

void hca_qp_publish(struct hca_qp *qp)
{
	hca_put(qp->shm->wakeup[0], hca_context_of(qp->ibv.qp_base.context)->events.wakeup.number);
	hca_put(qp->shm->wakeup[1], hca_cq_wakeup(hca_send_cq(qp)));
	hca_put(qp->shm->wakeup[2], hca_cq_wakeup(hca_recv_cq(qp)));
	hca_put(qp->shm->qpn, hca_qpn(qp));
	hca_put(qp->shm->pd, qp->pd);
	hca_put(qp->shm->rq_pd, qp->pd);
	if (qp->shared) {
		hca_put(qp->shm->rq_line, qp->shared->line);
		hca_put(qp->shm->rq_count, qp->shared->depth);
		hca_put(qp->shm->rq_stride, qp->shared->view.stride);
		hca_put(qp->shm->rq_pd, qp->shared->pd);
		hca_put(qp->shm->shared_line, qp->shared->shm_line);
	} else {
		hca_put(qp->shm->rq_line, qp->rq.line);
		hca_put(qp->shm->rq_count, qp->rq.depth);
		hca_put(qp->shm->rq_stride, qp->rq.stride);
	}
	hca_qp_tell_cq(qp);
}

void hca_qp_free(struct hca_qp *qp)
{
	struct hca_fabric *f = qp->fabric;

	if (qp->rq.ring && !qp->unquiet) {
		pthread_mutex_lock(&f->slow);
		hca_heap_free(&f->heap, qp->rq.line, (size_t)qp->rq.depth * qp->rq.stride);
		pthread_mutex_unlock(&f->slow);
	}
	free_shared(qp);
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

int hca_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr *init, struct hca_qp **out)
{
	int rc = check_init(pd, init);
	struct hca_qp *qp;

	if (rc)
		return rc;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return ENOMEM;
	qp->fabric = hca_pd_of(pd)->fabric;
	qp->pd = hca_pd_of(pd)->id;
	qp->signal_all = init->sq_sig_all;
	qp->message.to = &qp->conn;
	qp->datagram = init->qp_type == IBV_QPT_UD;
	qp->link = hca_qp_first_link(qp);
	qp->reliable = init->qp_type == IBV_QPT_RC;
	fill_base(qp, pd, init);
	qp->operations = operations(personality_of(qp), init->qp_type);
	grant(qp, &init->cap, init->srq || qp->datagram);
	rc = qp_make_queues(qp);
	if (!rc)
		rc = make_shared(qp, init);
	if (rc) {
		hca_qp_free(qp);
		return rc;
	}
	*out = qp;
	return 0;
}

/* ---- Attributes ---------------------------------------------------------- */

int hca_qp_check_values(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	const struct hca_spec *s = &qp->fabric->spec;
	const struct hca_personality *p = personality_of(qp);
	const uint32_t mtu = hca_port_mtu(qp->fabric, qp->attr.port_num);
	const uint32_t port = mask & IBV_QP_PORT ? a->port_num : qp->attr.port_num;

	if (((mask & IBV_QP_PORT) && (port < 1 || port > s->ports)) ||
	    ((mask & IBV_QP_PKEY_INDEX) && (!port || a->pkey_index >= p->pkeys[port - 1])) ||
	    ((mask & IBV_QP_ACCESS_FLAGS) && (a->qp_access_flags & ~access_all)) ||
	    ((mask & IBV_QP_PATH_MTU) &&
	     (a->path_mtu < IBV_MTU_256 || 128ull << a->path_mtu > mtu)) ||
	    ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > hca_rd_init(s, p)) ||
	    ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > hca_rd_atom(s, p)) ||
	    ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31) ||
	    ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7) ||
	    ((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7) ||
	    ((mask & IBV_QP_TIMEOUT) && a->timeout > 31) ||
	    ((mask & IBV_QP_DEST_QPN) && a->dest_qp_num > 0xffffff))
		return EINVAL;
	return 0;
}

void hca_qp_apply(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *to = &qp->attr;

	if (mask & IBV_QP_PORT) {
		struct hca_device *d = hca_context_of(qp->ibv.qp_base.context)->device;

		to->port_num = a->port_num;
		qp->address = hca_address(&qp->fabric->spec, d->node, d->hca, a->port_num);
		hca_put(qp->shm->address, qp->address);
		if (qp->datagram)
			hca_mcast_moved(qp);
	}
	if (mask & IBV_QP_PKEY_INDEX)
		to->pkey_index = a->pkey_index;
	if (mask & (IBV_QP_PKEY_INDEX | IBV_QP_PORT))
		hca_put(qp->shm->pkey, hca_qp_pkey(qp));
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
		hca_put(qp->shm->reads, a->max_dest_rd_atomic);
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

uint16_t hca_qp_pkey(const struct hca_qp *qp)
{
	const struct hca_personality *p = personality_of(qp);
	const uint32_t port = qp->attr.port_num;

	return port && qp->attr.pkey_index < p->pkeys[port - 1]
		       ? p->pkey[port - 1][qp->attr.pkey_index] : 0;
}

/* ---- Queries ------------------------------------------------------------- */

/*
 * The last eight bytes of a write are stored last, in mapped memory, by the kernel, by the copy
 * service and from a wire, which memory polling needs and "in order" promises.  Of other messages
 * only a processor that stores in program order shows so much.  With a timing model other bytes
 * are written before their time: it promises nothing unless order=timed, where a program may poll the end
 * alone.
 */
static bool order_is_said(const struct hca_qp *qp)
{
	const struct hca_personality *p = personality_of(qp);
	const int state = hca_qp_state(qp);

	return !p->late && p->order != HCA_ORDER_NEVER &&
	       (!qp->pace || p->order == HCA_ORDER_TIMED) &&
	       (p->order != HCA_ORDER_RTS || state == IBV_QPS_RTS || state == IBV_QPS_SQD);
}

int hca_qp_data_in_order(struct ibv_qp *ibv, enum ibv_wr_opcode op, uint32_t flags)
{
	if (!HCA_STORES_IN_ORDER && op != IBV_WR_RDMA_WRITE)
		return 0;
	return !flags && order_is_said(hca_qp_of(ibv)) &&
	       (op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM || op == IBV_WR_SEND ||
		op == IBV_WR_SEND_WITH_IMM);
}
