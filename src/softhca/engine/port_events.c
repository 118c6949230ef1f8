/* port_events.c - see port_events.h. */
#include "softhca/engine/port_events.h"

#include "softhca/object/device.h"
#include "softhca/object/event.h"
#include "softhca/object/loss.h"
#include "softhca/object/qp.h"

static void tell_users(struct hca_device *d, uint32_t port, bool down)
{
	hca_event_port(d->fabric, d->node, d->hca, (uint8_t)port,
		       down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
}

static void check_port(struct hca_device *d, uint32_t port)
{
	uint64_t state = hca_device_port_word(d, port);
	uint64_t before = d->port_seen[port - 1];

	if (state == before)
		return;
	d->port_seen[port - 1] = state;
	/* Changed, and changed back since the last check. */
	if (hca_port_is_down(before) == hca_port_is_down(state))
		tell_users(d, port, !hca_port_is_down(state));
	tell_users(d, port, hca_port_is_down(state));
}

static void check_ports(struct hca_fabric *f)
{
	struct hca_device *d;
	uint32_t port;

	/* Devices are only added, before the first. */
	pthread_mutex_lock(&f->slow);
	d = f->devices;
	pthread_mutex_unlock(&f->slow);
	for (; d; d = d->next)
		for (port = 1; port <= f->spec.ports; port++)
			check_port(d, port);
}

/* Events of the schedule that change no port, and those of an adapter that fails. */
static void tell_scheduled(struct hca_fabric *f)
{
	const struct hca_schedule *s = &f->spec.schedule;
	const uint32_t done = atomic_load(&f->changes_seen);

	for (; f->changes_told < done && f->changes_told < s->count; f->changes_told++) {
		const struct hca_change *c = &s->change[f->changes_told];

		if (c->kind == HCA_CHANGE_FATAL || c->kind == HCA_CHANGE_EVENT)
			hca_event_port(f, c->at.node, c->at.hca, (uint8_t)c->at.port,
				       c->kind == HCA_CHANGE_FATAL ? IBV_EVENT_DEVICE_FATAL :
				       (enum ibv_event_type)c->event);
	}
}

/* Leave the fast path; if the path is down, the peer must be resolved again. */
static void check_path(struct hca_qp *qp)
{
	hca_lock(&qp->lock);
	if (hca_qp_state(qp) >= IBV_QPS_RTR && !qp->pace && !hca_qp_on_wire(qp) &&
	    !hca_path_clear(qp)) {
		qp->fast = false;
		if (!hca_path_up(qp->fabric, qp->address, qp->conn.address))
			qp->conn.shm = NULL;
	}
	hca_unlock(&qp->lock);
}

void hca_port_events_handle(struct hca_fabric *f)
{
	uint32_t i, top = atomic_load(&f->qp_top);

	tell_scheduled(f);
	if (!hca_is_faulty(f->shm))
		return;
	check_ports(f);
	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (qp)
			check_path(qp);
	}
}
