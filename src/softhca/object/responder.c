/* responder.c - see responder.h. */
#include "softhca/object/responder.h"

#include <string.h>

#include "softhca/object/atomics.h"
#include "softhca/object/device.h"
#include "softhca/object/mw.h"

/* ---- Reports ------------------------------------------------------------- */

static void wake_waiters(const struct hca_cq *cq)
{
	if (cq->mailbox.wakeup)
		hca_wakeup_send(cq->mailbox.wakeup);
}

/* The engine examines the queue pair; threads that wait for its events run the engine. */
static void alert(struct hca_qp *qp)
{
	hca_fabric_fault(qp->fabric);
	hca_wakeup_send(&hca_context_of(qp->ibv.qp_base.context)->events.wakeup);
	wake_waiters(hca_send_cq(qp));
	wake_waiters(hca_recv_cq(qp));
}

void hca_qp_report(struct hca_qp *qp, uint32_t why)
{
	uint32_t none = 0;

	atomic_compare_exchange_strong(&qp->shm->fault, &none, why);
	if (why == HCA_FAULT_TOLD)
		hca_fabric_fault(qp->fabric);
	else
		alert(qp);
}

void hca_qp_first_arrived(struct hca_qp *qp)
{
	uint32_t expected = HCA_FIRST_EXPECTED;

	if (atomic_load_explicit(&qp->shm->first, memory_order_relaxed) == expected &&
	    atomic_compare_exchange_strong(&qp->shm->first, &expected, HCA_FIRST_ARRIVED))
		alert(qp);
}

/* ---- Receives ------------------------------------------------------------ */

/* Receives of one sender complete in order, so the oldest that is not complete is next. */
static int claim_own(struct hca_qp *qp, struct hca_arrival *a)
{
	struct hca_rq *rq = &qp->rq;
	uint32_t at = atomic_load_explicit(&rq->next, memory_order_relaxed);
	struct hca_shm_recv *r = hca_rq_entry(rq->ring, at, rq->mask, rq->stride);
	uint64_t posted = hca_shm_state(at, HCA_POSTED);

	if (at == atomic_load_explicit(&rq->posted, memory_order_acquire) ||
	    !atomic_compare_exchange_strong_explicit(&r->state, &posted,
		    hca_shm_state(at, hca_shm_claimed(qp->fabric->slot)),
		    memory_order_acquire, memory_order_relaxed))
		return HCA_NO_RECEIVE;
	a->position = at;
	a->recv = r;
	return IBV_WC_SUCCESS;
}

static int claim_shared(struct hca_qp *qp, struct hca_arrival *a)
{
	if (!hca_shared_claim_oldest(&qp->shared->view, qp->fabric->claim, &a->claim))
		return HCA_NO_RECEIVE;
	a->position = a->claim.position;
	a->recv = a->claim.recv;
	if (unlikely(a->claim.alert))
		alert(qp);
	return IBV_WC_SUCCESS;
}

int hca_arrival_claim(struct hca_qp *qp, struct hca_arrival *a)
{
	int rc = qp->shared ? claim_shared(qp, a) : claim_own(qp, a);

	a->claimed = !rc;
	a->count = 0;
	return rc;
}

int hca_arrival_buffers(struct hca_qp *qp, struct hca_arrival *a, uint32_t bytes, int *theirs)
{
	/* volatile: members of the fabric can write to it, so each word is read once */
	const volatile struct hca_shm_recv *r = a->recv;
	const uint32_t most = qp->shared ? qp->shared->sge_max : qp->rq.sge_max;
	const uint32_t pd = qp->shared ? qp->shared->pd : qp->pd;
	uint32_t count = r->sge_count, left = bytes, i;

	a->count = 0;
	for (i = 0; i < count && i < most && left; i++) {
		uint32_t n = r->sge[i].length;
		unsigned char *at;

		if (n > left)
			n = left;
		if (!n)
			continue;
		at = hca_mr_local(qp->fabric, r->sge[i].lkey, pd, IBV_ACCESS_LOCAL_WRITE,
				  r->sge[i].addr, n);
		if (!at) {
			*theirs = IBV_WC_LOC_PROT_ERR;
			return IBV_WC_REM_OP_ERR;
		}
		a->to[a->count++] = (struct iovec){ at, n };
		left -= n;
	}
	if (left) {
		*theirs = IBV_WC_LOC_LEN_ERR;
		return IBV_WC_REM_INV_REQ_ERR;
	}
	return IBV_WC_SUCCESS;
}

