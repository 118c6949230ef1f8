/* post.c - the send queue: the work of ibv_post_send before a message moves. */
#include <string.h>

#include "util/clock.h"
#include "softhca/engine/engine.h"
#include "softhca/engine/flush.h"
#include "softhca/engine/deferred_wait.h"
#include "softhca/engine/pace.h"
#include "softhca/engine/post.h"
#include "softhca/object/ah.h"
#include "softhca/object/mw.h"

/* An operation of the device that this type of queue pair lacks: accepted, then it fails. */
enum { NOT_OF_TYPE = -1 };
#define NO_OPERATION ((enum ibv_wr_opcode)31)

/* ---- Is this a work request? --------------------------------------------- */

static int wrong_operation(const struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->reliable && hca_is_atomic(wr->opcode))
		return EINVAL;		/* atomics=no */
	return (unsigned)wr->opcode < 32 && hca_operations(IBV_QPT_RC) & 1u << wr->opcode
		? NOT_OF_TYPE : EOPNOTSUPP;
}

static int check_rare(const struct ibv_send_wr *wr, uint32_t *bytes)
{
	if (hca_mw_is_local(wr->opcode))
		return hca_mw_check(wr) ? EINVAL : 0;
	if (hca_is_atomic(wr->opcode) && *bytes > 8)
		*bytes = 8;		/* the rest of the buffer is left alone */
	return 0;
}

/* 0 and its length, or an errno as ibv_post_send returns it. */
static int wr_check(const struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t *bytes)
{
	uint64_t sum = 0;
	int i;

	if (unlikely((unsigned)wr->opcode >= 32 || !(qp->operations & 1u << wr->opcode)))
		return wrong_operation(qp, wr);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.sge_max)
		return EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (sum > qp->sq.inline_max || hca_is_answered(wr->opcode))
			return EINVAL;
	} else if (sum > UINT32_MAX) {
		sum = UINT32_MAX;	/* too long as well */
	}
	*bytes = (uint32_t)sum;
	return likely(wr->opcode <= IBV_WR_RDMA_READ) ? 0 : check_rare(wr, bytes);
}

/* ---- Completions and slots ----------------------------------------------- */

static enum ibv_wc_opcode completion_opcode(enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return IBV_WC_SEND;
	}
}

void hca_sq_complete(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t position,
		     uint32_t bytes, int status, uint64_t visible_ns)
{
	struct hca_completion c = {
		.visible_ns = visible_ns,
		.wr_id = wr->wr_id,
		.qp = qp,
		.position = position,
		.bytes = bytes,
		.status = (uint8_t)status,
		.opcode = (uint8_t)completion_opcode(wr->opcode),
	};

	if (status == IBV_WC_SUCCESS && !qp->signal_all && !(wr->send_flags & IBV_SEND_SIGNALED))
		return;
	/* Completions of a queue come in order, whatever their times. */
	if (qp->pace && c.visible_ns < qp->pace->visible_ns)
		c.visible_ns = qp->pace->visible_ns;
	if (hca_cq_add(hca_send_cq(qp), &c))
		hca_fabric_fault(qp->fabric);
}

void hca_sq_pop(struct hca_qp *qp)
{
	struct hca_sq *sq = &qp->sq;
	struct hca_wqe *w = &sq->wqe[hca_sq_oldest(sq) & sq->mask];

	if (qp->datagram && w->wr.wr.ud.ah)
		hca_ah_let_go(w->wr.wr.ud.ah);
	sq->bytes_used -= w->inline_bytes;
	if (!sq->bytes_used)
		sq->bytes_head = 0;
	if (sq->under_way) {
		sq->under_way--;
		sq->answers -= hca_is_answered(w->wr.opcode);
	} else {
		sq->next++;
	}
	sq->wait = HCA_NOT_WAITING;
}

/* ---- Waiting in the queue ------------------------------------------------ */

/*
 * Room for inline data, which must outlive the call.  The ring can hold the largest
 * inline message in every slot, so room never lacks; bytes skipped at its end are
 * freed with the message after the skip.
 */
static unsigned char *take_inline(struct hca_sq *sq, uint32_t bytes, uint32_t *taken)
{
	uint32_t need = (uint32_t)hca_align_up(bytes, 8);
	size_t skip = 0;
	unsigned char *at;

	if (sq->bytes_head + need > sq->bytes_size) {
		skip = sq->bytes_size - sq->bytes_head;
		sq->bytes_head = 0;
	}
	at = sq->bytes + sq->bytes_head;
	sq->bytes_head += need;
	sq->bytes_used += skip + need;
	*taken = (uint32_t)skip + need;
	return at;
}

static void enqueue(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	struct hca_sq *sq = &qp->sq;
	uint32_t at = sq->posted++ & sq->mask;
	struct hca_wqe *w = &sq->wqe[at];
	struct ibv_sge *sge = &sq->sge[(size_t)at * sq->sge_max];
	int i;

	qp->fast = false;
	w->wr = *wr;
	w->wr.next = NULL;
	w->wr.sg_list = sge;
	if (qp->datagram && w->wr.wr.ud.ah)
		hca_ah_hold(w->wr.wr.ud.ah);
	w->bytes = bytes;
	w->inline_bytes = 0;
	w->posted_ns = qp->pace ? rg_now_ns() : 0;
	if ((wr->send_flags & IBV_SEND_INLINE) && bytes) {
		unsigned char *to = take_inline(sq, bytes, &w->inline_bytes);

		*sge = (struct ibv_sge){ .addr = (uintptr_t)to, .length = bytes };
		w->wr.num_sge = 1;
		for (i = 0; i < wr->num_sge; i++) {
			memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
			to += wr->sg_list[i].length;
		}
	} else if (wr->num_sge) {
		memcpy(sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*sge));
	}
}

