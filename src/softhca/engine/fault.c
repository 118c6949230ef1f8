/* fault.c - ports that go down and come back, packets that get lost. */
#include "clock.h"
#include "object/device.h"
#include "engine/engine.h"
#include "object/event.h"
#include "engine/fault.h"
#include "model/model.h"

/* Before the first queue pair is ready nothing is known: look again after so long. */
enum { NOT_STARTED_NS = 1000000 };

/* ---- Ports, in shared memory --------------------------------------------- */

struct hca_shm_port *hca_shm_port_of(struct hca_shm_fabric *shm, const struct hca_spec *s,
				     const struct hca_port_name *name)
{
	return &shm->adapter[name->node * HCA_HCAS_MAX + name->hca].fault[name->port - 1];
}

bool hca_port_change(struct hca_shm_fabric *shm, struct hca_shm_port *p, bool down,
		     uint64_t when_ns)
{
	uint64_t state = atomic_load(&p->state);

	if (down)
		atomic_store(&shm->faulty, 1);
	do {
		if (hca_port_is_down(state) == down || state >> 1 > when_ns)
			return false;
	} while (!atomic_compare_exchange_weak(&p->state, &state, when_ns << 1 | down));
	return true;
}

void hca_port_lose(struct hca_shm_fabric *shm, struct hca_shm_port *p, uint32_t loss_ppb)
{
	if (loss_ppb)
		atomic_store(&shm->faulty, 1);
	atomic_store(&p->loss_ppb, loss_ppb < HCA_ALL_PPB ? loss_ppb : HCA_ALL_PPB);
}

static struct hca_shm_port *port_at(const struct hca_fabric *f, uint32_t address)
{
	uint32_t port;
	struct hca_shm_adapter *a = hca_adapter(f, address, &port);

	return &a->fault[port - 1];
}

/* Was anything ever wrong with a port of the fabric? */
static bool is_faulty(const struct hca_fabric *f)
{
	return atomic_load_explicit(&f->shm->faulty, memory_order_acquire);
}

static bool is_up(const struct hca_fabric *f, uint32_t address)
{
	return !hca_port_is_down(atomic_load_explicit(&port_at(f, address)->state,
						      memory_order_relaxed));
}

enum ibv_port_state hca_port_state(struct hca_fabric *f, uint32_t address)
{
	if (f->spec.schedule.count)
		hca_fault_advance(f, rg_now_ns());
	return is_up(f, address) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
}

/* ---- Time ---------------------------------------------------------------- */

void hca_fault_start(struct hca_fabric *f)
{
	uint64_t never = 0;

	if (f->spec.schedule.count)
		atomic_compare_exchange_strong(&f->shm->started_ns, &never, rg_now_ns());
}

/*
 * Each change is written before it is counted: who dies in between leaves it
 * to be written again, which changes nothing.
 */
uint64_t hca_fault_advance(struct hca_fabric *f, uint64_t now_ns)
{
	const struct hca_schedule *s = &f->spec.schedule;
	uint32_t done = atomic_load(&f->shm->changes_done);
	uint64_t start = atomic_load(&f->shm->started_ns);
	unsigned looks;

	/* Bounded, whatever others make of the count. */
	for (looks = 0; start && done < s->count && looks < 2 * HCA_CHANGES_MAX; looks++) {
		const struct hca_change *c = &s->change[done];

		if (!rg_reached(start + c->when_ns, now_ns))
			break;
		hca_port_change(f->shm, hca_shm_port_of(f->shm, &f->spec, &c->at), !c->up,
				start + c->when_ns);
		atomic_compare_exchange_strong(&f->shm->changes_done, &done, done + 1);
		done = atomic_load(&f->shm->changes_done);
	}
	/* Perhaps another member has written it: look in any case. */
	if (atomic_load(&f->changes_seen) != done &&
	    atomic_exchange(&f->changes_seen, done) != done)
		atomic_fetch_add(&f->self->attention, 1);
	if (done >= s->count)
		return UINT64_MAX;
	return start ? start + s->change[done].when_ns - now_ns : NOT_STARTED_NS;
}

/* ---- Looking ------------------------------------------------------------- */

void hca_fault_begin(struct hca_device *d)
{
	uint32_t port;

	for (port = 1; port <= d->fabric->spec.ports; port++) {
		uint32_t at = hca_address(&d->fabric->spec, d->node, d->hca, port);

		d->port_seen[port - 1] = atomic_load(&port_at(d->fabric, at)->state);
	}
}

