/* about.c - softhca.h: queries about a software device. */
#include <string.h>

#include "util/clock.h"
#include "softhca/model/fidelity.h"
#include "softhca/object/ah.h"
#include "softhca/object/device.h"
#include "softhca/object/link.h"
#include "softhca/object/loss.h"
#include "softhca/object/net.h"
#include "softhca/object/qp.h"
#include "softhca/object/query.h"
#include "softhca/softhca.h"

HCA_EXPORT bool softhca_is_device(const struct ibv_device *device)
{
	return hca_device_is_ours(device);
}

HCA_EXPORT int softhca_query_model(const struct ibv_device *device, struct softhca_model *model)
{
	const struct hca_fabric *f;
	const struct hca_personality *p;
	const struct hca_spec *s;
	unsigned i;

	if (!hca_device_is_ours(device))
		return hca_fail(ENODEV, "%s is not a software device", device->name);
	f = ((const struct hca_device *)(const void *)device)->fabric;
	s = &f->spec;
	memset(model, 0, sizeof(*model));
	model->timed = s->timed;
	model->ports = (unsigned)s->ports;
	for (i = 0; i < s->ports; i++)
		model->port_rate[i] = s->nets && !s->rate[i] ? f->netif[i].rate : s->rate[i];
	model->net = hca_is_net(f);
	p = hca_personality_of(s, ((const struct hca_device *)(const void *)device)->node);
	model->ends_last = p->order != HCA_ORDER_NEVER && !p->late;
	model->ordered = model->ends_last && (!s->timed || p->order == HCA_ORDER_TIMED);
	model->latency_ns = s->latency_ns;
	model->cap = s->cap;
	model->bus_read = s->bus_read;
	model->bus_write = s->bus_write;
	model->bus_half = s->bus_half;
	if (model->net)
		hca_net_describe(f, model->text, sizeof(model->text));
	else
		hca_spec_describe(s, model->text, sizeof(model->text));
	memcpy(model->spec, s->text, sizeof(model->spec));
	model->fabric = f->shm->id;
	return 0;
}

HCA_EXPORT int softhca_query_retries(const struct ibv_context *context, unsigned port,
				     uint64_t *retries)
{
	struct hca_context *c;

	if (!hca_device_is_ours(context->device))
		return hca_fail(ENODEV, "%s is not a software device", context->device->name);
	c = hca_context_of((struct ibv_context *)(uintptr_t)context);
	if (port < 1 || port > c->fabric->spec.ports)
		return hca_fail(EINVAL, "port %u: %s has ports 1 to %u", port,
				context->device->name, (unsigned)c->fabric->spec.ports);
	*retries = atomic_load_explicit(&c->retries[port - 1], memory_order_relaxed);
	return 0;
}

/* A path with this loss carries no connection: all of 7 tries are lost every other time. */
enum { CUT_PPB = HCA_ALL_PPB / 10 * 9 };

static enum hca_fate fate_of(struct hca_fabric *f, const struct hca_ah *ah, uint32_t qpn)
{
	/* Numbers of another host are not those of this one. */
	if (f->wire && (ah->to == HCA_ADDRESS_REMOTE || f->wire_always))
		return f->wire->datagram_fate(f, ah->from + 1, &ah->dgid, qpn);
	return f->link->number_fate(f, qpn);
}

static enum softhca_reach path_reach(struct hca_fabric *f, const struct hca_ah *ah)
{
	if (f->spec.schedule.count)
		hca_loss_advance(f, rg_now_ns());
	if (!hca_path_up(f, ah->from, ah->to))
		return SOFTHCA_CUT;
	return ah->to != HCA_ADDRESS_REMOTE &&
	       hca_loss_ppb(f->shm, &f->spec, ah->from, ah->to) >= CUT_PPB ? SOFTHCA_CUT : SOFTHCA_REACHED;
}

HCA_EXPORT int softhca_query_reach(const struct ibv_ah *ibv, uint32_t qpn)
{
	const struct hca_ah *ah = (const struct hca_ah *)(const void *)ibv;
	struct hca_fabric *f;

	if (!hca_device_is_ours(ibv->context->device))
		return hca_fail(ENODEV, "%s is not a software device", ibv->context->device->name);
	f = hca_context_of(ibv->context)->fabric;
	if (ah->multicast)
		return SOFTHCA_REACHED;
	switch (fate_of(f, ah, qpn)) {
	case HCA_FATE_DEAD:
		return SOFTHCA_DEAD;
	case HCA_FATE_LEFT:
		return SOFTHCA_LEFT;
	case HCA_FATE_RESET:
		return SOFTHCA_RESET;
	case HCA_FATE_UNREACHED:
		return SOFTHCA_CUT;
	default:
		return path_reach(f, ah);
	}
}

HCA_EXPORT bool softhca_hears_peer(struct ibv_qp *ibv)
{
	const struct hca_qp *qp = hca_qp_of(ibv);

	return hca_device_is_ours(ibv->context->device) && qp->link == qp->fabric->wire && qp->link &&
	       !qp->datagram && qp->link->hears_peer(qp);
}

static_assert(sizeof(((struct softhca_model *)NULL)->port_rate) ==
	      sizeof(((struct hca_spec *)NULL)->rate), "a rate for each port");
static_assert(sizeof(((struct softhca_model *)NULL)->spec) == HCA_SPEC_MAX, "canonical spec");

HCA_EXPORT int softhca_model_doubt(const struct ibv_device *device, char *buf, size_t size)
{
	const struct hca_fabric *f;
	unsigned i, members = 0;

	if (!hca_device_is_ours(device))
		return hca_fail(ENODEV, "%s is not a software device", device->name);
	f = ((const struct hca_device *)(const void *)device)->fabric;
	for (i = 0; i < HCA_PROCS_MAX; i++)
		members += atomic_load(&f->shm->slot[i].phase) == HCA_PRESENT;
	return hca_fidelity(&f->spec, members, buf, size);
}
