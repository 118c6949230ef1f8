/* device.c - adapters, and opening them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cq.h"
#include "device.h"
#include "qp.h"
#include "real.h"

/* ---- Devices ------------------------------------------------------------- */

/* Its address in a field that nobody uses marks a device as ours. */
static struct ibv_context *mark(struct ibv_device *d, int fd)
{
	return NULL;
}

bool hca_device_is_ours(const struct ibv_device *d)
{
	return d->_ops._dummy1 == mark;
}

bool hca_context_is_ours(const struct ibv_context *c)
{
	return c->ops.post_send == hca_post_send;
}

static struct hca_device *device_new(struct hca_fabric *f, uint32_t node, uint32_t hca)
{
	struct hca_device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->fabric = f;
	d->node = node;
	d->hca = hca;
	d->ibv._ops._dummy1 = mark;
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->ibv.name, sizeof(d->ibv.name), "soft%u", hca);
	/* Names of files that do not exist: there is no kernel device. */
	snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "usoft%u", hca);
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path),
		 "/sys/class/infiniband_verbs/usoft%u", hca);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/soft%u",
		 hca);
	return d;
}

static struct hca_device *find(struct hca_fabric *f, uint32_t node, uint32_t hca)
{
	struct hca_device *d;

	for (d = f->devices; d && (d->node != node || d->hca != hca); d = d->next)
		;
	return d;
}

int hca_devices_of_node(struct hca_fabric *f, uint32_t node, struct hca_device **list)
{
	uint32_t i;

	pthread_mutex_lock(&f->slow);
	for (i = 0; i < f->spec.hcas; i++) {
		list[i] = find(f, node, i);
		if (list[i])
			continue;
		list[i] = device_new(f, node, i);
		if (!list[i])
			break;
		list[i]->next = f->devices;
		f->devices = list[i];
	}
	pthread_mutex_unlock(&f->slow);
	return i == f->spec.hcas ? 0 : -ENOMEM;
}

void hca_devices_free(struct hca_fabric *f)
{
	struct hca_device *d;

	while ((d = f->devices)) {
		f->devices = d->next;
		free(d);
	}
}

/* ---- Lists of devices ---------------------------------------------------- */

struct list {
	struct hca_fabric *fabric;	/* referenced; or NULL */
	struct ibv_device **real;	/* of the real library; or NULL */
	struct ibv_device *device[];	/* what the user gets */
};

struct ibv_device **hca_list_make(struct hca_fabric *f, uint32_t node, struct ibv_device **real,
				  int *count)
{
	struct hca_device *soft[HCA_HCAS_MAX];
	size_t n = 0, reals = 0, i;
	struct list *l;

	while (real && real[reals])
		reals++;
	l = calloc(1, sizeof(*l) + (HCA_HCAS_MAX + reals + 1) * sizeof(*l->device));
	if (!l || (f && hca_devices_of_node(f, node, soft))) {
		free(l);
		hca_fail(ENOMEM, "no memory");
		errno = ENOMEM;
		return NULL;
	}
	for (i = 0; f && i < f->spec.hcas; i++)
		l->device[n++] = &soft[i]->ibv;
	for (i = 0; i < reals; i++)
		l->device[n++] = real[i];
	l->fabric = f;
	l->real = real;
	if (count)
		*count = (int)n;
	return l->device;
}

void hca_list_free(struct ibv_device **devices)
{
	struct list *l = hca_container(devices, struct list, device);

	if (l->real)
		hca_real_free_device_list(l->real);
	if (l->fabric)
		hca_fabric_put(l->fabric);
	free(l);
}

