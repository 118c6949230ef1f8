/* mr.c - registrations. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca/object/device.h"
#include "softhca/object/dm.h"
#include "softhca/base/maps.h"
#include "softhca/base/proc.h"
#include "softhca/pages/memory.h"
#include "softhca/object/mw.h"
#include "softhca/object/link.h"
#include "softhca/pages/remap.h"
#include "softhca/base/segment.h"
#include "softhca/object/mr.h"
#include "util/random.h"

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

/* ---- Rows of the table --------------------------------------------------- */

static int reserve_row(struct hca_fabric *f, uint32_t index)
{
	const uint64_t row = (uintptr_t)&f->table->mr[index] - (uintptr_t)f->table;
	const uint64_t offset = (uintptr_t)&f->self->invalidated[index] - (uintptr_t)f->self;
	int rc = hca_segment_reserve(f->table_fd, row, sizeof(f->table->mr[index]));

	return rc ? rc : hca_segment_reserve(f->self_fd, offset,
					     sizeof(f->self->invalidated[index]));
}

/*
 * An index that has not been used yet.  Its generation begins at random where hosts of a network might
 * guess keys; else keys are the same in each run.
 */
static int first_use(struct hca_fabric *f, uint32_t *index)
{
	if (f->mr_top >= HCA_MRS_MAX || reserve_row(f, f->mr_top))
		return ENOMEM;
	*index = f->mr_top++;
	if (f->spec.nets)
		f->mr_generation[*index] = (uint16_t)rg_random();
	return 0;
}

int hca_mr_claim_key(struct hca_fabric *f, _Atomic uint32_t *key)
{
	const uint32_t mask = (1u << HCA_KEY_GEN_BITS) - 1;
	uint32_t index;
	int rc = 0;

	pthread_mutex_lock(&f->slow);
	if (f->mr_freed_count)
		index = f->mr_freed[--f->mr_freed_count];
	else
		rc = first_use(f, &index);
	if (!rc)
		do {
			f->mr_generation[index]++;
			*key = index << HCA_KEY_GEN_BITS | (f->mr_generation[index] & mask);
		} while (!*key);
	pthread_mutex_unlock(&f->slow);
	return rc;
}

void hca_mr_release_key(struct hca_fabric *f, uint32_t key)
{
	const uint32_t index = key >> HCA_KEY_GEN_BITS;

	pthread_mutex_lock(&f->slow);
	f->mr_generation[index] = (uint16_t)(key & ((1u << HCA_KEY_GEN_BITS) - 1));
	f->mr_freed[f->mr_freed_count++] = index;
	pthread_mutex_unlock(&f->slow);
}

static uint64_t next_stamp(const struct hca_mr *mr)
{
	return (uint64_t)(atomic_fetch_add(&mr->fabric->mr_written, 1) + 1) << 32 | mr->key;
}

static void write_row(struct hca_mr *mr)
{
	struct hca_fabric *f = mr->fabric;
	uint32_t index = mr->key >> HCA_KEY_GEN_BITS;
	struct hca_shm_mr *shm = &f->table->mr[index];

	atomic_store(&f->mr[index], mr);
	hca_put(shm->access, mr->access);
	hca_put(shm->pd, mr->remote_pd);
	hca_put(shm->qpn, mr->qpn);
	hca_put(shm->moving, mr->moved.moving);
	hca_put(shm->mapped, mr->mapped);
	hca_put(shm->mapped_end, mr->mapped_end);
	hca_put(shm->iova, mr->iova);
	hca_put(shm->addr, (uintptr_t)mr->base);
	hca_put(shm->length, mr->length);
	atomic_store_explicit(&shm->stamp, next_stamp(mr), memory_order_release);
}

void hca_mr_publish(struct hca_mr *mr)
{
	sigset_t before;

	if (mr->moved.listed) {
		hca_remap_lock(&before);
		mr->mapped = mr->moved.start;
		mr->mapped_end = mr->moved.end;
		write_row(mr);
		mr->published = true;
		hca_remap_unlock(&before);
	} else {
		write_row(mr);
	}
	hca_links_mr_published(mr->fabric, mr);
}

