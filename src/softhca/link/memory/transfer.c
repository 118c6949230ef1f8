/*
 * transfer.c - carrying out a work request: check both ends, move the bytes,
 * complete the peer's receive.
 */
#include "softhca/base/maps.h"
#include "util/clock.h"
#include "softhca/link/memory/atomic.h"
#include "softhca/link/memory/connect.h"
#include "softhca/link/memory/copy.h"
#include "softhca/link/memory/deferred.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/steps.h"
#include "softhca/link/memory/transfer.h"
#include "softhca/link/memory/ud.h"
#include "softhca/object/device.h"
#include "softhca/object/loss.h"
#include "softhca/object/mw.h"
#include "softhca/object/responder.h"

/* ---- The peer ------------------------------------------------------------ */

/* A first message to a queue pair in RTR raises an event (COMM_EST). */
static void tell_of_first(struct hca_conn *c)
{
	uint32_t expected = HCA_FIRST_EXPECTED;

	if (atomic_load_explicit(&c->shm->first, memory_order_relaxed) == expected &&
	    atomic_compare_exchange_strong(&c->shm->first, &expected, HCA_FIRST_ARRIVED))
		hca_peer_alert(c->peer, c->shm);
}

/* 0 with the connection valid inside the access section, or a negative transfer result. */
static int conn_reach(struct hca_qp *qp)
{
	struct hca_conn *c = qp->message.to;
	int rc;

	if (hca_conn_is_valid(c))
		return 0;
	if (qp->deferred)
		hca_deferred_clear(qp->deferred);	/* their connection is gone */
	rc = hca_conn_resolve(qp, c);
	if (rc)
		return rc == -ECONNRESET ? HCA_PEER_DIED : HCA_NO_PEER;
	tell_of_first(c);
	return 0;
}

/* ---- Telling the peer ---------------------------------------------------- */

/*
 * The message failed at the peer: the receive completes with the error, or the peer enters
 * the error state.  An unreliable message that does not fit or is not allowed is
 * dropped (IBTA 9.9.3, class D); an unusable receive is the peer's fault (class A).
 */
static void fail_at_peer(struct hca_qp *qp, const struct ibv_send_wr *wr, int status, int theirs)
{
	if (status == IBV_WC_SUCCESS || status == IBV_WC_LOC_PROT_ERR)
		return;			/* only a local error */
	if (!qp->reliable && (status != IBV_WC_REM_OP_ERR || !hca_is_send(wr->opcode))) {
		if (qp->message.claimed)
			hca_release_receive(qp);
		return;
	}
	/* An error that a receive completion reports is not also an event (IBTA 11.6.3.2). */
	if (qp->message.claimed && !hca_complete_receive(qp, wr, theirs, 0))
		hca_report_qp_error(qp->message.to, HCA_FAULT_TOLD);
	else
		hca_report_qp_error(qp->message.to, hca_fault_of(status));
}

/* ---- The steps ----------------------------------------------------------- */

/* The memory at the remote end. */
static int locate(struct hca_qp *qp, const struct ibv_send_wr *wr, int *their_status)
{
	if (wr->opcode == IBV_WR_SEND_WITH_INV &&
	    !hca_mw_is_theirs(&qp->conn, wr->invalidate_rkey)) {
		*their_status = IBV_WC_REM_INV_REQ_ERR;
		return IBV_WC_REM_ACCESS_ERR;
	}
	if (hca_is_send(wr->opcode))
		return hca_find_buffers(qp, their_status);
	return hca_find_range(qp, wr);
}

/*
 * A write of no bytes only tests whether the peer still answers, so it is worth a
 * system call.  Other messages to the memory of a dead peer succeed until
 * check_deaths (engine.c) finds the death.
 */
static bool is_probe_of_dead_peer(const struct hca_qp *qp, const struct ibv_send_wr *wr,
				  uint32_t bytes)
{
	return !bytes && wr->opcode == IBV_WR_RDMA_WRITE &&
	       hca_peer_fate(qp->message.to->peer) == HCA_FATE_DEAD;
}

