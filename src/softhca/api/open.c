/* open.c - lists of devices; opening, importing and closing them. */
#include "softhca/api/open.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/api/fabric.h"
#include "softhca/api/real.h"
#include "softhca/base/proc.h"
#include "softhca/base/segment.h"
#include "softhca/engine/poll.h"
#include "softhca/engine/post.h"
#include "softhca/engine/qp_states.h"
#include "softhca/object/ah.h"
#include "softhca/object/cq.h"
#include "softhca/object/dm.h"
#include "softhca/object/mcast.h"
#include "softhca/object/mw.h"
#include "softhca/object/srq.h"
#include "softhca/object/query.h"
#include "softhca/object/pd.h"
#include "softhca/object/mr.h"

/* ---- Lists of devices ---------------------------------------------------- */

/*
 * The array begins where its allocation does, because some programs (qperf)
 * release it with free(), which works with libibverbs.  Private data of the list
 * is at the end of the allocation: after the array, which the program may shorten.
 */
struct list_end {
	struct hca_fabric *fabric;	/* referenced; or NULL */
	struct ibv_device **real;	/* the real library's; or NULL */
};

static struct list_end *list_end_of(struct ibv_device **list)
{
	size_t bytes = malloc_usable_size(list) & ~(sizeof(void *) - 1);

	return (struct list_end *)(void *)((char *)list + bytes) - 1;
}

struct ibv_device **hca_list_make(struct hca_fabric *f, uint32_t node, struct ibv_device **real,
				  int *count)
{
	struct hca_device *soft[HCA_HCAS_MAX];
	size_t n = 0, reals = 0, i;
	struct ibv_device **list;

	while (real && real[reals])
		reals++;
	list = calloc(1, (HCA_HCAS_MAX + reals + 1) * sizeof(*list) + sizeof(struct list_end));
	if (!list || (f && hca_devices_of_node(f, node, soft))) {
		free(list);
		hca_fail(ENOMEM, "no memory");
		errno = ENOMEM;
		return NULL;
	}
	for (i = 0; f && i < f->spec.hcas; i++)
		list[n++] = &soft[i]->ibv;
	for (i = 0; i < reals; i++)
		list[n++] = real[i];
	*list_end_of(list) = (struct list_end){ f, real };
	if (count)
		*count = (int)n;
	return list;
}