HCA_EXPORT struct ibv_device **softhca_get_device_list(const struct softhca_config *cfg,
						       int *count)
{
	struct ibv_device **list;
	struct hca_fabric *f;
	uint32_t node;
	int rc = hca_fabric_get(cfg, &f);

	if (rc) {
		errno = -rc;
		return NULL;
	}
	rc = hca_fabric_node(cfg, &f->spec, &node);
	list = rc ? NULL : hca_list_make(f, node, NULL, count);
	if (!list) {
		int err = rc ? -rc : errno;

		hca_fabric_put(f);
		errno = err;
	}
	return list;
}

HCA_EXPORT bool softhca_is_device(const struct ibv_device *device)
{
	return hca_device_is_ours(device);
}

HCA_EXPORT int softhca_query_model(const struct ibv_device *device, struct softhca_model *model)
{
	const struct hca_spec *s;

	if (!hca_device_is_ours(device))
		return hca_fail(ENODEV, "%s is not a software device", device->name);
	s = &((const struct hca_device *)(const void *)device)->fabric->spec;
	memset(model, 0, sizeof(*model));
	model->timed = s->timed;
	model->ports = (unsigned)s->ports;
	model->port_rate = s->rate;
	model->latency_ns = s->latency_ns;
	hca_spec_describe(s, model->text, sizeof(model->text));
	memcpy(model->spec, s->text, sizeof(model->spec));
	return 0;
}

static_assert(sizeof(((struct softhca_model *)NULL)->spec) == HCA_SPEC_MAX, "canonical spec");

/* ---- Opened devices ------------------------------------------------------ */

static int no_notify(struct ibv_cq *cq, int solicited_only)
{
	return EOPNOTSUPP;
}

static int no_srq(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return EOPNOTSUPP;
}

struct ibv_context *hca_device_open(struct ibv_device *ibv)
{
	struct hca_device *d = (struct hca_device *)(void *)ibv;
	struct hca_context *c = calloc(1, sizeof(*c));
	struct verbs_context *v;

	if (!c)
		return NULL;
	c->device = d;
	c->fabric = d->fabric;
	v = &c->verbs;
	v->context.device = ibv;
	v->context.cmd_fd = -1;
	v->context.async_fd = eventfd(0, EFD_CLOEXEC);
	if (v->context.async_fd < 0) {
		free(c);
		return NULL;
	}
	v->context.num_comp_vectors = 1;
	pthread_mutex_init(&v->context.mutex, NULL);
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.poll_cq = hca_cq_poll;
	v->context.ops.post_send = hca_post_send;
	v->context.ops.post_recv = hca_post_recv;
	v->context.ops.req_notify_cq = no_notify;
	v->context.ops.post_srq_recv = no_srq;
	v->sz = sizeof(*v);
	v->query_port = hca_query_port;
	v->query_device_ex = hca_query_device_ex;
	v->create_qp_ex = hca_qp_create_ex;
	hca_fabric_ref(d->fabric);
	return &v->context;
}

static void destroy_leftovers(struct hca_context *c)
{
	struct hca_fabric *f = c->fabric;
	uint32_t i;

	for (i = 0; i < atomic_load(&f->qp_top); i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (qp && qp->ibv.qp_base.context == &c->verbs.context)
			hca_qp_destroy(&qp->ibv.qp_base);
	}
	for (i = 0; i < atomic_load(&f->mr_top); i++) {
		struct hca_mr *mr = atomic_load(&f->mr[i]);

		if (mr && mr->ibv.context == &c->verbs.context)
			hca_mr_dereg(&mr->ibv);
	}
	while (c->cqs)
		hca_cq_destroy((struct ibv_cq *)&hca_container(c->cqs, struct hca_cq, link)->ibv);
	while (c->pds)
		hca_pd_dealloc(&hca_container(c->pds, struct hca_pd, link)->ibv);
}

int hca_device_close(struct ibv_context *ibv)
{
	struct hca_context *c = hca_context_of(ibv);

	destroy_leftovers(c);
	close(ibv->async_fd);
	pthread_mutex_destroy(&ibv->mutex);
	hca_fabric_put(c->fabric);
	free(c);
	return 0;
}
