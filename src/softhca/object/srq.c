/* srq.c - shared receive queues. */
#include <stdlib.h>

#include "softhca/object/device.h"
#include "softhca/object/event.h"
#include "softhca/object/qp.h"
#include "softhca/object/srq.h"

/* Count one more; false: the adapter has no more. */
static bool srq_count(struct hca_context *c, const struct hca_personality *p)
{
	bool fits;

	pthread_mutex_lock(&c->fabric->slow);
	fits = c->device->srqs < p->srqs;
	c->device->srqs += fits;
	pthread_mutex_unlock(&c->fabric->slow);
	return fits;
}

static void srq_uncount(struct hca_context *c)
{
	pthread_mutex_lock(&c->fabric->slow);
	c->device->srqs--;
	pthread_mutex_unlock(&c->fabric->slow);
}

static uint32_t least(uint32_t value, uint64_t most)
{
	return value < most ? value : (uint32_t)most;
}

struct ibv_srq *hca_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct hca_context *context = hca_context_of(pd->context);
	const struct hca_personality *p = hca_context_personality(pd->context);
	struct hca_fabric *f = context->fabric;
	struct hca_srq *srq;
	int rc = 0;

	if (!p->srqs)
		rc = EOPNOTSUPP;
	else if (!init->attr.max_wr || init->attr.max_wr > p->srq_wr ||
		 init->attr.max_sge > p->sge_max)
		rc = EINVAL;
	else if (!srq_count(context, p))
		rc = ENOMEM;
	srq = rc ? NULL : calloc(1, sizeof(*srq));
	if (!srq) {
		if (!rc)
			srq_uncount(context);
		errno = rc ? rc : ENOMEM;
		return NULL;
	}
	rc = hca_shared_make(&srq->shared, f, hca_pd_of(pd)->id, init->attr.max_wr,
			     init->attr.max_sge);
	if (rc) {
		hca_shared_free(&srq->shared);
		free(srq);
		srq_uncount(context);
		errno = rc;
		return NULL;
	}
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = pd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	pthread_mutex_lock(&f->slow);
	srq->number = ++f->srq_last;
	hca_list_add(&context->srqs, &srq->link);
	pthread_mutex_unlock(&f->slow);
	srq->ibv.handle = srq->number;
	init->attr.max_wr = least(srq->shared.depth, p->srq_wr);
	init->attr.max_sge = least(srq->shared.sge_max, p->sge_max);
	atomic_fetch_add(&hca_pd_of(pd)->objects, 1);
	return &srq->ibv;
}

struct ibv_srq *hca_srq_create_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *init)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;

	if ((init->comp_mask & ~known) ||
	    ((init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && init->srq_type != IBV_SRQT_BASIC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	/* The extended structure begins with the plain one. */
	return hca_srq_create(init->pd, (struct ibv_srq_init_attr *)(void *)init);
}

/* The size is fixed: IBV_DEVICE_SRQ_RESIZE is not among the capabilities. */
int hca_srq_modify(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct hca_shared *s = &hca_srq_of(ibv)->shared;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR)
		return EOPNOTSUPP;
	if (mask & IBV_SRQ_LIMIT) {
		if (attr->srq_limit > s->depth)
			return EINVAL;
		atomic_store(&s->view.shm->limit_reached, 0);
		atomic_store(&s->view.shm->limit, attr->srq_limit);
	}
	return 0;
}

int hca_srq_query(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct hca_shared *s = &hca_srq_of(ibv)->shared;

	*attr = (struct ibv_srq_attr){ .max_wr = s->depth, .max_sge = s->sge_max,
				       .srq_limit = atomic_load(&s->view.shm->limit) };
	return 0;
}

int hca_srq_number(struct ibv_srq *ibv, uint32_t *number)
{
	*number = hca_srq_of(ibv)->number;
	return 0;
}

int hca_srq_destroy(struct ibv_srq *ibv)
{
	struct hca_srq *srq = hca_srq_of(ibv);
	struct hca_fabric *f = srq->shared.fabric;

	/* Without queue pairs, no process can claim from it. */
	if (atomic_load(&srq->objects))
		return EBUSY;
	hca_event_forget_srq(srq);
	pthread_mutex_lock(&f->slow);
	hca_list_remove(&srq->link);
	pthread_mutex_unlock(&f->slow);
	atomic_fetch_sub(&hca_pd_of(ibv->pd)->objects, 1);
	srq_uncount(hca_context_of(ibv->context));
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	hca_shared_free(&srq->shared);
	free(srq);
	return 0;
}

int hca_srq_post(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return hca_shared_post(&hca_srq_of(ibv)->shared, wr, bad);
}