void hca_arrival_release(struct hca_qp *qp, struct hca_arrival *a)
{
	uint64_t mine = hca_shm_state(a->position, hca_shm_claimed(qp->fabric->slot));

	a->claimed = false;
	if (qp->shared) {
		hca_shared_unclaim(&qp->shared->view, &a->claim, qp->fabric->claim);
		hca_fabric_fault(qp->fabric);
		return;
	}
	atomic_compare_exchange_strong_explicit(&a->recv->state, &mine,
						hca_shm_state(a->position, HCA_POSTED),
						memory_order_release, memory_order_relaxed);
}

static void pass_own(struct hca_qp *qp, uint32_t next)
{
	struct hca_cq *cq = hca_recv_cq(qp);

	hca_lock(&cq->lock);
	atomic_store_explicit(&qp->rq.next, next, memory_order_relaxed);
	hca_unlock(&cq->lock);
}

static int complete_own(struct hca_qp *qp, const struct hca_arrival *a, struct hca_completion *c)
{
	int rc;

	c->position = a->position;
	c->wr_id = qp->rq.wr_id[a->position & qp->rq.mask];
	/* First: a program that polls it may post the next receives at once. */
	pass_own(qp, a->position + 1);
	rc = hca_cq_add(hca_recv_cq(qp), c);
	if (rc)
		pass_own(qp, a->position);
	return rc;
}

static int complete_shared(struct hca_qp *qp, const struct hca_arrival *a,
			   struct hca_completion *c)
{
	struct hca_shared *s = qp->shared;
	const uint32_t entry = a->claim.entry;
	uint32_t room;
	int rc;

	if (!hca_shared_accept(s, a->position, entry, &c->wr_id, &room))
		return -ESTALE;
	c->position = entry;
	rc = hca_cq_add(hca_recv_cq(qp), c);
	if (rc)
		atomic_store(&s->wr[entry].held, (uint64_t)a->position << 32 | 1);
	else
		hca_shared_done(&a->claim, qp->fabric->claim);
	return rc;
}

int hca_arrival_complete(struct hca_qp *qp, struct hca_arrival *a, const struct hca_arrival_wc *wc)
{
	struct hca_completion c = {
		.visible_ns = qp->rq.visible_ns,
		.qp = qp,
		.bytes = wc->bytes,
		.imm = wc->imm,
		.src_qp = wc->src_qp,
		.slid = wc->slid,
		.sl = wc->sl,
		.status = (uint8_t)wc->status,
		.opcode = (uint8_t)wc->opcode,
		.flags = (uint8_t)wc->flags,
		.receive = true,
		.solicited = wc->solicited,
	};
	int rc = qp->shared ? complete_shared(qp, a, &c) : complete_own(qp, a, &c);

	if (rc == -ENOSPC) {
		hca_arrival_release(qp, a);
		alert(qp);		/* all queue pairs of the completion queue fail */
	}
	a->claimed = false;
	return rc;
}

/* ---- Memory that the peer names ------------------------------------------ */

/* A row of the table, as long as its stamp is the same; windows are bound anew without a wait. */
struct row {
	uint32_t pd, qpn, access;
	uint64_t iova, length;
	unsigned char *base;
};

/* The row of a key, or false: none, or a window that the peer has invalidated.  In a landing. */
static bool read_row(const struct hca_fabric *f, uint32_t key, struct row *row)
{
	const uint32_t index = key >> HCA_KEY_GEN_BITS;
	const struct hca_shm_mr *mr = &f->table->mr[index];
	int tries;

	for (tries = 0; tries < HCA_CHANGES; tries++) {
		const uint64_t stamp = atomic_load_explicit(&mr->stamp, memory_order_acquire);

		*row = (struct row){ hca_get(mr->pd), hca_get(mr->qpn), hca_get(mr->access),
				     hca_get(mr->iova), hca_get(mr->length),
				     (unsigned char *)(uintptr_t)hca_get(mr->addr) };
		if ((uint32_t)stamp != key || !key)
			return false;
		/* The mapped part may change, which leaves the key as it is. */
		if (atomic_load_explicit(&mr->stamp, memory_order_relaxed) == stamp)
			return !row->qpn || atomic_load(&f->self->invalidated[index]) != stamp;
	}
	return false;
}

