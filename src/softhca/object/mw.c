/* mw.c - memory windows. */
#include <stdlib.h>

#include "softhca/object/link.h"
#include "softhca/object/mr.h"
#include "softhca/object/mw.h"
#include "softhca/pages/landing.h"

enum { TAG = 0xff };		/* the part of a key that changes with each binding */

static struct hca_mw *mw_of(struct ibv_mw *mw)
{
	return (struct hca_mw *)(void *)mw;
}

/* ---- Bound or not -------------------------------------------------------- */

/* Close a bound window; the copy service no longer uses it on return.  fabric.slow held. */
static void unbind(struct hca_mw *mw)
{
	hca_mr_hide(&mw->row);
	hca_moved_drop(&mw->row.moved);
	atomic_fetch_sub(&mw->under->windows, 1);
	mw->under = NULL;
}

/* Is it bound?  The peer may have invalidated it.  fabric.slow held. */
static bool mw_is_bound(struct hca_mw *mw)
{
	if (mw->under && !hca_mr_is_valid(&mw->row))
		unbind(mw);
	return mw->under;
}

static struct hca_mw *window_at(struct hca_fabric *f, uint32_t index)
{
	struct hca_mr *row = index < HCA_MRS_MAX ? atomic_load(&f->mr[index]) : NULL;

	return row && row->kind == HCA_MR_WINDOW ? hca_container(row, struct hca_mw, row) : NULL;
}

int hca_mw_count(struct hca_mr *mr)
{
	struct hca_fabric *f = mr->fabric;
	uint32_t i, top = atomic_load(&f->mr_top);

	pthread_mutex_lock(&f->slow);
	for (i = 0; i < top; i++) {
		struct hca_mw *mw = window_at(f, i);

		if (mw && mw->under == mr)
			mw_is_bound(mw);
	}
	pthread_mutex_unlock(&f->slow);
	return atomic_load(&mr->windows);
}

/* ---- Invalidation by the peer -------------------------------------------- */

bool hca_mw_is_open(const struct hca_shm_mr *row, const _Atomic uint64_t *invalidated,
		    uint32_t rkey, uint32_t qpn, uint32_t pd)
{
	uint64_t stamp = atomic_load(&row->stamp);
	bool theirs = hca_get(row->qpn) == qpn && hca_get(row->pd) == pd;

	/* The words belong to this stamp only if it is still the same. */
	return rkey && (uint32_t)stamp == rkey && qpn && theirs &&
	       (uint32_t)hca_get(row->stamp) == rkey && atomic_load(invalidated) != stamp;
}

void hca_mw_invalidate_open(const struct hca_shm_mr *row, _Atomic uint64_t *invalidated,
			    uint32_t rkey)
{
	uint64_t stamp = atomic_load(&row->stamp), seen;
	int tries;

	/* The row may change meanwhile; one of the two processes sees the other's store. */
	for (tries = 0; tries < HCA_CHANGES && (uint32_t)stamp == rkey; tries++) {
		atomic_store(invalidated, stamp);
		seen = stamp;
		stamp = atomic_load(&row->stamp);
		if (stamp == seen)
			return;
	}
}

/* ---- Closing ------------------------------------------------------------- */

/* Unbind a window and wait for its users: qp's peer, or all peers (NULL). */
static void close_window(struct hca_mw *mw, struct hca_qp *qp)
{
	struct hca_fabric *f = mw->row.fabric;
	bool bound;

	pthread_mutex_lock(&f->slow);
	bound = mw_is_bound(mw);
	if (bound)
		unbind(mw);
	pthread_mutex_unlock(&f->slow);
	if (bound)
		hca_links_quiesce(f, qp);
}

/* ---- Creation and destruction -------------------------------------------- */

struct ibv_mw *hca_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct hca_mw *mw;
	int rc;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		errno = EINVAL;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	mw->row.fabric = hca_pd_of(pd)->fabric;
	mw->row.kind = HCA_MR_WINDOW;
	mw->row.remote_pd = hca_pd_of(pd)->id;
	mw->row.ibv.context = pd->context;
	rc = hca_mr_claim_key(mw->row.fabric, &mw->row.key);
	if (rc) {
		free(mw);
		errno = rc;
		return NULL;
	}
	mw->ibv = (struct ibv_mw){ .context = pd->context, .pd = pd, .rkey = mw->row.key,
				   .handle = mw->row.key >> HCA_KEY_GEN_BITS, .type = type };
	pthread_mutex_lock(&mw->row.fabric->slow);
	hca_list_add(&hca_context_of(pd->context)->mws, &mw->link);
	pthread_mutex_unlock(&mw->row.fabric->slow);
	atomic_fetch_add(&hca_pd_of(pd)->objects, 1);
	return &mw->ibv;
}