static void clear_row(const struct hca_mr *mr)
{
	uint32_t index = mr->key >> HCA_KEY_GEN_BITS;

	atomic_store_explicit(&mr->fabric->table->mr[index].stamp, 0, memory_order_release);
	atomic_store(&mr->fabric->mr[index], NULL);
}

void hca_mr_hide(struct hca_mr *mr)
{
	sigset_t before;

	if (mr->moved.listed) {
		hca_remap_lock(&before);
		clear_row(mr);
		mr->published = false;
		hca_remap_unlock(&before);
	} else {
		clear_row(mr);
	}
	hca_links_mr_withdrawn(mr->fabric);
}

/* A window that its peer has invalidated stays so under a new stamp (hca_mw_invalidate_theirs). */
static void take_along(struct hca_mr *mr, uint64_t old, uint64_t stamp)
{
	_Atomic uint64_t *invalidated = &mr->fabric->self->invalidated[mr->key >> HCA_KEY_GEN_BITS];

	if (mr->qpn && atomic_load(invalidated) == old)
		atomic_store(invalidated, stamp);
}

/* The row keeps a stamp throughout: concurrent look-ups by peers must find it. */
void hca_mr_moved(struct hca_moved *m)
{
	struct hca_mr *mr = hca_container(m, struct hca_mr, moved);
	struct hca_shm_mr *shm = &mr->fabric->table->mr[mr->key >> HCA_KEY_GEN_BITS];
	uint64_t old, stamp;

	if (!mr->published)
		return;			/* hca_mr_publish will see */
	atomic_store(&shm->moving, m->moving);
	if (mr->mapped == m->start && mr->mapped_end == m->end)
		return;
	mr->mapped = m->start;
	mr->mapped_end = m->end;
	hca_put(shm->mapped, m->start);
	hca_put(shm->mapped_end, m->end);
	old = atomic_load(&shm->stamp);
	stamp = next_stamp(mr);
	atomic_store(&shm->stamp, stamp);
	take_along(mr, old, stamp);
}

/* When this returns, no process uses the row any more. */
static void mr_withdraw(struct hca_mr *mr)
{
	hca_mr_hide(mr);
	hca_links_quiesce(mr->fabric, NULL);
}

/* ---- Memory -------------------------------------------------------------- */

/* Check that the memory exists, and find the part that peers can map. */
static int find_memory(struct hca_mr *mr, void *addr, size_t bytes)
{
	const enum softhca_remap remap = mr->fabric->remap;
	const bool may = (remap == SOFTHCA_REMAP_AUTO || remap == SOFTHCA_REMAP_ALWAYS) &&
			 hca_remap_watch();
	int rc;

	mr->mapped = mr->mapped_end = 0;
	mr->moved.changed = hca_mr_moved;
	if ((uintptr_t)addr > UINTPTR_MAX - bytes)
		return EINVAL;
	if (hca_memory_in_arena(addr, bytes)) {
		mr->mapped = (uintptr_t)addr;
		mr->mapped_end = (uintptr_t)addr + bytes;
		return 0;
	}
	if (may && hca_remap_again(&mr->moved, addr, bytes))
		return 0;
	rc = hca_maps_check(addr, bytes, mr->access & IBV_ACCESS_LOCAL_WRITE);
	if (!rc && may)
		hca_remap(&mr->moved, addr, bytes, remap == SOFTHCA_REMAP_ALWAYS);
	if (!rc && !mr->moved.listed)
		hca_moved_none(&mr->moved, addr, bytes);
	return rc;
}

static void set_pd(struct hca_mr *mr, struct ibv_pd *pd)
{
	mr->ibv.pd = pd;
	mr->pd = mr->remote_pd = hca_pd_of(pd)->id;
	atomic_fetch_add(&hca_pd_of(pd)->objects, 1);
}

