/* device.c - adapters, and those that this process has opened. */
#include <stdio.h>
#include <stdlib.h>

#include "softhca/model/loss.h"
#include "softhca/object/device.h"

/* ---- Devices ------------------------------------------------------------- */

/* In an unused field, a pointer that no other library has marks a device of this library. */
typedef __typeof__(((struct ibv_device *)NULL)->_ops._dummy1) mark_fn;

static mark_fn mark(void)
{
	return (mark_fn)(void (*)(void))mark;
}

bool hca_device_is_ours(const struct ibv_device *d)
{
	return d->_ops._dummy1 == mark();
}

bool hca_context_is_ours(const struct ibv_context *c)
{
	return hca_device_is_ours(c->device);
}

bool hca_context_is_inherited(struct ibv_context *c)
{
	return hca_context_of(c)->fabric->inherited;
}

uint64_t hca_device_port_word(const struct hca_device *d, uint32_t port)
{
	const struct hca_fabric *f = d->fabric;
	uint32_t at = hca_address(&f->spec, d->node, d->hca, port);

	return atomic_load(&hca_shm_port_at(f->shm, &f->spec, at)->state);
}

static struct hca_device *device_new(struct hca_fabric *f, uint32_t node, uint32_t hca)
{
	struct hca_device *d = calloc(1, sizeof(*d));
	uint32_t port;

	if (!d)
		return NULL;
	d->fabric = f;
	d->node = node;
	d->hca = hca;
	/* The present state is the initial one: only later changes raise events. */
	for (port = 1; port <= f->spec.ports; port++)
		d->port_seen[port - 1] = hca_device_port_word(d, port);
	d->ibv._ops._dummy1 = mark();
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

static struct hca_device *device_find(struct hca_fabric *f, uint32_t node, uint32_t hca)
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
		list[i] = device_find(f, node, i);
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

/* ---- Opened devices ------------------------------------------------------ */

/*
 * A caller that has cmd_fd, or a duplicate, can import the device (in this process
 * only: its objects are private memory).  Any file serves whose identity is unique.
 */
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hca_list_node *opened;

void hca_contexts_lock(void)
{
	pthread_mutex_lock(&contexts_lock);
}

void hca_contexts_unlock(void)
{
	pthread_mutex_unlock(&contexts_lock);
}

struct hca_context *hca_context_next(uint64_t file, struct hca_context *after)
{
	struct hca_list_node *l = after ? after->opened.next : opened;

	while (l && hca_container(l, struct hca_context, opened)->file != file)
		l = l->next;
	return l ? hca_container(l, struct hca_context, opened) : NULL;
}

void hca_contexts_add(struct hca_context *c)
{
	hca_contexts_lock();
	hca_list_add(&opened, &c->opened);
	hca_contexts_unlock();
}

void hca_contexts_remove(struct hca_context *c)
{
	hca_contexts_lock();
	hca_list_remove(&c->opened);
	hca_contexts_unlock();
}

/* Called in a child of fork. */
void hca_contexts_forget(void)
{
	pthread_mutex_init(&contexts_lock, NULL);
	opened = NULL;
}