static unsigned char *address_under_key(const struct hca_qp *qp, uint32_t key, uint64_t addr,
					uint32_t bytes, unsigned need)
{
	uint64_t offset;
	struct row row;

	if (!read_row(qp->fabric, key, &row) || row.pd != qp->pd ||
	    (row.qpn && row.qpn != hca_qpn(qp)) || !(row.access & need))
		return NULL;
	offset = addr - row.iova;
	if (offset > row.length || bytes > row.length - offset)
		return NULL;
	return row.base + offset;
}

/* Does the queue pair answer such requests at all? */
static bool is_answered(const struct hca_qp *qp, unsigned need)
{
	if (need != IBV_ACCESS_REMOTE_WRITE && !qp->attr.max_dest_rd_atomic)
		return false;
	return qp->attr.qp_access_flags & need;
}

unsigned char *hca_remote_address(struct hca_qp *qp, uint32_t rkey, uint64_t addr, uint32_t bytes,
				  unsigned need, int *status)
{
	static unsigned char nothing;
	unsigned char *at;

	*status = IBV_WC_REM_INV_REQ_ERR;
	if (!is_answered(qp, need) || (need == IBV_ACCESS_REMOTE_ATOMIC && addr % HCA_WORD))
		return NULL;
	if (!bytes)
		return &nothing;
	at = address_under_key(qp, rkey, addr, bytes, need);
	if (!at)
		*status = IBV_WC_REM_ACCESS_ERR;
	return at;
}

/* ---- Atomic operations --------------------------------------------------- */

static int under_lock(struct hca_qp *qp, enum ibv_wr_opcode op, unsigned char *at,
		      uint64_t compare_add, uint64_t swap, uint64_t *old)
{
	struct hca_atomic_lock lock;
	uint64_t after;

	if (!hca_atomic_lock(qp->fabric, qp->address, &qp->peer_wait, &lock))
		return HCA_BUSY;
	memcpy(old, at, HCA_WORD);
	after = hca_atomic_result(op, *old, compare_add, swap);
	/* After a long stop of this process the lock may be another's. */
	if (!hca_atomic_lock_holds(&lock))
		return HCA_BUSY;
	if (after != *old)
		memcpy(at, &after, HCA_WORD);
	hca_atomic_unlock(&lock);
	return IBV_WC_SUCCESS;
}

int hca_remote_atomic(struct hca_qp *qp, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
		      uint64_t compare_add, uint64_t swap, uint64_t *old)
{
	int rc = IBV_WC_SUCCESS;
	unsigned char *at;

	hca_landing_begin(qp->fabric);
	at = hca_remote_address(qp, rkey, addr, HCA_WORD, IBV_ACCESS_REMOTE_ATOMIC, &rc);
	if (at && (uintptr_t)at % HCA_WORD == 0 &&
	    hca_atomic_is_mapped(qp->fabric, rkey, (uintptr_t)at)) {
		*old = hca_atomic_on_processor(op, at, compare_add, swap);
		rc = IBV_WC_SUCCESS;
	} else if (at) {
		rc = under_lock(qp, op, at, compare_add, swap, old);
	}
	hca_landing_end(qp->fabric);
	return rc;
}

/* ---- Windows ------------------------------------------------------------- */

/* The own table, which no other process can write; its rows outlive windows. */
bool hca_window_is_peers(const struct hca_qp *qp, uint32_t rkey)
{
	const struct hca_fabric *f = qp->fabric;
	const uint32_t index = rkey >> HCA_KEY_GEN_BITS;

	return atomic_load(&f->mr[index]) &&
	       hca_mw_is_open(&f->table->mr[index], &f->self->invalidated[index], rkey,
			      hca_qpn(qp), qp->pd);
}

void hca_window_invalidate(struct hca_qp *qp, uint32_t rkey)
{
	struct hca_fabric *f = qp->fabric;
	const uint32_t index = rkey >> HCA_KEY_GEN_BITS;

	hca_mw_invalidate_open(&f->table->mr[index], &f->self->invalidated[index], rkey);
}