static struct ibv_mr *fail_with(struct hca_mr *mr, int err)
{
	if (mr)
		hca_moved_drop(&mr->moved);
	free(mr);
	errno = err;
	return NULL;
}

static struct hca_mr *mr_new(struct ibv_pd *pd, enum hca_mr_kind kind, unsigned access)
{
	struct hca_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->fabric = hca_pd_of(pd)->fabric;
	mr->kind = kind;
	mr->access = access;
	mr->ibv.context = pd->context;
	return mr;
}

/* Claim a key for a registration whose memory is known, and publish it. */
static int mr_enter(struct hca_mr *mr, struct ibv_pd *pd)
{
	int rc = hca_mr_claim_key(mr->fabric, &mr->key);

	if (rc)
		return rc;
	mr->ibv.lkey = mr->ibv.rkey = mr->key;
	mr->ibv.handle = mr->key >> HCA_KEY_GEN_BITS;
	set_pd(mr, pd);
	hca_mr_publish(mr);
	return 0;
}

/* ---- The verbs ----------------------------------------------------------- */

struct ibv_mr *hca_mr_reg(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova,
			  unsigned access)
{
	int rc = check_access(access);
	struct hca_mr *mr = rc ? NULL : mr_new(pd, HCA_MR_MEMORY, access);

	if (!mr)
		return fail_with(NULL, rc ? rc : ENOMEM);
	mr->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	mr->base = mr->ibv.addr = addr;
	mr->length = mr->ibv.length = bytes;
	rc = find_memory(mr, addr, bytes);
	if (!rc)
		rc = mr_enter(mr, pd);
	return rc ? fail_with(mr, rc) : &mr->ibv;
}

/* Is it memory exported by a device driver?  The descriptor's name in /proc has the type. */
static bool is_dmabuf(int fd)
{
	static const char begins[] = "/dmabuf:";
	char path[40], name[sizeof(begins)] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return hca_proc_link(path, name, sizeof(name)) >= (ssize_t)sizeof(begins) - 1 &&
	       memcmp(name, begins, sizeof(begins) - 1) == 0;
}

struct ibv_mr *hca_mr_reg_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
				 int fd, unsigned access)
{
	const int prot = PROT_READ | (access & IBV_ACCESS_LOCAL_WRITE ? PROT_WRITE : 0);
	const uint64_t lead = offset % hca_page_bytes();
	int rc = check_access(access);
	struct hca_mr *mr;
	void *at;

	if (!rc && (!bytes || offset > INT64_MAX || bytes > SIZE_MAX - lead))
		rc = EINVAL;
	if (!rc && !is_dmabuf(fd))
		rc = fcntl(fd, F_GETFD) < 0 ? EBADF : EINVAL;
	mr = rc ? NULL : mr_new(pd, HCA_MR_DMABUF, access);
	if (!mr)
		return fail_with(NULL, rc ? rc : ENOMEM);
	/* EINVAL, ENODEV: the exporter does not let processors see the memory. */
	at = mmap(NULL, bytes + lead, prot, MAP_SHARED, fd, (off_t)(offset - lead));
	if (at == MAP_FAILED)
		return fail_with(mr, errno);
	mr->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	mr->base = (unsigned char *)at + lead;
	mr->length = mr->ibv.length = bytes;
	mr->ibv.addr = (void *)(uintptr_t)offset;	/* like libibverbs */
	rc = mr_enter(mr, pd);
	if (rc) {
		munmap(at, bytes + lead);
		return fail_with(mr, rc);
	}
	return &mr->ibv;
}

static void unmap_dmabuf(const struct hca_mr *mr)
{
	const uint64_t lead = (uintptr_t)mr->base % hca_page_bytes();

	munmap(mr->base - lead, mr->length + lead);
}

