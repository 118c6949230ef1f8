/* steps.c - the steps of a message: memory of both ends, a receive, the peer's completion. */
#include "softhca/link/memory/connect.h"
#include "softhca/link/memory/deferred.h"
#include "softhca/link/memory/peer.h"
#include "util/clock.h"
#include "softhca/object/device.h"
#include "softhca/link/memory/steps.h"

/* ---- The local end ------------------------------------------------------- */

int hca_gather_local(struct hca_qp *qp, const struct ibv_send_wr *wr, unsigned first)
{
	const unsigned need = hca_is_answered(wr->opcode) ? IBV_ACCESS_LOCAL_WRITE : 0;
	struct hca_message *m = &qp->message;
	struct hca_span *to = &m->local[first];
	int i;

	for (i = 0; i < wr->num_sge; i++, to++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		*to = (struct hca_span){ .local = (unsigned char *)(uintptr_t)s->addr,
					 .bytes = s->length };
		if ((wr->send_flags & IBV_SEND_INLINE) || !s->length)
			continue;
		to->local = hca_mr_local(qp->fabric, s->lkey, qp->pd, need, s->addr, s->length);
		if (!to->local)
			return IBV_WC_LOC_PROT_ERR;
	}
	m->local_count = first + (unsigned)wr->num_sge;
	return IBV_WC_SUCCESS;
}

/* ---- The remote end ------------------------------------------------------ */

/* Add the piece up to `to`, if not empty; returns where the range goes on. */
static uint64_t add_piece(struct hca_message *m, const struct hca_remote_mr *mr, uint64_t from,
			  uint64_t to, bool mapped)
{
	if (from >= to)
		return from;
	m->remote[m->remote_count++] = (struct hca_span){
		.local = mapped ? mr->base + (from - mr->mapped) : NULL,
		.remote = mr->addr + from,
		.bytes = to - from,
		.key = (uint32_t)mr->stamp,
	};
	return to;
}

static bool add_range(struct hca_message *m, const struct hca_remote_mr *mr, uint64_t addr,
		      uint32_t bytes, unsigned need)
{
	uint64_t at, end;

	mr = hca_remote_range(mr, addr, bytes, need, &at);
	if (!mr)
		return false;
	end = at + bytes;
	if (mr->mapped_end > at && mr->mapped < end) {
		at = add_piece(m, mr, at, mr->mapped, false);
		at = add_piece(m, mr, at, mr->mapped_end < end ? mr->mapped_end : end, true);
	}
	add_piece(m, mr, at, end, false);
	return true;
}