void hca_list_free(struct ibv_device **list)
{
	const struct list_end *end = list_end_of(list);

	if (end->real)
		hca_real_free_device_list(end->real);
	if (end->fabric)
		hca_fabric_put(end->fabric);
	free(list);
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

/* ---- Opening ------------------------------------------------------------- */

static const char cmd_name[] = "softhca-context";

/* The inode of a descriptor that this library made; 0: it did not make it. */
static uint64_t file_of(int fd)
{
	char path[40], name[64] = "";
	struct stat st;

	/* A real device's is no regular file. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (hca_segments_are_files() || hca_proc_link(path, name, sizeof(name) - 1) < 0 ||
	    strstr(name, cmd_name))
		return st.st_ino;
	return 0;
}

static void context_free(struct hca_context *c)
{
	if (c->verbs.context.cmd_fd >= 0)
		close(c->verbs.context.cmd_fd);
	free(c);
}

static struct ibv_context *open_device(struct hca_device *d)
{
	struct ibv_device *ibv = &d->ibv;
	struct hca_context *c = calloc(1, sizeof(*c));
	struct verbs_context *v;
	int rc;

	if (!c)
		return NULL;
	c->device = d;
	c->fabric = d->fabric;
	v = &c->verbs;
	v->context.device = ibv;
	v->context.cmd_fd = hca_segment_create(cmd_name, 0);
	c->file = v->context.cmd_fd < 0 ? 0 : file_of(v->context.cmd_fd);
	rc = c->file ? hca_events_make(&v->context, hca_wakeup_adapter(d->node, d->hca)) : -EMFILE;
	if (rc) {
		context_free(c);
		errno = -rc;
		return NULL;
	}
	v->context.num_comp_vectors = 1;
	pthread_mutex_init(&v->context.mutex, NULL);
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.poll_cq = hca_cq_poll;
	v->context.ops.post_send = hca_post_send;
	v->context.ops.post_recv = hca_post_recv;
	v->context.ops.req_notify_cq = hca_cq_req_notify;
	v->context.ops.post_srq_recv = hca_srq_post;
	v->sz = sizeof(*v);
	v->query_port = hca_query_port;
	v->query_device_ex = hca_query_device_ex;
	v->query_rt_values = hca_query_rt_values;
	v->create_cq_ex = hca_cq_create_ex;
	v->create_qp_ex = hca_qp_create_ex;
	v->context.ops.alloc_mw = hca_mw_alloc;
	v->context.ops.bind_mw = hca_mw_bind;
	v->context.ops.dealloc_mw = hca_mw_dealloc;
	v->alloc_td = hca_td_alloc;
	v->dealloc_td = hca_td_dealloc;
	v->alloc_parent_domain = hca_pd_alloc_parent;
	v->alloc_dm = hca_dm_alloc;
	v->free_dm = hca_dm_free;
	v->reg_dm_mr = hca_dm_reg;
	v->create_srq_ex = hca_srq_create_ex;
	v->get_srq_num = hca_srq_number;
	hca_fabric_ref(d->fabric);
	pthread_mutex_lock(&d->fabric->slow);
	hca_list_add(&d->fabric->contexts, &c->link);
	pthread_mutex_unlock(&d->fabric->slow);
	hca_contexts_add(c);
	return &v->context;
}

/* In a child of fork: open the same adapter, as a separate member. */
static struct ibv_context *open_inherited(struct hca_device *d)
{
	const struct softhca_config cfg = { .spec = d->fabric->spec.text,
		.fabric = d->fabric->name, .node = (int)d->node, .remap = d->fabric->remap };
	struct hca_device *list[HCA_HCAS_MAX];
	struct ibv_context *c = NULL;
	struct hca_fabric *f;
	int rc = hca_fabric_get(&cfg, &f);

	if (rc) {
		hca_say("%s", softhca_last_error());
		errno = -rc;
		return NULL;
	}
	if (!hca_devices_of_node(f, d->node, list))
		c = open_device(list[d->hca]);
	hca_fabric_put(f);
	return c;
}

struct ibv_context *hca_device_open(struct ibv_device *ibv)
{
	struct hca_device *d = (struct hca_device *)(void *)ibv;

	return d->fabric->inherited ? open_inherited(d) : open_device(d);
}

struct ibv_context *hca_device_import(int cmd_fd, bool *ours)
{
	uint64_t file = file_of(cmd_fd);
	struct hca_context *of;
	struct ibv_context *c = NULL;
	struct ibv_device *d = NULL;

	*ours = file != 0;
	if (!file)
		return NULL;
	hca_contexts_lock();
	of = hca_context_next(file, NULL);
	if (of) {
		d = &of->device->ibv;
		hca_fabric_ref(of->fabric);
	}
	hca_contexts_unlock();
	if (!of) {
		hca_say("a software device can be imported only by the process that opened it");
		errno = EOPNOTSUPP;
		return NULL;
	}
	c = hca_device_open(d);
	if (c) {
		hca_contexts_lock();
		close(c->cmd_fd);
		c->cmd_fd = cmd_fd;
		hca_context_of(c)->file = file;
		hca_contexts_unlock();
	}
	hca_fabric_put(hca_container(d, struct hca_device, ibv)->fabric);
	return c;
}

static void destroy_leftovers(struct hca_context *c)
{
	struct hca_fabric *f = c->fabric;
	struct hca_list_node *l;
	uint32_t i;

	for (i = 0; i < atomic_load(&f->qp_top); i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (!qp || qp->ibv.qp_base.context != &c->verbs.context)
			continue;
		hca_mcast_leave(qp);
		hca_qp_destroy(&qp->ibv.qp_base);
	}
	while (c->mws)
		hca_mw_dealloc(&hca_container(c->mws, struct hca_mw, link)->ibv);
	for (i = 0; i < atomic_load(&f->mr_top); i++) {
		struct hca_mr *mr = atomic_load(&f->mr[i]);

		if (mr && mr->ibv.context == &c->verbs.context)
			hca_mr_dereg(&mr->ibv);
	}
	hca_dms_drop(c);
	while (c->ahs)
		hca_ah_destroy(&hca_container(c->ahs, struct hca_ah, link)->ibv);
	/* Objects that another context of the same file still uses stay, on no list. */
	while ((l = c->srqs))
		if (hca_srq_destroy(&hca_container(l, struct hca_srq, link)->ibv))
			hca_list_remove(l);
	while ((l = c->cqs))
		if (hca_cq_destroy((struct ibv_cq *)&hca_container(l, struct hca_cq, link)->ibv))
			hca_list_remove(l);
	while ((l = c->channels))
		if (hca_channel_destroy(&hca_container(l, struct hca_channel, link)->ibv))
			hca_list_remove(l);
	hca_pds_drop(c);
}

int hca_device_close(struct ibv_context *ibv)
{
	struct hca_context *c = hca_context_of(ibv);

	hca_contexts_remove(c);
	pthread_mutex_lock(&c->fabric->slow);
	hca_list_remove(&c->link);
	pthread_mutex_unlock(&c->fabric->slow);
	hca_events_close(ibv);
	destroy_leftovers(c);
	hca_events_free(ibv);
	pthread_mutex_destroy(&ibv->mutex);
	hca_fabric_put(c->fabric);
	context_free(c);
	return 0;
}