static int message_begin(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	int rc, theirs = IBV_WC_WR_FLUSH_ERR;

	qp->message.bytes = bytes;
	qp->message.done = 0;
	qp->message.lost = false;
	qp->message.claimed = false;
	if (!(qp->operations & 1u << wr->opcode))
		return IBV_WC_LOC_QP_OP_ERR;
	if (bytes > HCA_MESSAGE_MAX)
		return IBV_WC_LOC_LEN_ERR;
	if (hca_is_answered(wr->opcode) && !qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	if (hca_is_atomic(wr->opcode) && bytes != 8)
		return IBV_WC_LOC_LEN_ERR;
	rc = hca_gather_local(qp, wr, 0);
	if (!rc)
		rc = conn_reach(qp);
	if (!rc && !qp->reliable && qp->sq.wait == HCA_NOT_WAITING &&	/* drawn once */
	    hca_loss_lost(qp, qp->message.to->address, bytes))
		rc = HCA_NO_PEER;
	if (rc)
		return rc;
	if (unlikely(is_probe_of_dead_peer(qp, wr, bytes)))
		return HCA_PEER_DIED;
	/* A write that may not be done claims no receive. */
	if (!hca_is_send(wr->opcode))
		rc = locate(qp, wr, &theirs);
	if (!rc && hca_takes_receive(wr->opcode))
		rc = hca_claim_receive(qp);
	if (!rc && hca_is_send(wr->opcode))
		rc = locate(qp, wr, &theirs);
	if (rc > 0)
		fail_at_peer(qp, wr, rc, theirs);
	return rc;
}

/* After a failed copy: is it the local memory that is no longer mapped? */
static bool is_our_fault(const struct hca_message *m, enum hca_direction direction)
{
	unsigned i;

	for (i = 0; i < m->local_count; i++)
		if (hca_maps_check(m->local[i].local, m->local[i].bytes,
				   direction == HCA_FROM_REMOTE))
			return true;
	return false;
}

/* place=late: the second half, then the first one; other processors may look in between. */
static int copy_late(struct hca_qp *qp, uint32_t bytes)
{
	const struct hca_message *m = &qp->message;
	const uint32_t half = bytes / 2;
	int rc = hca_copy(m->to->peer, m, HCA_TO_REMOTE, m->done + half, bytes - half, false);

	rg_yield();
	return rc || !half ? rc : hca_copy(m->to->peer, m, HCA_TO_REMOTE, m->done, half, false);
}

static int copy(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	enum hca_direction direction =
		wr->opcode == IBV_WR_RDMA_READ ? HCA_FROM_REMOTE : HCA_TO_REMOTE;
	int rc;

	if (!bytes)
		return IBV_WC_SUCCESS;
	if (hca_is_atomic(wr->opcode))
		rc = hca_atomic(qp, wr);
	else if (unlikely(qp->late) && direction == HCA_TO_REMOTE)
		rc = copy_late(qp, bytes);
	else
		rc = hca_copy(qp->message.to->peer, &qp->message, direction, qp->message.done,
			      bytes, hca_is_polled_for(wr->opcode));
	if (!rc) {
		qp->message.done += bytes;
		return IBV_WC_SUCCESS;
	}
	if (rc == -ESRCH)
		return HCA_PEER_DIED;
	if (rc == -EBUSY)
		return HCA_BUSY;
	if (rc == -EFAULT && is_our_fault(&qp->message, direction)) {
		if (qp->message.claimed)
			hca_release_receive(qp);
		return IBV_WC_LOC_PROT_ERR;
	}
	if (rc == -EPERM)
		hca_say("process %d may not be copied to or from (ptrace restrictions) and does "
			"not offer to copy itself (SOFTHCA_COPY=kernel?): use the arena or "
			"SOFTHCA_REMAP=always", (int)qp->message.to->peer->pid);
	fail_at_peer(qp, wr, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
	return IBV_WC_REM_OP_ERR;
}

static int message_end(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns)
{
	if (wr->opcode == IBV_WR_SEND_WITH_INV)
		hca_mw_invalidate_theirs(&qp->conn, wr->invalidate_rkey);
	if (!qp->message.claimed || !hca_complete_receive(qp, wr, IBV_WC_SUCCESS, visible_ns))
		return IBV_WC_SUCCESS;
	hca_report_qp_error(qp->message.to, IBV_EVENT_CQ_ERR + 1);
	return IBV_WC_REM_OP_ERR;
}

/* An unreliable queue pair reports local errors only. */
static int outcome(struct hca_qp *qp, int rc)
{
	if (likely(!rc) || qp->reliable || rc == IBV_WC_LOC_LEN_ERR ||
	    rc == IBV_WC_LOC_QP_OP_ERR || rc == IBV_WC_LOC_PROT_ERR)
		return rc;
	if (hca_receiver_may_catch_up(qp, rc))
		return rc;
	qp->message.lost = true;
	return IBV_WC_SUCCESS;
}

int hca_transfer_begin(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	int rc;

	hca_access_section_enter(qp->shm);
	rc = qp->datagram ? hca_ud_begin(qp, wr, bytes) : outcome(qp, message_begin(qp, wr, bytes));
	hca_access_section_leave(qp->shm);
	return rc;
}

void hca_transfer_drop(struct hca_qp *qp)
{
	struct hca_message *m = &qp->message;

	if (m->claimed && m->to->shared.shm)
		hca_release_receive(qp);
	m->claimed = false;
}

/* Time has passed since the message began: check the connection and both ends again. */
static int look_again(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	int rc, theirs = IBV_WC_WR_FLUSH_ERR;

	if (!hca_conn_is_valid(qp->message.to))
		return HCA_NO_PEER;
	rc = hca_gather_local(qp, wr, 0);
	if (!rc)
		rc = locate(qp, wr, &theirs);
	if (rc > 0)
		fail_at_peer(qp, wr, rc, theirs);
	return rc;
}

static int copy_some(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
		     uint32_t *deferred)
{
	int rc = hca_deferred_waits(qp) ? HCA_BUSY : look_again(qp, wr);

	if (rc)
		return rc;
	if (deferred) {
		*deferred = qp->late ? 0 : hca_deferred_bytes(qp);
		if (*deferred > bytes)
			*deferred = bytes;
		bytes -= *deferred;
	}
	hca_deferred_avoid(qp);
	if (deferred && *deferred)
		hca_deferred_make_room(qp);
	return copy(qp, wr, bytes);
}

/*
 * Leave the claimed receive to another message.  A receive queue of one sender is unchanged
 * when its accept token is published again.
 */
static void leave_claim(struct hca_qp *qp)
{
	if (qp->message.claimed && hca_conn_is_valid(qp->message.to)) {
		hca_release_receive(qp);
		qp->message.claimed = false;
	}
	hca_transfer_drop(qp);
}

int hca_transfer_copy(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
		      uint32_t *deferred)
{
	int rc = IBV_WC_SUCCESS;

	if (!qp->message.lost && !qp->datagram) {
		hca_access_section_enter(qp->shm);
		rc = outcome(qp, copy_some(qp, wr, bytes, deferred));
		if (qp->message.lost)
			leave_claim(qp);
		hca_access_section_leave(qp->shm);
	}
	if (qp->message.lost || qp->datagram) {
		qp->message.done += bytes;
		if (deferred)
			*deferred = 0;
	}
	return rc;
}

void hca_transfer_defer(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t deferred,
			uint64_t due_ns)
{
	if (!deferred)
		return;
	hca_access_section_enter(qp->shm);
	hca_deferred_add(qp, wr->wr.rdma.rkey, deferred, due_ns);
	hca_access_section_leave(qp->shm);
	qp->message.done += deferred;
}

int hca_transfer_end(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns)
{
	int rc;

	if (qp->message.lost)
		return IBV_WC_SUCCESS;
	hca_access_section_enter(qp->shm);
	if (qp->datagram) {
		rc = hca_gather_local(qp, wr, 1);	/* time has passed */
		if (!rc)
			rc = hca_ud_end(qp, wr, visible_ns);
	} else if (qp->deferred && hca_deferred_waits(qp)) {
		rc = HCA_BUSY;
	} else {
		/* A peer that is gone does not answer: an error follows the retries. */
		rc = hca_conn_is_valid(qp->message.to) ? message_end(qp, wr, visible_ns) :
							 HCA_NO_PEER;
		rc = outcome(qp, rc);
	}
	hca_access_section_leave(qp->shm);
	return rc;
}

/* The address of a write's target in this process, if allowed and mapped; or NULL. */
static inline unsigned char *write_place(struct hca_conn *c, const struct hca_remote_mr *mr,
					 const struct ibv_send_wr *wr, uint32_t bytes)
{
	uint64_t at;

	if (!(atomic_load_explicit(&c->shm->access, memory_order_relaxed) &
	      IBV_ACCESS_REMOTE_WRITE))
		return NULL;
	mr = hca_remote_range(mr, wr->wr.rdma.remote_addr, bytes, IBV_ACCESS_REMOTE_WRITE, &at);
	return mr && hca_remote_mapped(mr, at, bytes) ? mr->base + (at - mr->mapped) : NULL;
}

static bool write_any(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	struct hca_conn *c = &qp->conn;
	const struct ibv_sge *sge = wr->sg_list;
	const unsigned char *from = (const unsigned char *)(uintptr_t)sge->addr;
	unsigned char *to;

	if (!hca_conn_is_valid(c))
		return false;
	to = write_place(c, hca_conn_mr(c, wr->wr.rdma.rkey), wr, bytes);
	if (to && !(wr->send_flags & IBV_SEND_INLINE))
		from = hca_mr_local(qp->fabric, sge->lkey, qp->pd, 0, sge->addr, bytes);
	if (!to || !from)
		return false;
	hca_copy_last_last(to, from, bytes);
	return true;
}

/* The rest of hca_write_short, for other cases; in the access section. */
static __attribute__((noinline)) bool write_short(struct hca_qp *qp, const struct ibv_send_wr *wr,
						  uint32_t bytes)
{
	bool done = write_any(qp, wr, bytes);

	hca_access_section_leave(qp->shm);
	return done;
}

/* Most writes are lines that a receiver polls, under a cached key: they need no call. */
bool hca_write_short(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	struct hca_conn *c = &qp->conn;
	const struct hca_remote_mr *mr;
	unsigned char *to;

	hca_access_section_enter(qp->shm);
	if (unlikely(bytes != HCA_LINE || !(wr->send_flags & IBV_SEND_INLINE)) ||
	    !hca_conn_is_valid(c))
		return write_short(qp, wr, bytes);
	mr = hca_conn_mr_known(c->mr, wr->wr.rdma.rkey);
	to = likely(mr) ? write_place(c, mr, wr, HCA_LINE) : NULL;
	if (unlikely(!to))
		return write_short(qp, wr, bytes);
	hca_copy_last_last(to, (const unsigned char *)(uintptr_t)wr->sg_list->addr, HCA_LINE);
	hca_access_section_leave(qp->shm);
	return true;
}

static int carry_out(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	int rc;

	if (qp->datagram)
		return hca_ud_send(qp, wr, bytes);
	rc = message_begin(qp, wr, bytes);
	if (!rc)
		rc = copy(qp, wr, bytes);
	if (rc < 0 && qp->message.claimed)
		hca_release_receive(qp);			/* the message starts anew */
	if (!rc)
		rc = message_end(qp, wr, 0);
	return outcome(qp, rc);
}

int hca_transfer_whole(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	int rc;

	if (unlikely(hca_mw_is_local(wr->opcode)))
		return hca_mw_carry_out(qp, wr);
	hca_access_section_enter(qp->shm);
	rc = carry_out(qp, wr, bytes);
	hca_access_section_leave(qp->shm);
	return rc;
}