/* The rights that the responder's queue pair and registration must grant. */
static unsigned access_needed(enum ibv_wr_opcode op)
{
	if (hca_is_atomic(op))
		return IBV_ACCESS_REMOTE_ATOMIC;
	return op == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

/* RDMA: the request names one range.  An empty range is not checked. */
int hca_find_range(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	const unsigned need = access_needed(wr->opcode);
	const bool atomic = hca_is_atomic(wr->opcode);
	uint64_t addr = atomic ? wr->wr.atomic.remote_addr : wr->wr.rdma.remote_addr;
	uint32_t rkey = atomic ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
	struct hca_message *m = &qp->message;
	struct hca_conn *c = qp->message.to;

	m->remote_count = 0;
	/* A request that the peer's queue pair never answers is invalid. */
	if (hca_is_answered(wr->opcode) && !hca_get(c->shm->reads))
		return IBV_WC_REM_INV_REQ_ERR;
	if (!(atomic_load_explicit(&c->shm->access, memory_order_relaxed) & need))
		return IBV_WC_REM_INV_REQ_ERR;
	if (atomic && addr % 8)
		return IBV_WC_REM_INV_REQ_ERR;
	if (m->bytes && !add_range(m, hca_conn_mr(c, rkey), addr, m->bytes, need))
		return IBV_WC_REM_ACCESS_ERR;
	return IBV_WC_SUCCESS;
}

/*
 * Claim the peer's next receive.  The claim is valid until the completion for it is in
 * the peer's mailbox, or the peer revokes it.
 */
static int claim_own(struct hca_qp *qp)
{
	struct hca_conn *c = qp->message.to;
	struct hca_shm_recv *r = hca_rq_entry(c->rq, c->rq_head, c->rq_mask, c->rq_stride);
	uint64_t posted = hca_shm_state(c->rq_head, HCA_POSTED);

	if (atomic_load_explicit(&r->state, memory_order_acquire) != posted ||
	    !atomic_compare_exchange_strong_explicit(&r->state, &posted,
		    hca_shm_state(c->rq_head, hca_shm_claimed(qp->fabric->slot)),
		    memory_order_acquire, memory_order_relaxed))
		return HCA_NO_RECEIVE;
	qp->message.claimed = true;
	qp->message.recv = r;
	qp->message.position = c->rq_head++;
	atomic_store_explicit(&c->shm->rq_head, c->rq_head, memory_order_relaxed);
	__builtin_prefetch(hca_rq_entry(c->rq, c->rq_head, c->rq_mask, c->rq_stride), 1);
	return IBV_WC_SUCCESS;
}

static int claim_shared(struct hca_qp *qp)
{
	struct hca_message *m = &qp->message;
	struct hca_conn *c = m->to;

	if (!hca_shared_claim_oldest(&c->shared, qp->fabric->claim, &m->claim))
		return HCA_NO_RECEIVE;
	m->claimed = true;
	m->position = m->claim.position;
	m->recv = m->claim.recv;
	if (unlikely(m->claim.alert))
		hca_peer_alert(c->peer, c->shm);
	return IBV_WC_SUCCESS;
}

int hca_claim_receive(struct hca_qp *qp)
{
	struct hca_conn *c = qp->message.to;

	return c->shared.shm ? claim_shared(qp) : claim_own(qp);
}

/* ---- Receivers that lag --------------------------------------------------- */

enum { LAG_NS = 1000000000 };

/* The number of the peer's receives that have been claimed, as far as is known. */
static uint32_t claimed(const struct hca_conn *c)
{
	const struct hca_shm_shared *s = c->shared.shm;

	return s ? atomic_load_explicit(&s->head, memory_order_relaxed) -
		   atomic_load_explicit(&s->first, memory_order_relaxed)
		 : c->rq_head;
}

/* A receiver that has polled all its receives and is about to post again lags as well. */
bool hca_receiver_may_catch_up(const struct hca_qp *qp, int why)
{
	const struct hca_conn *c = qp->message.to;

	if (why == HCA_BUSY)
		return qp->sq.wait == HCA_NOT_WAITING ||
		       !rg_reached(qp->sq.deadline_ns, rg_now_ns());
	return why == HCA_NO_RECEIVE && c->shm && claimed(c) &&
	       !(c->gave_up && c->gave_up_at == claimed(c));
}

/* The modelled wire would not have waited. */
static void say_that_it_lags(void)
{
	static _Atomic bool said;

	if (!atomic_exchange(&said, true))
		hca_say(
		    "warning: a receiver had no receive posted when a message arrived; the sender "
		    "waits (1 s at most) rather than lose it, so rates are not the model's");
}

bool hca_wait_for_receiver(struct hca_qp *qp)
{
	struct hca_conn *c = qp->message.to;
	struct hca_sq *sq = &qp->sq;
	uint64_t now = rg_now_ns();

	if (sq->wait == HCA_NOT_WAITING) {
		sq->wait = HCA_WAITS_RECEIVE;
		sq->deadline_ns = now + LAG_NS;
		if (qp->pace)
			say_that_it_lags();
	}
	if (!rg_reached(sq->deadline_ns, now))
		return true;
	c->gave_up = true;
	c->gave_up_at = claimed(c);
	return false;
}

/* A message that is dropped releases its receive to the next one. */
void hca_release_receive(struct hca_qp *qp)
{
	struct hca_message *m = &qp->message;
	struct hca_conn *c = m->to;
	struct hca_shm_recv *r = hca_rq_entry(c->rq, m->position, c->rq_mask, c->rq_stride);
	uint64_t mine = hca_shm_state(m->position, hca_shm_claimed(qp->fabric->slot));

	m->claimed = false;
	if (c->shared.shm) {
		hca_shared_unclaim(&c->shared, &m->claim, qp->fabric->claim);
		hca_peer_alert(c->peer, c->shm);
		return;
	}
	c->rq_head = m->position;
	atomic_store_explicit(&c->shm->rq_head, c->rq_head, memory_order_relaxed);
	/* Unless the peer has revoked the claim meanwhile. */
	atomic_compare_exchange_strong_explicit(&r->state, &mine,
						hca_shm_state(m->position, HCA_POSTED),
						memory_order_release, memory_order_relaxed);
}

/* SEND: find the buffers of the claimed receive, as far as they are needed. */
int hca_find_buffers(struct hca_qp *qp, int *their_status)
{
	struct hca_message *m = &qp->message;
	struct hca_conn *c = qp->message.to;
	/* volatile: the peer may change it meanwhile, so each word is read once */
	const volatile struct hca_shm_recv *r = m->recv;
	uint32_t most = (c->rq_stride - (uint32_t)sizeof(*r)) / (uint32_t)sizeof(r->sge[0]);
	uint32_t count = r->sge_count, left = m->bytes, i;

	m->remote_count = 0;
	for (i = 0; i < count && i < most && i < HCA_SGE_MAX && left; i++) {
		uint32_t bytes = r->sge[i].length;

		if (bytes > left)
			bytes = left;
		if (!bytes)
			continue;
		if (!add_range(m, hca_conn_rq_mr(c, r->sge[i].lkey), r->sge[i].addr, bytes,
			       IBV_ACCESS_LOCAL_WRITE)) {
			*their_status = IBV_WC_LOC_PROT_ERR;
			return IBV_WC_REM_OP_ERR;
		}
		left -= bytes;
	}
	if (left) {
		*their_status = IBV_WC_LOC_LEN_ERR;
		return IBV_WC_REM_INV_REQ_ERR;
	}
	return IBV_WC_SUCCESS;
}

/* ---- Telling the peer ---------------------------------------------------- */

static bool has_immediate(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/*
 * Put the entry into the mailbox at its current location.  The mailbox may move meanwhile,
 * if this process was stopped for so long that the owner did not wait: then the entry may
 * never be read.  An entry that is read twice counts once.
 */
static int cqe_put(struct hca_qp *qp, struct hca_conn *c, const struct hca_shm_cqe *cqe)
{
	int rc = -ENOTCONN, tries;

	for (tries = 0; tries < 4; tries++) {
		if (unlikely(atomic_load(&c->shm->cq) != c->cq) &&
		    hca_conn_mailbox(c, c->shm))
			return -ENOTCONN;
		rc = hca_mailbox_put(&c->mailbox, qp->fabric->slot, cqe);
		if (likely(atomic_load(&c->shm->cq) == c->cq))
			break;
	}
	return rc;
}

int hca_complete_receive(struct hca_qp *qp, const struct ibv_send_wr *wr, int status,
			 uint64_t visible_ns)
{
	struct hca_message *m = &qp->message;
	struct hca_conn *c = m->to;
	struct hca_shm_cqe cqe = {
		.visible_ns = visible_ns,
		.qp_index = (uint32_t)(c->shm - c->peer->shm->qp),
		.qpn = c->qpn,
		.position = m->position,
		.entry = m->claim.entry,
		.bytes = m->bytes,
		.src_qp = hca_qpn(qp),
		.status = (uint8_t)status,
		.opcode = hca_is_send(wr->opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.flags = m->flags,
		.slid = m->slid,
		.sl = m->sl,
		.solicited = !!(wr->send_flags & IBV_SEND_SOLICITED),
	};
	int rc;

	if (has_immediate(wr->opcode)) {
		cqe.flags |= IBV_WC_WITH_IMM;
		cqe.imm = wr->imm_data;
	} else if (wr->opcode == IBV_WR_SEND_WITH_INV && status == IBV_WC_SUCCESS) {
		cqe.flags = IBV_WC_WITH_INV;
		cqe.imm = wr->invalidate_rkey;
	}
	m->claimed = false;
	/* A program that sees this completion relies on the writes before it. */
	if (qp->deferred)
		hca_deferred_settle(qp);
	rc = cqe_put(qp, c, &cqe);
	if (!c->shared.shm)
		return rc;
	if (rc)
		hca_release_receive(qp);
	else
		hca_shared_done(&m->claim, qp->fabric->claim);
	return rc;
}

void hca_report_qp_error(struct hca_conn *c, uint32_t why)
{
	uint32_t none = 0;

	atomic_compare_exchange_strong(&c->shm->fault, &none, why);
	if (why == HCA_FAULT_TOLD)
		hca_peer_note(c->peer);
	else
		hca_peer_alert(c->peer, c->shm);
}