int hca_mr_dereg(struct ibv_mr *ibv)
{
	struct hca_mr *mr = hca_mr_of(ibv);

	if (mr->kind == HCA_MR_IMPORTED)
		return EINVAL;
	if (atomic_load(&mr->windows) && hca_mw_count(mr))
		return EBUSY;
	mr_withdraw(mr);
	hca_moved_drop(&mr->moved);
	hca_mr_release_key(mr->fabric, mr->key);
	if (mr->kind == HCA_MR_DMABUF)
		unmap_dmabuf(mr);
	if (mr->dm)
		atomic_fetch_sub(&mr->dm->objects, 1);
	atomic_fetch_sub(&hca_pd_of(ibv->pd)->objects, 1);
	free(mr);
	return 0;
}

/* ---- Reregistration ------------------------------------------------------ */

/* The registration after the request; 0 or an errno value. */
static int rereg_plan(const struct hca_mr *mr, struct hca_mr *to, int flags, struct ibv_pd *pd,
		      void *addr, size_t bytes, unsigned access)
{
	*to = (struct hca_mr){ .fabric = mr->fabric, .access = mr->access, .iova = mr->iova,
			       .base = mr->base, .length = mr->length };
	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		int rc = check_access(access);

		if (rc)
			return rc;
		to->access = access;
	}
	if ((flags & IBV_REREG_MR_CHANGE_PD) && pd->context != mr->ibv.context)
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		to->base = addr;
		to->length = bytes;
		to->iova = to->access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
		return find_memory(to, addr, bytes);
	}
	return hca_maps_check(to->base, to->length, to->access & IBV_ACCESS_LOCAL_WRITE);
}

int hca_mr_rereg(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t bytes,
		 int access)
{
	struct hca_mr *mr = hca_mr_of(ibv), to;
	struct ibv_pd *old = ibv->pd;

	if (mr->kind != HCA_MR_MEMORY || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) ||
	    ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!bytes || !addr)) ||
	    ((flags & IBV_REREG_MR_CHANGE_PD) && !pd) ||
	    (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	errno = atomic_load(&mr->windows) && hca_mw_count(mr) ? EBUSY :
		rereg_plan(mr, &to, flags, pd, addr, bytes, (unsigned)access);
	if (errno)
		return IBV_REREG_MR_ERR_CMD;
	mr_withdraw(mr);
	mr->access = to.access;
	mr->iova = to.iova;
	mr->base = to.base;
	mr->length = to.length;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->mapped = to.mapped;
		mr->mapped_end = to.mapped_end;
		hca_moved_replace(&mr->moved, &to.moved);
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		ibv->addr = addr;
		ibv->length = bytes;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		set_pd(mr, pd);
		atomic_fetch_sub(&hca_pd_of(old)->objects, 1);
	}
	hca_mr_publish(mr);
	return 0;
}

/* ---- Importing ----------------------------------------------------------- */

/* The address of an imported registration is unknown, like in libibverbs. */
struct ibv_mr *hca_mr_import(struct ibv_pd *pd, uint32_t handle)
{
	struct hca_fabric *f = hca_pd_of(pd)->fabric;
	struct hca_mr *mr = mr_new(pd, HCA_MR_IMPORTED, 0), *found;
	int err = 0;

	if (!mr)
		return fail_with(NULL, ENOMEM);
	hca_contexts_lock();
	found = handle < HCA_MRS_MAX ? atomic_load(&f->mr[handle]) : NULL;
	if (!found || found->kind == HCA_MR_WINDOW || found->pd != hca_pd_of(pd)->id ||
	    hca_context_of(found->ibv.context)->file != hca_context_of(pd->context)->file)
		err = ENOENT;
	else
		mr->ibv = (struct ibv_mr){ .context = pd->context, .pd = pd,
					   .length = found->ibv.length, .lkey = found->key,
					   .rkey = found->key, .handle = handle };
	hca_contexts_unlock();
	return err ? fail_with(mr, err) : &mr->ibv;
}

void hca_mr_unimport(struct ibv_mr *ibv)
{
	if (hca_mr_of(ibv)->kind == HCA_MR_IMPORTED)
		free(hca_mr_of(ibv));
}
