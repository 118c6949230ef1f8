/*
 * wr.c - the second interface for posting: ibv_wr_start, ibv_wr_rdma_write, ...,
 * ibv_wr_complete.  The calls write ordinary work requests into a batch of the
 * queue pair; ibv_wr_complete posts them all or none.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "softhca/engine/engine.h"
#include "softhca/engine/post.h"
#include "softhca/engine/wr.h"

struct hca_batch {
	struct ibv_send_wr *wr;		/* a request per slot of the send queue */
	struct ibv_sge *sge;		/* sge_max per request */
	unsigned char *bytes;		/* inline_max per request */
	size_t bytes_stride, bytes_size;
	uint32_t count, room;
	int error;
	/*
	 * Held from start to complete or abort.  The queue pair's lock would not do: the engine,
	 * which may run meanwhile in a verb on another object, takes it.
	 */
	struct hca_lock lock;
};

static struct hca_qp *qp_of(struct ibv_qp_ex *qp)
{
	return (struct hca_qp *)(void *)qp;
}

/* ---- One request after the other ----------------------------------------- */

static struct ibv_send_wr *batch_next(struct ibv_qp_ex *ibv, enum ibv_wr_opcode op)
{
	struct hca_batch *b = qp_of(ibv)->batch;
	struct ibv_send_wr *wr = &b->wr[b->count < b->room ? b->count : 0];

	if (b->count == b->room)
		b->error = ENOMEM;
	else
		b->count++;
	wr->wr_id = ibv->wr_id;
	wr->send_flags = ibv->wr_flags & ~(unsigned)IBV_SEND_INLINE;
	wr->opcode = op;
	wr->num_sge = 0;
	return wr;
}

/* The request that is being written, with its SGEs, to be filled. */
static struct ibv_send_wr *current(struct hca_qp *qp, struct ibv_sge **sge)
{
	struct hca_batch *b = qp->batch;
	uint32_t at = b->count ? b->count - 1 : 0;

	*sge = &b->sge[(size_t)at * qp->sq.sge_max];
	b->wr[at].sg_list = *sge;
	return &b->wr[at];
}

static void rdma(struct ibv_qp_ex *ibv, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
		 __be32 imm)
{
	struct ibv_send_wr *wr = batch_next(ibv, op);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
	wr->imm_data = imm;
}

