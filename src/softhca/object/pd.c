/* pd.c - protection domains, and aliases of them. */
#include <stdlib.h>

#include "softhca/object/device.h"
#include "softhca/object/pd.h"

static struct hca_pd *pd_new(struct ibv_context *c, uint32_t id)
{
	struct hca_context *context = hca_context_of(c);
	struct hca_fabric *f = context->fabric;
	struct hca_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->ibv.context = c;
	pd->fabric = f;
	pthread_mutex_lock(&f->slow);
	pd->id = id ? id : ++f->pd_last;
	hca_list_add(&context->pds, &pd->link);
	pthread_mutex_unlock(&f->slow);
	pd->ibv.handle = pd->id;
	return pd;
}

static void pd_free(struct hca_pd *pd)
{
	pthread_mutex_lock(&pd->fabric->slow);
	hca_list_remove(&pd->link);
	pthread_mutex_unlock(&pd->fabric->slow);
	if (pd->parent)
		atomic_fetch_sub(&pd->parent->objects, 1);
	if (pd->td)
		atomic_fetch_sub(&pd->td->objects, 1);
	free(pd);
}

struct ibv_pd *hca_pd_alloc(struct ibv_context *c)
{
	struct hca_pd *pd = pd_new(c, 0);

	return pd ? &pd->ibv : NULL;
}

static struct hca_pd *find_unimported(const struct hca_pd *parent)
{
	const uint64_t file = hca_context_of(parent->ibv.context)->file;
	struct hca_context *c = NULL;
	struct hca_pd *found = NULL;
	struct hca_list_node *l;

	hca_contexts_lock();
	pthread_mutex_lock(&parent->fabric->slow);
	while (!found && (c = hca_context_next(file, c)))
		for (l = c->pds; l && !found; l = l->next) {
			struct hca_pd *pd = hca_container(l, struct hca_pd, link);

			if (pd->parent == parent && pd->unimported && !atomic_load(&pd->objects))
				found = pd;
		}
	pthread_mutex_unlock(&parent->fabric->slow);
	hca_contexts_unlock();
	return found;
}

int hca_pd_dealloc(struct ibv_pd *ibv)
{
	struct hca_pd *pd = hca_pd_of(ibv), *other;

	while (atomic_load(&pd->objects) && (other = find_unimported(pd)))
		pd_free(other);
	if (atomic_load(&pd->objects))
		return EBUSY;
	pd_free(pd);
	return 0;
}

/*
 * Aliases first.  A domain that another context has imported and still uses
 * cannot be freed: it stays, on no list.
 */
void hca_pds_drop(struct hca_context *c)
{
	struct hca_list_node *l, *next;

	for (l = c->pds; l; l = next) {
		struct hca_pd *pd = hca_container(l, struct hca_pd, link);

		next = l->next;
		if (pd->parent && !atomic_load(&pd->objects))
			pd_free(pd);
	}
	while ((l = c->pds)) {
		struct hca_pd *pd = hca_container(l, struct hca_pd, link);

		if (hca_pd_dealloc(&pd->ibv))
			hca_list_remove(l);
	}
}

/* ---- Parent domains ------------------------------------------------------ */

/*
 * A thread domain promises that only one thread at a time uses the objects made
 * under it.  An uncontended lock costs one exchange, so no lock is elided.
 */
struct ibv_td *hca_td_alloc(struct ibv_context *c, struct ibv_td_init_attr *attr)
{
	struct hca_td *td;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = c;
	return &td->ibv;
}

int hca_td_dealloc(struct ibv_td *ibv)
{
	struct hca_td *td = (struct hca_td *)(void *)ibv;

	if (atomic_load(&td->objects))
		return EBUSY;
	free(td);
	return 0;
}

struct ibv_pd *hca_pd_alloc_parent(struct ibv_context *c,
				   struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct hca_pd *pd;

	if (!attr->pd || (attr->comp_mask & ~known)) {
		errno = EINVAL;
		return NULL;
	}
	/* Queues are in memory that peers map: only this library can allocate it. */
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	pd = pd_new(c, hca_pd_of(attr->pd)->id);
	if (!pd)
		return NULL;
	pd->parent = hca_pd_of(attr->pd);
	atomic_fetch_add(&pd->parent->objects, 1);
	if (attr->td) {
		pd->td = (struct hca_td *)(void *)attr->td;
		atomic_fetch_add(&pd->td->objects, 1);
	}
	return &pd->ibv;
}

/* ---- Importing ----------------------------------------------------------- */

static struct hca_pd *pd_find(struct hca_context *c, uint32_t id)
{
	struct hca_pd *found = NULL;
	struct hca_list_node *l;

	pthread_mutex_lock(&c->fabric->slow);
	for (l = c->pds; l && !found; l = l->next) {
		struct hca_pd *pd = hca_container(l, struct hca_pd, link);

		if (pd->id == id && !pd->parent)
			found = pd;
	}
	pthread_mutex_unlock(&c->fabric->slow);
	return found;
}

struct ibv_pd *hca_pd_import(struct ibv_context *c, uint32_t handle)
{
	struct hca_context *mine = hca_context_of(c), *other = NULL;
	struct hca_pd *pd, *found = NULL;

	hca_contexts_lock();
	while (!found && (other = hca_context_next(mine->file, other)))
		found = pd_find(other, handle);
	if (found)
		atomic_fetch_add(&found->objects, 1);
	hca_contexts_unlock();
	pd = found ? pd_new(c, handle) : NULL;
	if (!pd) {
		if (found)
			atomic_fetch_sub(&found->objects, 1);
		errno = found ? ENOMEM : ENOENT;
		return NULL;
	}
	pd->parent = found;
	return &pd->ibv;
}

/* Objects made in it may still refer to it: then it is freed with its parent. */
void hca_pd_unimport(struct ibv_pd *ibv)
{
	struct hca_pd *pd = hca_pd_of(ibv);

	pd->unimported = true;
	if (!atomic_load(&pd->objects))
		pd_free(pd);
}
