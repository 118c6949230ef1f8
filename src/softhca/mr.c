/* mr.c - protection domains and registrations. */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "maps.h"
#include "memory.h"
#include "peer.h"
#include "remap.h"

/* ---- Protection domains -------------------------------------------------- */

struct ibv_pd *hca_pd_alloc(struct ibv_context *c)
{
	struct hca_context *context = hca_context_of(c);
	struct hca_fabric *f = context->fabric;
	struct hca_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->ibv.context = c;
	pd->fabric = f;
	pthread_mutex_lock(&f->slow);
	pd->id = ++f->pd_last;
	hca_link_add(&context->pds, &pd->link);
	pthread_mutex_unlock(&f->slow);
	pd->ibv.handle = pd->id;
	return &pd->ibv;
}

int hca_pd_dealloc(struct ibv_pd *ibv)
{
	struct hca_pd *pd = hca_pd_of(ibv);

	if (atomic_load(&pd->objects))
		return EBUSY;
	pthread_mutex_lock(&pd->fabric->slow);
	hca_link_remove(&pd->link);
	pthread_mutex_unlock(&pd->fabric->slow);
	free(pd);
	return 0;
}

/* ---- Registrations ------------------------------------------------------- */

/* Optional flags are hints that may be ignored. */
static int check_access(unsigned access)
{
	const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			       IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |
			       IBV_ACCESS_OPTIONAL_RANGE;

	if (access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if (access & ~known)
		return EINVAL;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

static int take_key(struct hca_fabric *f, uint32_t *key)
{
	const uint32_t mask = (1u << HCA_KEY_GEN_BITS) - 1;
	uint32_t index;

	if (f->mr_freed_count)
		index = f->mr_freed[--f->mr_freed_count];
	else if (f->mr_top < HCA_MRS_MAX)
		index = f->mr_top++;
	else
		return ENOMEM;
	do {
		f->mr_generation[index]++;
		*key = index << HCA_KEY_GEN_BITS | (f->mr_generation[index] & mask);
	} while (!*key);
	return 0;
}

static void publish(struct hca_mr *mr)
{
	uint32_t index = mr->ibv.lkey >> HCA_KEY_GEN_BITS;
	struct hca_shm_mr *shm = &mr->fabric->self->mr[index];

	atomic_store(&mr->fabric->mr[index], mr);
	shm->access = mr->access;
	shm->pd = mr->pd;
	shm->mapped = mr->mapped;
	shm->mapped_end = mr->mapped_end;
	shm->iova = mr->iova;
	shm->addr = (uintptr_t)mr->ibv.addr;
	shm->length = mr->ibv.length;
	atomic_store_explicit(&shm->key, mr->ibv.lkey, memory_order_release);
}

/* Is there memory, and which part of it can peers map? */
static int find_memory(struct hca_mr *mr, void *addr, size_t bytes)
{
	enum softhca_remap remap = mr->fabric->remap;
	int rc;

	if (hca_memory_in_arena(addr, bytes)) {
		mr->mapped = (uintptr_t)addr;
		mr->mapped_end = (uintptr_t)addr + bytes;
		return 0;
	}
	rc = hca_maps_check(addr, bytes, mr->access & IBV_ACCESS_LOCAL_WRITE);
	if (!rc && (remap == SOFTHCA_REMAP_AUTO || remap == SOFTHCA_REMAP_ALWAYS))
		hca_remap(addr, bytes, remap == SOFTHCA_REMAP_ALWAYS, &mr->mapped,
			  &mr->mapped_end);
	return rc;
}

struct ibv_mr *hca_mr_reg(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova,
			  unsigned access)
{
	struct hca_fabric *f = hca_pd_of(pd)->fabric;
	int rc = check_access(access);
	struct hca_mr *mr;

	if (!rc && (uintptr_t)addr > UINTPTR_MAX - bytes)
		rc = EINVAL;
	mr = rc ? NULL : calloc(1, sizeof(*mr));
	if (!mr) {
		errno = rc ? rc : ENOMEM;
		return NULL;
	}
	mr->fabric = f;
	mr->pd = hca_pd_of(pd)->id;
	mr->access = access;
	mr->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	rc = find_memory(mr, addr, bytes);
	mr->ibv = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = addr,
				   .length = bytes };
	if (!rc) {
		pthread_mutex_lock(&f->slow);
		rc = take_key(f, &mr->ibv.lkey);
		pthread_mutex_unlock(&f->slow);
	}
	if (rc) {
		free(mr);
		errno = rc;
		return NULL;
	}
	mr->ibv.rkey = mr->ibv.lkey;
	mr->ibv.handle = mr->ibv.lkey >> HCA_KEY_GEN_BITS;
	publish(mr);
	atomic_fetch_add(&hca_pd_of(pd)->objects, 1);
	return &mr->ibv;
}

int hca_mr_dereg(struct ibv_mr *ibv)
{
	struct hca_mr *mr = hca_mr_of(ibv);
	struct hca_fabric *f = mr->fabric;
	uint32_t index = ibv->lkey >> HCA_KEY_GEN_BITS;

	atomic_store_explicit(&f->self->mr[index].key, 0, memory_order_release);
	atomic_store(&f->mr[index], NULL);
	hca_lock(&f->engine.lock);
	hca_quiesce(f, NULL);
	hca_unlock(&f->engine.lock);
	pthread_mutex_lock(&f->slow);
	f->mr_freed[f->mr_freed_count++] = index;
	pthread_mutex_unlock(&f->slow);
	atomic_fetch_sub(&hca_pd_of(ibv->pd)->objects, 1);
	free(mr);
	return 0;
}