static void wr_rdma_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr)
{
	rdma(ibv, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr, __be32 imm)
{
	rdma(ibv, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr)
{
	rdma(ibv, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void wr_send(struct ibv_qp_ex *ibv)
{
	batch_next(ibv, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ibv, __be32 imm)
{
	batch_next(ibv, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void atomic(struct ibv_qp_ex *ibv, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
		   uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = batch_next(ibv, op);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr,
			      uint64_t compare, uint64_t swap)
{
	atomic(ibv, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr, uint64_t add)
{
	atomic(ibv, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

/* ---- Memory windows and keys --------------------------------------------- */

static void wr_send_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	batch_next(ibv, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	batch_next(ibv, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ibv, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = batch_next(ibv, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

/* ---- Its data ------------------------------------------------------------ */

static void wr_set_sge_list(struct ibv_qp_ex *ibv, size_t count, const struct ibv_sge *list)
{
	struct hca_qp *qp = qp_of(ibv);
	struct ibv_sge *sge;
	struct ibv_send_wr *wr = current(qp, &sge);

	if (count > qp->sq.sge_max) {
		qp->batch->error = EINVAL;
		return;
	}
	memcpy(sge, list, count * sizeof(*list));
	wr->num_sge = (int)count;
}

static void wr_set_sge(struct ibv_qp_ex *ibv, uint32_t lkey, uint64_t addr, uint32_t bytes)
{
	struct ibv_sge *sge;
	struct ibv_send_wr *wr = current(qp_of(ibv), &sge);

	*sge = (struct ibv_sge){ .addr = addr, .length = bytes, .lkey = lkey };
	wr->num_sge = 1;
}

/* The destination of a datagram. */
static void wr_set_ud_addr(struct ibv_qp_ex *ibv, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge *sge;
	struct ibv_send_wr *wr = current(qp_of(ibv), &sge);

	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = qpn;
	wr->wr.ud.remote_qkey = qkey;
}

/* The buffers are free again when this returns. */
static void wr_set_inline_data_list(struct ibv_qp_ex *ibv, size_t count,
				    const struct ibv_data_buf *list)
{
	struct hca_qp *qp = qp_of(ibv);
	struct hca_batch *b = qp->batch;
	struct ibv_sge *sge;
	struct ibv_send_wr *wr = current(qp, &sge);
	unsigned char *to = b->bytes + (size_t)(wr - b->wr) * b->bytes_stride;
	size_t used = 0, i;

	for (i = 0; i < count; i++) {
		if (list[i].length > qp->sq.inline_max - used) {
			b->error = EINVAL;
			return;
		}
		memcpy(to + used, list[i].addr, list[i].length);
		used += list[i].length;
	}
	*sge = (struct ibv_sge){ .addr = (uintptr_t)to, .length = (uint32_t)used };
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ibv, void *addr, size_t bytes)
{
	const struct ibv_data_buf one = { .addr = addr, .length = bytes };

	wr_set_inline_data_list(ibv, 1, &one);
}

/* ---- The batch: held by one thread from start to complete or abort ------- */

static void batch_start(struct ibv_qp_ex *ibv)
{
	struct hca_qp *qp = qp_of(ibv);

	if (hca_engine_due(qp->fabric))
		hca_engine_run_for_post(qp->fabric);
	hca_lock(&qp->batch->lock);
	qp->batch->count = 0;
	qp->batch->error = 0;
}

static int batch_complete(struct ibv_qp_ex *ibv)
{
	struct hca_qp *qp = qp_of(ibv);
	struct hca_batch *b = qp->batch;
	int rc = b->error;

	hca_lock(&qp->lock);
	if (hca_qp_state(qp) < IBV_QPS_RTS)
		rc = EINVAL;
	if (!rc)
		rc = hca_post_batch(qp, b->wr, b->count);
	hca_unlock(&qp->lock);
	hca_unlock(&b->lock);
	return rc;
}

static void wr_abort(struct ibv_qp_ex *ibv)
{
	hca_unlock(&qp_of(ibv)->batch->lock);
}

/* ---- Creation ------------------------------------------------------------ */

/* Every operation of ibv_post_send can be posted in a batch as well. */
uint64_t hca_batch_ops(enum ibv_qp_type type)
{
	static const struct {
		uint64_t flag;
		enum ibv_wr_opcode op;
	} all[] = {
		{ IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE },
		{ IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM },
		{ IBV_QP_EX_WITH_SEND, IBV_WR_SEND },
		{ IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM },
		{ IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ },
		{ IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP },
		{ IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD },
		{ IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV },
		{ IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW },
		{ IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV },
	};
	const uint32_t operations = hca_operations(type);
	uint64_t flags = 0;
	unsigned i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (operations & 1u << all[i].op)
			flags |= all[i].flag;
	return flags;
}

void hca_batch_free(struct hca_qp *qp)
{
	struct hca_batch *b = qp->batch;

	if (!b)
		return;
	if (b->bytes)
		munmap(b->bytes, b->bytes_size);
	free(b->sge);
	free(b->wr);
	free(b);
	qp->batch = NULL;
}

int hca_batch_make(struct hca_qp *qp)
{
	struct hca_batch *b = calloc(1, sizeof(*b));
	struct ibv_qp_ex *ex = &qp->ibv;
	void *bytes;

	if (!b)
		return ENOMEM;
	qp->batch = b;
	b->room = qp->sq.depth;
	b->bytes_stride = hca_align_up(qp->sq.inline_max ? qp->sq.inline_max : 1, HCA_LINE);
	b->bytes_size = b->room * b->bytes_stride;
	b->wr = calloc(b->room, sizeof(*b->wr));
	b->sge = calloc((size_t)b->room * qp->sq.sge_max, sizeof(*b->sge));
	bytes = mmap(NULL, b->bytes_size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes != MAP_FAILED)
		b->bytes = bytes;
	if (!b->wr || !b->sge || !b->bytes) {
		hca_batch_free(qp);
		return ENOMEM;
	}
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_start = batch_start;
	ex->wr_complete = batch_complete;
	ex->wr_abort = wr_abort;
	return 0;
}

struct ibv_qp_ex *hca_qp_to_ex(struct ibv_qp *ibv)
{
	struct hca_qp *qp = hca_qp_of(ibv);

	return qp->batch ? &qp->ibv : NULL;
}
