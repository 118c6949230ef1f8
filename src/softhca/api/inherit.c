/* inherit.c - see inherit.h. */
#include "softhca/api/inherit.h"

#include <string.h>

#include "softhca/object/cq.h"
#include "softhca/object/device.h"
#include "softhca/object/dm.h"
#include "softhca/object/qp.h"
#include "softhca/object/query.h"

/* ---- The verbs that inline functions of verbs.h call directly ------------ */

static int inherited_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	return 0;
}

static int inherited_start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	return ENOENT;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return EIO;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	return EIO;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return EIO;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return EIO;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	errno = EIO;
	return NULL;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	return EIO;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	return 0;
}

static void make_inert(struct hca_context *c)
{
	struct verbs_context *v = &c->verbs;
	struct hca_list_node *l;

	v->context.ops.poll_cq = inherited_poll_cq;
	v->context.ops.req_notify_cq = req_notify_cq;
	v->context.ops.post_send = post_send;
	v->context.ops.post_recv = post_recv;
	v->context.ops.post_srq_recv = post_srq_recv;
	v->context.ops.alloc_mw = alloc_mw;
	v->context.ops.bind_mw = bind_mw;
	v->context.ops.dealloc_mw = dealloc_mw;
	/* Without an extended verb libibverbs says EOPNOTSUPP. */
	memset(v, 0, offsetof(struct verbs_context, sz));
	/* The device's capabilities are the same; the function uses only memory of this process. */
	v->query_device_ex = hca_query_device_ex;
	v->alloc_dm = hca_dm_alloc;
	v->free_dm = hca_dm_free;
	for (l = c->dms; l; l = l->next)
		hca_container(l, struct hca_dm, link)->inherited = true;
	for (l = c->cqs; l; l = l->next)
		hca_container(l, struct hca_cq, link)->ibv.start_poll = inherited_start_poll;
}

/* ---- ibv_wr_* ------------------------------------------------------------ */

static void inherited_wr_start(struct ibv_qp_ex *qp)
{
}

static int inherited_wr_complete(struct ibv_qp_ex *qp)
{
	return EIO;
}

/* Requests between start and complete go to private memory, so only these need replacing. */
static void stop_batches(struct hca_qp *qp)
{
	qp->ibv.wr_start = inherited_wr_start;
	qp->ibv.wr_abort = inherited_wr_start;
	qp->ibv.wr_complete = inherited_wr_complete;
}

void hca_inherit(struct hca_fabric *f)
{
	uint32_t i, top = atomic_load(&f->qp_top);
	struct hca_list_node *l;

	f->inherited = true;
	pthread_mutex_init(&f->slow, NULL);	/* another thread may have held it */
	for (l = f->contexts; l; l = l->next)
		make_inert(hca_container(l, struct hca_context, link));
	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (qp)
			stop_batches(qp);
	}
}
