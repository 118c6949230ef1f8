/* dm.c - device memory. */
#include "softhca/object/dm.h"
#include "softhca/object/mr.h"

#include <stdlib.h>
#include <string.h>

#include "softhca/softhca.h"

static struct hca_dm *dm_of(struct ibv_dm *dm)
{
	return (struct hca_dm *)(void *)dm;
}

static bool may_copy(const struct hca_dm *dm, uint64_t offset, size_t bytes)
{
	return offset % HCA_DM_ALIGN == 0 && bytes % HCA_DM_ALIGN == 0 && offset <= dm->bytes &&
	       bytes <= dm->bytes - offset;
}

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t bytes)
{
	struct hca_dm *dm = dm_of(ibv);

	if (!may_copy(dm, offset, bytes))
		return EFAULT;
	memcpy(dm->at + offset, from, bytes);
	return 0;
}

static int copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t bytes)
{
	struct hca_dm *dm = dm_of(ibv);

	if (!may_copy(dm, offset, bytes))
		return EFAULT;
	memcpy(to, dm->at + offset, bytes);
	return 0;
}

static struct hca_dm *dm_new(struct ibv_context *ibv, unsigned char *at, size_t bytes,
			     uint32_t handle)
{
	struct hca_context *c = hca_context_of(ibv);
	struct hca_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->ibv = (struct ibv_dm){ .context = ibv, .memcpy_to_dm = copy_to,
				   .memcpy_from_dm = copy_from, .comp_mask = IBV_DM_MASK_HANDLE };
	dm->at = at;
	dm->bytes = bytes;
	pthread_mutex_lock(&c->fabric->slow);
	dm->ibv.handle = handle ? handle : ++c->fabric->dm_last;
	hca_list_add(&c->dms, &dm->link);
	pthread_mutex_unlock(&c->fabric->slow);
	return dm;
}

static void dm_free(struct hca_dm *dm)
{
	struct hca_fabric *f = hca_context_of(dm->ibv.context)->fabric;

	pthread_mutex_lock(&f->slow);
	hca_list_remove(&dm->link);
	pthread_mutex_unlock(&f->slow);
	if (dm->of)
		atomic_fetch_sub(&dm->of->objects, 1);
	else if (!dm->inherited)
		softhca_arena_free(dm->at);
	free(dm);
}

struct ibv_dm *hca_dm_alloc(struct ibv_context *c, struct ibv_alloc_dm_attr *attr)
{
	struct hca_dm *dm;
	void *at;

	/* The arena begins allocations on pages. */
	if (attr->comp_mask || !attr->length || attr->log_align_req > 12) {
		errno = EINVAL;
		return NULL;
	}
	at = attr->length <= HCA_DM_MAX ? softhca_arena_alloc(attr->length) : NULL;
	dm = at ? dm_new(c, at, attr->length, 0) : NULL;
	if (!dm) {
		if (at)
			softhca_arena_free(at);
		errno = ENOMEM;
		return NULL;
	}
	return &dm->ibv;
}

int hca_dm_free(struct ibv_dm *ibv)
{
	struct hca_dm *dm = dm_of(ibv);

	if (atomic_load(&dm->objects))
		return EBUSY;
	dm_free(dm);
	return 0;
}

struct ibv_mr *hca_dm_reg(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t bytes,
			  unsigned access)
{
	struct hca_dm *dm = dm_of(ibv);
	struct ibv_mr *mr;

	if (!(access & IBV_ACCESS_ZERO_BASED) || offset > dm->bytes ||
	    bytes > dm->bytes - offset) {
		errno = EINVAL;
		return NULL;
	}
	mr = hca_mr_reg(pd, dm->at + offset, bytes, 0, access);
	if (!mr)
		return NULL;
	mr->addr = NULL;
	hca_mr_of(mr)->kind = HCA_MR_DM;
	hca_mr_of(mr)->dm = dm;
	atomic_fetch_add(&dm->objects, 1);
	return mr;
}

/* ---- Importing ----------------------------------------------------------- */

static struct hca_dm *dm_find(struct hca_context *c, uint32_t handle)
{
	struct hca_dm *found = NULL;
	struct hca_list_node *l;

	pthread_mutex_lock(&c->fabric->slow);
	for (l = c->dms; l && !found; l = l->next) {
		struct hca_dm *dm = hca_container(l, struct hca_dm, link);

		if (dm->ibv.handle == handle && !dm->of)
			found = dm;
	}
	pthread_mutex_unlock(&c->fabric->slow);
	return found;
}

struct ibv_dm *hca_dm_import(struct ibv_context *c, uint32_t handle)
{
	struct hca_context *other = NULL;
	struct hca_dm *dm, *found = NULL;

	hca_contexts_lock();
	while (!found && (other = hca_context_next(hca_context_of(c)->file, other)))
		found = dm_find(other, handle);
	if (found)
		atomic_fetch_add(&found->objects, 1);
	hca_contexts_unlock();
	dm = found ? dm_new(c, found->at, found->bytes, handle) : NULL;
	if (!dm) {
		if (found)
			atomic_fetch_sub(&found->objects, 1);
		errno = found ? ENOMEM : ENOENT;
		return NULL;
	}
	dm->of = found;
	return &dm->ibv;
}

void hca_dm_unimport(struct ibv_dm *ibv)
{
	dm_free(dm_of(ibv));
}

void hca_dms_drop(struct hca_context *c)
{
	struct hca_list_node *l;

	/* Like domains, memory that another context has imported stays, on no list. */
	while ((l = c->dms)) {
		struct hca_dm *dm = hca_container(l, struct hca_dm, link);

		if (atomic_load(&dm->objects))
			hca_list_remove(l);
		else
			dm_free(dm);
	}
}
