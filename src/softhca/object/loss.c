/* loss.c - see loss.h. */
#include "util/clock.h"
#include "softhca/object/device.h"
#include "softhca/object/loss.h"
#include "softhca/object/net.h"
#include "softhca/object/qp.h"
#include "softhca/object/query.h"

/* ---- Ports and time ------------------------------------------------------ */

void hca_loss_start(struct hca_fabric *f)
{
	uint64_t never = 0;

	if (f->spec.schedule.count)
		atomic_compare_exchange_strong(&f->shm->started_ns, &never, rg_now_ns());
}

uint64_t hca_loss_advance(struct hca_fabric *f, uint64_t now_ns)
{
	uint32_t done;
	uint64_t left_ns = hca_schedule_advance(f->shm, &f->spec, now_ns, &done);

	/* Another member may have written it: check in any case. */
	if (atomic_load(&f->changes_seen) != done &&
	    atomic_exchange(&f->changes_seen, done) != done)
		atomic_fetch_add(&f->self->attention, 1);
	return left_ns;
}

enum ibv_port_state hca_port_state(struct hca_fabric *f, uint32_t address)
{
	if (f->spec.schedule.count)
		hca_loss_advance(f, rg_now_ns());
	if (hca_is_net(f))
		hca_net_look(f, address + 1);
	return hca_port_up(f->shm, &f->spec, address) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
}

unsigned hca_port_moves(struct hca_fabric *f, uint32_t address, enum ibv_event_type type)
{
	const struct hca_schedule *s = &f->spec.schedule;
	unsigned moves = 0;

	if (!s->count)
		return 0;
	hca_loss_advance(f, rg_now_ns());
	for (uint32_t i = 0; i < atomic_load(&f->changes_seen) && i < s->count; i++) {
		const struct hca_change *c = &s->change[i];

		moves += c->moves && c->event == type &&
			 hca_address(&f->spec, c->at.node, c->at.hca, c->at.port) == address;
	}
	return moves;
}

/* ---- Messages ------------------------------------------------------------ */

/* Only this end of a path to another host is known. */
bool hca_path_up(const struct hca_fabric *f, uint32_t from, uint32_t to)
{
	return hca_port_up(f->shm, &f->spec, from) &&
	       (to == HCA_ADDRESS_REMOTE ||
		(hca_port_up(f->shm, &f->spec, to) && hca_reaches(&f->spec, from, to)));
}

static uint32_t loss_to(const struct hca_qp *qp, uint32_t to)
{
	return to == HCA_ADDRESS_REMOTE ? 0 : hca_loss_ppb(qp->fabric->shm, &qp->fabric->spec, qp->address, to);
}

bool hca_path_clear(const struct hca_qp *qp)
{
	const struct hca_fabric *f = qp->fabric;

	if (likely(!hca_is_faulty(f->shm)))
		return true;
	return qp->ibv.qp_base.qp_type != IBV_QPT_UD &&
	       hca_path_up(f, qp->address, qp->conn.address) && !loss_to(qp, qp->conn.address);
}

/* A program that repeats its operations meets the same losses again. */
static uint64_t *rng(struct hca_qp *qp)
{
	if (!qp->rng)
		qp->rng = hca_rng_first(&qp->fabric->spec, qp->address, qp->conn.address,
					qp->index);
	return &qp->rng;
}

uint32_t hca_random(struct hca_qp *qp)
{
	return hca_rng_next(rng(qp));
}

uint32_t hca_loss_first_lost(struct hca_qp *qp, uint32_t to, uint32_t packets)
{
	uint32_t ppb = loss_to(qp, to), i;

	for (i = 0; ppb && i < packets; i++)
		if (hca_rng_lost(rng(qp), ppb))
			return i;
	return packets;
}

/* UD has no path MTU, and one packet per message. */
static uint32_t packets_of(const struct hca_qp *qp, uint32_t bytes)
{
	return qp->attr.path_mtu ? hca_packets(bytes, 128u << qp->attr.path_mtu) : 1;
}

bool hca_loss_lost(struct hca_qp *qp, uint32_t to, uint32_t bytes)
{
	uint32_t packets = packets_of(qp, bytes);

	if (likely(!hca_is_faulty(qp->fabric->shm)))
		return false;
	return !hca_path_up(qp->fabric, qp->address, to) ||
	       hca_loss_first_lost(qp, to, packets) < packets;
}

void hca_qp_retried(struct hca_qp *qp, uint32_t times)
{
	struct hca_context *c = hca_context_of(qp->ibv.qp_base.context);

	atomic_fetch_add_explicit(&c->retries[qp->attr.port_num - 1], times,
				  memory_order_relaxed);
}

bool hca_loss_exhausts(struct hca_qp *qp, uint32_t bytes)
{
	uint32_t packets = packets_of(qp, bytes), ppb, again = 0, i;
	bool exhausted = false;
	unsigned losses;

	if (likely(!hca_is_faulty(qp->fabric->shm)))
		return false;
	ppb = loss_to(qp, qp->conn.address);
	for (i = 0; ppb && i < packets && !exhausted; i++)
		for (losses = 0; !exhausted && hca_rng_lost(rng(qp), ppb); losses++)
			if (losses == qp->attr.retry_cnt)
				exhausted = true;
			else
				again++;
	if (again)
		hca_qp_retried(qp, again);
	return exhausted;
}