int hca_mw_dealloc(struct ibv_mw *ibv)
{
	struct hca_mw *mw = mw_of(ibv);

	close_window(mw, NULL);
	pthread_mutex_lock(&mw->row.fabric->slow);
	hca_list_remove(&mw->link);
	pthread_mutex_unlock(&mw->row.fabric->slow);
	hca_mr_release_key(mw->row.fabric, mw->row.key);
	atomic_fetch_sub(&hca_pd_of(ibv->pd)->objects, 1);
	/* The peer may have invalidated it while one of its messages landed here. */
	hca_landings_wait();
	free(mw);
	return 0;
}

/* ---- Binding ------------------------------------------------------------- */

/* Can the window be bound to the registration?  *offset: its begin there. */
static bool may_bind(const struct hca_qp *qp, const struct hca_mw *mw,
		     const struct ibv_mw_bind_info *info, uint64_t *offset)
{
	const unsigned access = info->mw_access_flags;
	const unsigned known = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE |
			       (mw->ibv.type == IBV_MW_TYPE_2 ? IBV_ACCESS_ZERO_BASED : 0);
	const struct hca_mr *mr = info->mr ? hca_mr_of(info->mr) : NULL;

	if (!mr || mr->fabric != qp->fabric || mr->pd != qp->pd || mw->row.remote_pd != qp->pd ||
	    !(mr->access & IBV_ACCESS_MW_BIND) || (access & ~known))
		return false;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	*offset = info->addr - mr->iova;
	return *offset <= mr->length && info->length <= mr->length - *offset;
}

static void fill_row(struct hca_qp *qp, struct hca_mw *mw, const struct ibv_mw_bind_info *info,
		     uint64_t offset, uint32_t tag)
{
	const struct hca_mr *mr = hca_mr_of(info->mr);
	struct hca_mr *row = &mw->row;
	uint64_t start, end;

	row->moved.changed = hca_mr_moved;
	row->key = (row->key & ~(uint32_t)TAG) | (tag & TAG);
	row->qpn = mw->ibv.type == IBV_MW_TYPE_2 ? hca_qpn(qp) : 0;
	row->access = info->mw_access_flags;
	row->iova = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr;
	row->length = info->length;
	row->base = mr->base + offset;
	start = (uintptr_t)row->base;
	end = start + row->length;
	if (mr->moved.listed) {
		hca_moved_part(&row->moved, &mr->moved, start, end);
		return;
	}
	row->mapped = hca_later(mr->mapped, start);
	row->mapped_end = mr->mapped_end < end ? mr->mapped_end : end;
	if (row->mapped >= row->mapped_end)
		row->mapped = row->mapped_end = start;
}

static int bind_window(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	struct hca_mw *mw = mw_of(wr->bind_mw.mw);
	struct hca_fabric *f = qp->fabric;
	uint64_t offset = 0;
	bool bound;

	if (mw->row.fabric != f || (info->length && !may_bind(qp, mw, info, &offset)))
		return IBV_WC_MW_BIND_ERR;
	if (mw->ibv.type == IBV_MW_TYPE_1) {
		close_window(mw, NULL);
		if (!info->length)
			return IBV_WC_SUCCESS;
	}
	pthread_mutex_lock(&f->slow);
	bound = mw_is_bound(mw) || !info->length;
	if (!bound) {
		fill_row(qp, mw, info, offset, wr->bind_mw.rkey);
		mw->under = hca_mr_of(info->mr);
		atomic_fetch_add(&mw->under->windows, 1);
		hca_mr_publish(&mw->row);
	}
	pthread_mutex_unlock(&f->slow);
	if (bound)
		return IBV_WC_MW_BIND_ERR;
	mw->ibv.rkey = mw->row.key;
	return IBV_WC_SUCCESS;
}

static int mw_invalidate(struct hca_qp *qp, uint32_t rkey)
{
	struct hca_mw *mw;
	bool mine;

	pthread_mutex_lock(&qp->fabric->slow);
	mw = window_at(qp->fabric, rkey >> HCA_KEY_GEN_BITS);
	mine = mw && mw->row.key == rkey && mw->row.qpn == hca_qpn(qp) && mw_is_bound(mw);
	pthread_mutex_unlock(&qp->fabric->slow);
	if (!mine)
		return IBV_WC_LOC_QP_OP_ERR;
	close_window(mw, qp);
	return IBV_WC_SUCCESS;
}

int hca_mw_carry_out(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW ? bind_window(qp, wr) :
					      mw_invalidate(qp, wr->invalidate_rkey);
}

int hca_mw_check(const struct ibv_send_wr *wr)
{
	if (wr->num_sge || (wr->send_flags & IBV_SEND_INLINE))
		return EINVAL;
	/* Type 1 goes by ibv_bind_mw. */
	return wr->opcode == IBV_WR_BIND_MW &&
	       (!wr->bind_mw.mw || wr->bind_mw.mw->type != IBV_MW_TYPE_2) ? EINVAL : 0;
}