static void tell_users(struct hca_device *d, uint32_t port, bool down)
{
	hca_event_port(d->fabric, d->node, d->hca, (uint8_t)port,
		       down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
}

static void look_at_port(struct hca_device *d, uint32_t port)
{
	uint32_t at = hca_address(&d->fabric->spec, d->node, d->hca, port);
	uint64_t state = atomic_load(&port_at(d->fabric, at)->state);
	uint64_t before = d->port_seen[port - 1];

	if (state == before)
		return;
	d->port_seen[port - 1] = state;
	/* Changed, and changed back since the last look. */
	if (hca_port_is_down(before) == hca_port_is_down(state))
		tell_users(d, port, !hca_port_is_down(state));
	tell_users(d, port, hca_port_is_down(state));
}

static void look_at_ports(struct hca_fabric *f)
{
	struct hca_device *d;
	uint32_t port;

	/* Devices are only ever added, before the first. */
	pthread_mutex_lock(&f->slow);
	d = f->devices;
	pthread_mutex_unlock(&f->slow);
	for (; d; d = d->next)
		for (port = 1; port <= f->spec.ports; port++)
			look_at_port(d, port);
}

/* Off the fast path; if the way is down, its peer is to be looked for. */
static void look_at_way(struct hca_qp *qp)
{
	hca_lock(&qp->lock);
	if (hca_qp_state(qp) >= IBV_QPS_RTR && !qp->pace && !hca_way_clear(qp)) {
		qp->fast = false;
		if (!hca_way_up(qp->fabric, qp->address, qp->conn.address))
			qp->conn.shm = NULL;
	}
	hca_unlock(&qp->lock);
}

void hca_fault_look(struct hca_fabric *f)
{
	uint32_t i, top = atomic_load(&f->qp_top);

	if (!is_faulty(f))
		return;
	look_at_ports(f);
	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (qp)
			look_at_way(qp);
	}
}

/* ---- Ways ---------------------------------------------------------------- */

bool hca_way_up(const struct hca_fabric *f, uint32_t from, uint32_t to)
{
	return is_up(f, from) && is_up(f, to);
}

static uint32_t loss_at(const struct hca_fabric *f, uint32_t address)
{
	uint32_t ppb = atomic_load_explicit(&port_at(f, address)->loss_ppb, memory_order_relaxed);

	return ppb < HCA_ALL_PPB ? ppb : HCA_ALL_PPB;	/* whoever wrote it */
}

/* The chance that a packet is lost. */
static uint32_t loss_of(const struct hca_fabric *f, uint32_t from, uint32_t to)
{
	const uint64_t all = HCA_ALL_PPB;
	uint64_t kept = all - f->spec.loss_ppb;

	kept = kept * (all - loss_at(f, from)) / all;
	kept = kept * (all - loss_at(f, to)) / all;
	return (uint32_t)(all - kept);
}

bool hca_way_clear(const struct hca_qp *qp)
{
	const struct hca_fabric *f = qp->fabric;

	if (hca_likely(!is_faulty(f)))
		return true;
	return qp->ibv.qp_base.qp_type != IBV_QPT_UD &&
	       hca_way_up(f, qp->address, qp->conn.address) &&
	       !loss_of(f, qp->address, qp->conn.address);
}

/* ---- Dice ---------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014): each state gives one well-mixed number. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The same program meets the same fate again, as far as it does the same. */
static uint64_t first_state(const struct hca_qp *qp)
{
	uint64_t ends = (uint64_t)qp->address << 32 | qp->conn.address;

	return mix(mix(mix(qp->fabric->spec.seed + 1) ^ ends) ^ qp->index) | 1;
}

uint32_t hca_random(struct hca_qp *qp)
{
	if (!qp->dice)
		qp->dice = first_state(qp);
	qp->dice += 0x9e3779b97f4a7c15ull;
	return (uint32_t)(mix(qp->dice) >> 32);
}

static bool falls(struct hca_qp *qp, uint32_t ppb)
{
	return (uint64_t)hca_random(qp) * HCA_ALL_PPB >> 32 < ppb;
}

uint32_t hca_fault_first_lost(struct hca_qp *qp, uint32_t to, uint32_t packets)
{
	uint32_t ppb = loss_of(qp->fabric, qp->address, to), i;

	for (i = 0; ppb && i < packets; i++)
		if (falls(qp, ppb))
			return i;
	return packets;
}

/* UD has no MTU of its own, and one packet. */
static uint32_t packets_of(const struct hca_qp *qp, uint32_t bytes)
{
	return qp->attr.path_mtu ? hca_packets(bytes, 128u << qp->attr.path_mtu) : 1;
}

bool hca_fault_lost(struct hca_qp *qp, uint32_t to, uint32_t bytes)
{
	uint32_t packets = packets_of(qp, bytes);

	if (hca_likely(!is_faulty(qp->fabric)))
		return false;
	return !hca_way_up(qp->fabric, qp->address, to) ||
	       hca_fault_first_lost(qp, to, packets) < packets;
}

bool hca_fault_exhausts(struct hca_qp *qp, uint32_t bytes)
{
	uint32_t packets = packets_of(qp, bytes), ppb, again = 0, i;
	bool exhausted = false;
	unsigned losses;

	if (hca_likely(!is_faulty(qp->fabric)))
		return false;
	ppb = loss_of(qp->fabric, qp->address, qp->conn.address);
	for (i = 0; ppb && i < packets && !exhausted; i++)
		for (losses = 0; !exhausted && falls(qp, ppb); losses++)
			if (losses == qp->attr.retry_cnt)
				exhausted = true;
			else
				again++;
	if (again)
		hca_qp_retried(qp, again);
	return exhausted;
}
