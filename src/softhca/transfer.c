/*
 * transfer.c - carrying out a work request: check both ends, move the bytes,
 * tell the peer.
 */
#include "copy.h"
#include "device.h"
#include "pace.h"

static bool takes_receive(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_send(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM;
}

static bool has_immediate(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* ---- Who is at the other end --------------------------------------------- */

static bool still_there(const struct hca_conn *c)
{
	return hca_likely(c->shm && atomic_load_explicit(&c->shm->gate, memory_order_acquire) ==
					    c->gate);
}

/* 0 with the connection valid inside the section, or a negative transfer result. */
static int reach(struct hca_qp *qp)
{
	int rc;

	if (still_there(&qp->conn))
		return 0;
	if (qp->pace)
		qp->pace->held.count = 0;	/* it was for a connection that is gone */
	rc = hca_conn_resolve(qp);
	if (rc)
		return rc == -ECONNRESET ? HCA_PEER_DIED : HCA_NO_PEER;
	return 0;
}

/* The peer's queue pair has done or met something for which it must stop. */
static void fault(struct hca_conn *c, enum ibv_event_type why)
{
	uint32_t none = 0;

	atomic_compare_exchange_strong(&c->shm->fault, &none, (uint32_t)why + 1);
	hca_peer_alert(c->peer);
}

/* ---- Our end ------------------------------------------------------------- */

static int gather_local(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	const unsigned need = wr->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
	struct hca_message *m = &qp->message;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		m->local[i] = (struct hca_span){ .here = (unsigned char *)(uintptr_t)s->addr,
						 .bytes = s->length };
		if ((wr->send_flags & IBV_SEND_INLINE) || !s->length)
			continue;
		m->local[i].here = hca_mr_local(qp->fabric, s->lkey, qp->pd, need, s->addr,
						s->length);
		if (!m->local[i].here)
			return IBV_WC_LOC_PROT_ERR;
	}
	m->local_count = (unsigned)wr->num_sge;
	return IBV_WC_SUCCESS;
}

/* ---- Their end ----------------------------------------------------------- */

/* A range of the peer's memory, if its registration allows it; where it begins. */
static const struct hca_remote_mr *remote_range(struct hca_conn *c, uint32_t key, uint64_t addr,
						uint32_t bytes, unsigned need, uint64_t *offset)
{
	const struct hca_remote_mr *mr = hca_conn_mr(c, key);

	if (!mr || (mr->access & need) != need)
		return NULL;
	*offset = addr - mr->iova;
	if (*offset > mr->length || bytes > mr->length - *offset)
		return NULL;
	return mr;
}

static bool is_mapped(const struct hca_remote_mr *mr, uint64_t offset, uint32_t bytes)
{
	return offset >= mr->mapped && offset + bytes <= mr->mapped_end;
}

/* The piece up to `to`; what is done and where the range goes on. */
static uint64_t add_piece(struct hca_message *m, const struct hca_remote_mr *mr, uint64_t from,
			  uint64_t to, bool mapped)
{
	if (from >= to)
		return from;
	m->remote[m->remote_count++] = (struct hca_span){
		.here = mapped ? mr->base + (from - mr->mapped) : NULL,
		.there = mr->addr + from,
		.bytes = to - from,
	};
	return to;
}

static bool add_range(struct hca_message *m, struct hca_conn *c, uint32_t key, uint64_t addr,
		      uint32_t bytes, unsigned need)
{
	const struct hca_remote_mr *mr;
	uint64_t at, end;

	mr = remote_range(c, key, addr, bytes, need, &at);
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

/* RDMA: one range, named by the request.  A range of no bytes is not checked. */
static int find_range(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	const bool reading = wr->opcode == IBV_WR_RDMA_READ;
	const unsigned need = reading ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	struct hca_message *m = &qp->message;
	struct hca_conn *c = &qp->conn;

	m->remote_count = 0;
	if (reading && !c->reads)
		return IBV_WC_REM_INV_REQ_ERR;
	if (!(atomic_load_explicit(&c->shm->access, memory_order_relaxed) & need))
		return IBV_WC_REM_ACCESS_ERR;
	if (m->bytes && !add_range(m, c, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, m->bytes, need))
		return IBV_WC_REM_ACCESS_ERR;
	return IBV_WC_SUCCESS;
}

/*
 * Take the peer's next receive.  The claim stands until our completion for it
 * is in the peer's mailbox, or the peer gives up on us.
 */
static int claim_receive(struct hca_qp *qp)
{
	struct hca_conn *c = &qp->conn;
	struct hca_shm_recv *r = hca_rq_entry(c->rq, c->rq_head, c->rq_mask, c->rq_stride);
	uint64_t posted = hca_shm_state(c->rq_head, HCA_POSTED);

	if (atomic_load_explicit(&r->state, memory_order_acquire) != posted ||
	    !atomic_compare_exchange_strong_explicit(&r->state, &posted,
		    hca_shm_state(c->rq_head, hca_shm_claimed(qp->fabric->slot)),
		    memory_order_acquire, memory_order_relaxed))
		return HCA_NO_RECEIVE;
	qp->message.claimed = true;
	qp->message.position = c->rq_head++;
	atomic_store_explicit(&c->shm->rq_head, c->rq_head, memory_order_relaxed);
	__builtin_prefetch(hca_rq_entry(c->rq, c->rq_head, c->rq_mask, c->rq_stride), 1);
	return IBV_WC_SUCCESS;
}

/* SEND: the buffers of the receive that was claimed, as far as they are needed. */
static int find_buffers(struct hca_qp *qp, int *their_status)
{
	struct hca_message *m = &qp->message;
	struct hca_conn *c = &qp->conn;
	/* volatile: the peer may change it under our eyes, so each word is read once */
	const volatile struct hca_shm_recv *r =
		hca_rq_entry(c->rq, m->position, c->rq_mask, c->rq_stride);
	uint32_t most = (c->rq_stride - (uint32_t)sizeof(*r)) / (uint32_t)sizeof(r->sge[0]);
	uint32_t count = r->sge_count, left = m->bytes, i;

	m->remote_count = 0;
	for (i = 0; i < count && i < most && i < HCA_SGE_MAX && left; i++) {
		uint32_t bytes = r->sge[i].length;

		if (bytes > left)
			bytes = left;
		if (!bytes)
			continue;
		if (!add_range(m, c, r->sge[i].lkey, r->sge[i].addr, bytes,
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

static int tell_peer(struct hca_qp *qp, const struct ibv_send_wr *wr, int status,
		     uint64_t visible_ns)
{
	struct hca_conn *c = &qp->conn;
	struct hca_shm_cqe cqe = {
		.visible_ns = visible_ns,
		.qp_index = (uint32_t)(c->shm - c->peer->shm->qp),
		.qpn = qp->dest_qpn,
		.position = qp->message.position,
		.bytes = qp->message.bytes,
		.src_qp = hca_qpn(qp),
		.status = (uint8_t)status,
		.opcode = is_send(wr->opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.solicited = !!(wr->send_flags & IBV_SEND_SOLICITED),
	};

	if (has_immediate(wr->opcode)) {
		cqe.flags = IBV_WC_WITH_IMM;
		cqe.imm = wr->imm_data;
	}
	qp->message.claimed = false;
	/* Whoever sees this completion relies on the writes before it. */
	if (qp->pace)
		hca_held_settle(qp);
	return hca_mailbox_put(&c->mailbox, qp->fabric->slot, &cqe);
}

/* The message failed at the peer: it learns it by its receive or by its state. */
static void fail_at_peer(struct hca_qp *qp, const struct ibv_send_wr *wr, int status, int theirs)
{
	if (status == IBV_WC_SUCCESS || status == IBV_WC_LOC_PROT_ERR)
		return;			/* ours alone */
	if (qp->message.claimed)
		tell_peer(qp, wr, theirs, 0);
	fault(&qp->conn, status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR :
	      status == IBV_WC_REM_INV_REQ_ERR ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_FATAL);
}

/* ---- The steps ----------------------------------------------------------- */

/* Both ends' memory; what the message is for. */
static int locate(struct hca_qp *qp, const struct ibv_send_wr *wr, int *their_status)
{
	if (is_send(wr->opcode))
		return find_buffers(qp, their_status);
	return find_range(qp, wr);
}

/*
 * A write of nothing asks only whether the peer still answers, so it is worth a
 * system call.  Other messages to the memory of the dead succeed until
 * look_for_deaths finds them.
 */
static bool asks_in_vain(const struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	return !bytes && wr->opcode == IBV_WR_RDMA_WRITE &&
	       hca_peer_fate(qp->conn.peer) == HCA_FATE_DEAD;
}

static int begin(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	int rc, theirs = IBV_WC_WR_FLUSH_ERR;

	qp->message.bytes = bytes;
	qp->message.done = 0;
	qp->message.claimed = false;
	if (bytes > HCA_MESSAGE_MAX)
		return IBV_WC_LOC_LEN_ERR;
	if (wr->opcode == IBV_WR_RDMA_READ && !qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	rc = gather_local(qp, wr);
	if (!rc)
		rc = reach(qp);
	if (rc)
		return rc;
	if (hca_unlikely(asks_in_vain(qp, wr, bytes)))
		return HCA_PEER_DIED;
	/* A write that may not be done takes no receive. */
	if (!is_send(wr->opcode))
		rc = locate(qp, wr, &theirs);
	if (!rc && takes_receive(wr->opcode))
		rc = claim_receive(qp);
	if (!rc && is_send(wr->opcode))
		rc = locate(qp, wr, &theirs);
	if (rc > 0)
		fail_at_peer(qp, wr, rc, theirs);
	return rc;
}

static int copy(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	enum hca_direction way =
		wr->opcode == IBV_WR_RDMA_READ ? HCA_FROM_REMOTE : HCA_TO_REMOTE;
	int rc;

	if (!bytes)
		return IBV_WC_SUCCESS;
	rc = hca_copy(qp->conn.peer, &qp->message, way, qp->message.done, bytes);
	if (!rc) {
		qp->message.done += bytes;
		return IBV_WC_SUCCESS;
	}
	if (rc == -ESRCH)
		return HCA_PEER_DIED;
	if (rc == -EPERM)
		hca_say("process %d may not be copied to or from (ptrace restrictions): use the "
			"arena or SOFTHCA_REMAP=always", (int)qp->conn.peer->pid);
	fail_at_peer(qp, wr, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
	return IBV_WC_REM_OP_ERR;
}

static int end(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns)
{
	if (!qp->message.claimed || !tell_peer(qp, wr, IBV_WC_SUCCESS, visible_ns))
		return IBV_WC_SUCCESS;
	fault(&qp->conn, IBV_EVENT_CQ_ERR);
	return IBV_WC_REM_OP_ERR;
}

int hca_transfer_begin(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	int rc;

	hca_section_enter(qp->shm);
	rc = begin(qp, wr, bytes);
	hca_section_leave(qp->shm);
	return rc;
}

/* Time has passed since the message began: is everything still as it was? */
static int look_again(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	int rc, theirs = IBV_WC_WR_FLUSH_ERR;

	if (!still_there(&qp->conn))
		return HCA_NO_PEER;
	rc = gather_local(qp, wr);
	if (!rc)
		rc = locate(qp, wr, &theirs);
	if (rc > 0)
		fail_at_peer(qp, wr, rc, theirs);
	return rc;
}

int hca_transfer_copy(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
		      uint32_t *held)
{
	int rc;

	hca_section_enter(qp->shm);
	rc = look_again(qp, wr);
	if (!rc && held) {
		*held = hca_held_bytes(qp);
		if (*held > bytes)
			*held = bytes;
		bytes -= *held;
	}
	if (!rc) {
		hca_held_avoid(qp);
		rc = copy(qp, wr, bytes);
	}
	hca_section_leave(qp->shm);
	return rc;
}

void hca_transfer_hold(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t held,
		       uint64_t due_ns)
{
	if (!held)
		return;
	hca_section_enter(qp->shm);
	hca_held_add(qp, wr->wr.rdma.rkey, held, due_ns);
	hca_section_leave(qp->shm);
	qp->message.done += held;
}

int hca_transfer_end(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns)
{
	int rc;

	hca_section_enter(qp->shm);
	rc = still_there(&qp->conn) ? end(qp, wr, visible_ns) : IBV_WC_RETRY_EXC_ERR;
	hca_section_leave(qp->shm);
	return rc;
}

/*
 * The commonest message by far: an RDMA write of one piece into mapped memory.
 * HCA_NO_PEER when it is not that: the general way decides.
 */
static int write_short(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	struct hca_conn *c = &qp->conn;
	const struct ibv_sge *sge = wr->sg_list;
	const struct hca_remote_mr *mr;
	const unsigned char *from = (const unsigned char *)(uintptr_t)sge->addr;
	uint64_t at;

	if (!still_there(c) ||
	    !(atomic_load_explicit(&c->shm->access, memory_order_relaxed) &
	      IBV_ACCESS_REMOTE_WRITE))
		return HCA_NO_PEER;
	mr = remote_range(c, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, bytes,
			  IBV_ACCESS_REMOTE_WRITE, &at);
	if (!mr || !is_mapped(mr, at, bytes))
		return HCA_NO_PEER;
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		from = hca_mr_local(qp->fabric, sge->lkey, qp->pd, 0, sge->addr, bytes);
		if (!from)
			return HCA_NO_PEER;
	}
	hca_copy_last_last(mr->base + (at - mr->mapped), from, bytes);
	return IBV_WC_SUCCESS;
}

int hca_transfer(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	int rc = HCA_NO_PEER;

	hca_section_enter(qp->shm);
	if (hca_likely(wr->opcode == IBV_WR_RDMA_WRITE && wr->num_sge == 1 && bytes &&
		       bytes <= HCA_MESSAGE_MAX))
		rc = write_short(qp, wr, bytes);
	if (rc) {
		rc = begin(qp, wr, bytes);
		if (!rc)
			rc = copy(qp, wr, bytes);
		if (!rc)
			rc = end(qp, wr, 0);
	}
	hca_section_leave(qp->shm);
	return rc;
}
