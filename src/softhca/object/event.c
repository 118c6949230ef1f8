/* event.c - see event.h. */
#include "softhca/object/event.h"

#include <stdlib.h>

#include "softhca/object/device.h"
#include "softhca/object/cq.h"
#include "softhca/object/qp.h"
#include "softhca/object/srq.h"

struct hca_event {
	struct hca_event *next;
	void *object;			/* NULL: a port */
	struct ibv_async_event event;
};

/* The number of delivered events of an object, which must be acknowledged. */
struct hca_reported {
	struct hca_reported *next;
	void *object;
	uint32_t count;
};

static struct hca_events *events_of(struct ibv_context *c)
{
	return &hca_context_of(c)->events;
}

/* ---- Raising ------------------------------------------------------------- */

static void raise_event(struct ibv_context *c, void *object, struct ibv_async_event event)
{
	struct hca_events *q = events_of(c);
	struct hca_event *e = malloc(sizeof(*e));

	if (!e)
		return;		/* no memory for the event; the object is in its state */
	*e = (struct hca_event){ .object = object, .event = event };
	hca_lock(&q->lock);
	*q->last = e;
	q->last = &e->next;
	hca_wakeup_send(&q->wakeup);
	hca_unlock(&q->lock);
}

void hca_event_qp(struct hca_qp *qp, enum ibv_event_type type)
{
	struct ibv_qp *ibv = &qp->ibv.qp_base;

	raise_event(ibv->context, ibv,
		    (struct ibv_async_event){ .element.qp = ibv, .event_type = type });
}

void hca_event_cq(struct hca_cq *cq, enum ibv_event_type type)
{
	struct ibv_cq *ibv = (struct ibv_cq *)&cq->ibv;

	raise_event(ibv->context, ibv,
		    (struct ibv_async_event){ .element.cq = ibv, .event_type = type });
}

void hca_event_srq(struct hca_srq *srq, enum ibv_event_type type)
{
	struct ibv_srq *ibv = (struct ibv_srq *)(void *)srq;

	raise_event(ibv->context, ibv,
		    (struct ibv_async_event){ .element.srq = ibv, .event_type = type });
}

void hca_event_port(struct hca_fabric *f, uint32_t node, uint32_t hca, uint8_t port,
		    enum ibv_event_type type)
{
	struct hca_list_node *l;

	pthread_mutex_lock(&f->slow);
	for (l = f->contexts; l; l = l->next) {
		struct hca_context *c = hca_container(l, struct hca_context, link);

		if (c->device->node == node && c->device->hca == hca)
			raise_event(&c->verbs.context, NULL, (struct ibv_async_event){
				.element.port_num = port, .event_type = type });
	}
	pthread_mutex_unlock(&f->slow);
}

/* ---- Delivery ------------------------------------------------------------ */

static struct hca_reported **find_reported(struct hca_events *q, const void *object)
{
	struct hca_reported **r = &q->reported;

	while (*r && (*r)->object != object)
		r = &(*r)->next;
	return r;
}

/* Count an event that must be acknowledged; false: no memory. */
static bool event_report(struct hca_events *q, void *object)
{
	struct hca_reported **r = find_reported(q, object);

	if (!*r) {
		*r = calloc(1, sizeof(**r));
		if (!*r)
			return false;
		(*r)->object = object;
	}
	(*r)->count++;
	return true;
}

bool hca_events_take(struct ibv_context *c, struct ibv_async_event *event)
{
	const struct hca_fabric *f = hca_context_of(c)->fabric;
	struct hca_events *q = events_of(c);
	struct hca_event *e;
	bool taken = false;

	hca_lock(&q->lock);
	e = q->first;
	if (e && (!e->object || event_report(q, e->object))) {
		*event = e->event;
		q->first = e->next;
		if (!q->first)
			q->last = &q->first;
		free(e);
		taken = true;
	}
	/* The wake-up is readable while an event is queued, and otherwise not, if possible. */
	hca_wakeup_drain(&q->wakeup);
	if (q->first || hca_fabric_told(f))
		hca_wakeup_send(&q->wakeup);
	hca_unlock(&q->lock);
	return taken;
}

/* ---- Acknowledgement and removal ----------------------------------------- */

struct ibv_context *hca_event_context(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->context;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp->context;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq->context;
	case IBV_EVENT_WQ_FATAL:
		return event->element.wq->context;
	default:
		return NULL;
	}
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

void hca_event_ack(struct ibv_async_event *event)
{
	struct ibv_srq *srq = event->element.srq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_cq *cq = event->element.cq;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	default:
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
	}
}

/* Withdraw queued events; returns the number of delivered ones. */
static uint32_t events_withdraw(struct hca_fabric *f, struct hca_events *q, const void *object)
{
	struct hca_reported **r, *gone;
	struct hca_event **at = &q->first, *e;
	uint32_t count;

	hca_lock(&q->lock);
	while ((e = *at)) {
		if (e->object == object) {
			*at = e->next;
			free(e);
		} else {
			at = &e->next;
		}
	}
	q->last = at;
	if (!q->first) {
		/* A peer may have sent a wake-up: a sleeper must still check for its cause. */
		hca_wakeup_drain(&q->wakeup);
		if (hca_fabric_told(f))
			hca_wakeup_send(&q->wakeup);
	}
	r = find_reported(q, object);
	gone = *r;
	count = gone ? gone->count : 0;
	if (gone) {
		*r = gone->next;
		free(gone);
	}
	if (q->closing)
		count = 0;
	hca_unlock(&q->lock);
	return count;
}

static void forget(struct ibv_context *c, const void *object, pthread_mutex_t *mutex,
		   pthread_cond_t *cond, const uint32_t *completed)
{
	uint32_t reported = events_withdraw(hca_context_of(c)->fabric, events_of(c), object);

	if (!reported)
		return;
	pthread_mutex_lock(mutex);
	while (*completed != reported)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

void hca_event_forget_qp(struct hca_qp *qp)
{
	struct ibv_qp *ibv = &qp->ibv.qp_base;

	forget(ibv->context, ibv, &ibv->mutex, &ibv->cond, &ibv->events_completed);
}

void hca_event_forget_cq(struct hca_cq *cq)
{
	struct ibv_cq *ibv = (struct ibv_cq *)&cq->ibv;

	forget(ibv->context, ibv, &ibv->mutex, &ibv->cond, &ibv->async_events_completed);
}

void hca_event_forget_srq(struct hca_srq *srq)
{
	struct ibv_srq *ibv = (struct ibv_srq *)(void *)srq;

	forget(ibv->context, ibv, &ibv->mutex, &ibv->cond, &ibv->events_completed);
}

/* ---- A context's queue --------------------------------------------------- */

int hca_events_make(struct ibv_context *c, uint32_t adapter)
{
	struct hca_events *q = events_of(c);
	int rc = hca_wakeup_make(hca_context_of(c)->fabric, adapter, &q->wakeup);

	if (rc)
		return rc;
	q->last = &q->first;
	c->async_fd = q->wakeup.fd;
	return 0;
}

void hca_events_close(struct ibv_context *c)
{
	struct hca_events *q = events_of(c);

	hca_lock(&q->lock);
	q->closing = true;
	hca_unlock(&q->lock);
}

void hca_events_free(struct ibv_context *c)
{
	struct hca_events *q = events_of(c);
	struct hca_reported *r;
	struct hca_event *e;

	while ((e = q->first)) {
		q->first = e->next;
		free(e);
	}
	while ((r = q->reported)) {
		q->reported = r->next;
		free(r);
	}
	hca_wakeup_free(hca_context_of(c)->fabric, &q->wakeup);
}