/* ---- The verb ------------------------------------------------------------ */

static uint32_t slots_free(const struct hca_sq *sq)
{
	return sq->depth - (sq->posted - atomic_load_explicit(&sq->done, memory_order_acquire));
}

static int sq_transfer(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	const struct hca_link_operations *link = qp->link;

	if (wr->opcode == IBV_WR_RDMA_WRITE && wr->num_sge == 1 && bytes && !qp->late &&
	    bytes <= HCA_MESSAGE_MAX && link->write_short(qp, wr, bytes))
		return IBV_WC_SUCCESS;
	return link->transfer_whole(qp, wr, bytes);
}

/* Carry out the request at once if possible; otherwise it waits. */
static void post_checked(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	struct hca_sq *sq = &qp->sq;
	int rc;

	if (likely(qp->fast)) {
		rc = sq_transfer(qp, wr, bytes);
		if (likely(rc >= 0)) {
			hca_sq_complete(qp, wr, sq->posted++, bytes, rc, 0);
			sq->next++;
			if (unlikely(rc))
				hca_sq_fail(qp);
			return;
		}
	}
	enqueue(qp, wr, bytes);
	hca_sq_progress(qp);
}

static void post_wrong(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_send_wr none = { .wr_id = wr->wr_id, .opcode = NO_OPERATION };

	enqueue(qp, &none, 0);
	hca_sq_progress(qp);
}

static int sq_post_one(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	uint32_t bytes;
	int rc = wr_check(qp, wr, &bytes);

	if (unlikely(rc > 0))
		return rc;
	if (unlikely(!slots_free(&qp->sq)))
		return ENOMEM;
	if (unlikely(rc))
		post_wrong(qp, wr);
	else
		post_checked(qp, wr, bytes);
	return 0;
}

int hca_post_local(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	int rc = 0;

	hca_lock(&qp->lock);
	if (hca_qp_state(qp) < IBV_QPS_RTS)
		rc = EINVAL;
	else if (!slots_free(&qp->sq))
		rc = ENOMEM;
	else
		post_checked(qp, wr, 0);
	hca_unlock(&qp->lock);
	return rc;
}

int hca_post_batch(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t count)
{
	const uint32_t first = qp->sq.posted;
	uint32_t bytes, i;
	int rc;

	for (i = 0; i < count; i++) {
		rc = wr_check(qp, &wr[i], &bytes);
		if (rc > 0)
			return rc;
	}
	if (slots_free(&qp->sq) < count)
		return ENOMEM;
	for (i = 0; i < count; i++)
		sq_post_one(qp, &wr[i]);
	if (qp->pace)
		hca_wait_for_deferred(qp, first);
	return 0;
}

/* The verb, for any list of requests. */
static __attribute__((noinline)) int post_list(struct hca_qp *qp, struct ibv_send_wr *wr,
					       struct ibv_send_wr **bad)
{
	const uint32_t first = qp->sq.posted;
	int rc = 0;

	if (unlikely(hca_qp_state(qp) < IBV_QPS_RTS)) {
		rc = EINVAL;
		*bad = wr;
	}
	for (; wr && !rc; wr = wr->next) {
		rc = sq_post_one(qp, wr);
		if (unlikely(rc))
			*bad = wr;
	}
	if (qp->pace)
		hca_wait_for_deferred(qp, first);
	return rc;
}

/*
 * post_list, straight on, for the commonest request: an RDMA write of one piece, inline, with
 * nothing before it.  False: the request is another, or this path cannot carry it out; nothing was
 * done.
 */
static inline bool post_short(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	struct hca_sq *sq = &qp->sq;
	uint32_t bytes;

	if (wr->opcode != IBV_WR_RDMA_WRITE || wr->num_sge != 1 ||
	    !(wr->send_flags & IBV_SEND_INLINE))
		return false;
	bytes = wr->sg_list->length;
	if (bytes - 1 >= sq->short_max || !slots_free(sq) ||
	    !qp->link->write_short(qp, wr, bytes))
		return false;
	sq->next = ++sq->posted;
	if (unlikely(qp->signal_all || wr->send_flags & IBV_SEND_SIGNALED))
		hca_sq_complete(qp, wr, sq->posted - 1, wr->sg_list->length, IBV_WC_SUCCESS, 0);
	return true;
}

/* Returns the first request that remains for post_list; NULL: none. */
static inline struct ibv_send_wr *post_shorts(struct hca_qp *qp, struct ibv_send_wr *wr)
{
	while (wr && likely(post_short(qp, wr)))
		wr = wr->next;
	return wr;
}

int hca_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct hca_qp *qp = hca_qp_of(ibv);
	int rc = 0;

	if (hca_engine_due(qp->fabric))
		hca_engine_run_for_post(qp->fabric);
	hca_lock(&qp->lock);
	if (likely(qp->fast))
		wr = post_shorts(qp, wr);
	if (unlikely(wr))
		rc = post_list(qp, wr, bad);
	hca_unlock(&qp->lock);
	return rc;
}

/* ---- Memory windows of type 1 -------------------------------------------- */

int hca_mw_bind(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = { .wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW,
				  .send_flags = bind->send_flags };
	int rc;

	if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return EINVAL;		/* only type 2 has it */
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind->bind_info;
	rc = hca_post_local(hca_qp_of(ibv), &wr);
	if (!rc)
		mw->rkey = wr.bind_mw.rkey;
	return rc;
}
