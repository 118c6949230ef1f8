/* requester.c - requests of this process: frames that leave, acknowledgements, answers. */
#include "softhca/link/wire/wire.h"

#include "softhca/object/device.h"
#include "softhca/object/fabric.h"
#include "softhca/object/mw.h"
#include "util/clock.h"

enum {
	PAUSE_NS = 4000,	/* short frames within this time leave together ... */
	TOGETHER = 16384,	/* ... or when there are so many bytes of them */
};

/* ---- The local end ------------------------------------------------------- */

/* The memory of a request, from `skip` on: the number of pieces, or -1. */
static int gather(const struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t skip,
		  uint32_t bytes, struct iovec *out)
{
	const unsigned need = hca_is_answered(wr->opcode) ? IBV_ACCESS_LOCAL_WRITE : 0;
	struct iovec all[HCA_SGE_MAX];
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		all[i] = (struct iovec){ (void *)(uintptr_t)s->addr, s->length };
		if ((wr->send_flags & IBV_SEND_INLINE) || !s->length)
			continue;
		all[i].iov_base = hca_mr_local(qp->fabric, s->lkey, qp->pd, need, s->addr,
					       s->length);
		if (!all[i].iov_base)
			return -1;
	}
	return (int)hca_pieces_cut(all, (unsigned)wr->num_sge, skip, bytes, out);
}

/* ---- Frames that leave --------------------------------------------------- */

static enum hca_frame_kind kind_of(enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return HCA_FRAME_WRITE;
	case IBV_WR_RDMA_READ:
		return HCA_FRAME_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return HCA_FRAME_CMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return HCA_FRAME_FETCH_ADD;
	default:
		return HCA_FRAME_SEND;
	}
}

/* The first frame of a request, without its payload. */
static struct hca_frame first_frame(const struct hca_wire_qp *w, const struct ibv_send_wr *wr,
				    uint32_t bytes, uint32_t sequence)
{
	const bool atomic = hca_is_atomic(wr->opcode);
	struct hca_frame f = {
		.kind = (uint8_t)kind_of(wr->opcode), .total = bytes, .sequence = sequence,
		.ack = hca_wire_ack(w),
	};

	if (f.kind != HCA_FRAME_SEND) {
		f.rkey = atomic ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
		f.addr = atomic ? wr->wr.atomic.remote_addr : wr->wr.rdma.remote_addr;
	}
	if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		f.flags |= HCA_FRAME_IMM;
		f.imm = be32toh(wr->imm_data);
	} else if (wr->opcode == IBV_WR_SEND_WITH_INV) {
		f.flags |= HCA_FRAME_INV;
		f.imm = wr->invalidate_rkey;
	}
	if ((f.kind == HCA_FRAME_SEND || f.kind == HCA_FRAME_WRITE) &&
	    (w->qp->signal_all || wr->send_flags & IBV_SEND_SIGNALED))
		f.flags |= HCA_FRAME_AWAITED;
	if ((wr->send_flags & IBV_SEND_SOLICITED) &&
	    (f.kind == HCA_FRAME_SEND || f.flags & HCA_FRAME_IMM))
		f.flags |= HCA_FRAME_SOLICITED;
	return f;
}

/* A request without data of this end: one frame. */
static void put_question(struct hca_wire_qp *w, const struct ibv_send_wr *wr, uint32_t bytes)
{
	struct hca_frame f = first_frame(w, wr, bytes, w->sequence++);
	struct hca_operands operands = { .compare_add = wr->wr.atomic.compare_add };
	unsigned char bytes_of[HCA_OPERANDS_BYTES];
	struct iovec piece = { bytes_of, sizeof(bytes_of) };

	f.flags |= HCA_FRAME_LAST;
	if (hca_is_atomic(wr->opcode)) {
		if (f.kind == HCA_FRAME_CMP_SWAP)
			operands.swap = wr->wr.atomic.swap;
		hca_operands_write(bytes_of, &operands);
		f.bytes = f.total = sizeof(bytes_of);
	}
	hca_stream_put(&w->stream, &f, &piece, 1);
	hca_wire_settle(w);
}

static void put_copied(struct hca_wire_qp *w, const struct ibv_send_wr *wr, uint32_t bytes,
		       const struct iovec *piece, unsigned count)
{
	struct hca_frame f = first_frame(w, wr, bytes, w->sequence++);

	f.flags |= HCA_FRAME_LAST;
	f.bytes = bytes;
	hca_stream_put(&w->stream, &f, piece, count);
	hca_wire_settle(w);
}

/* The end of the current request, which completes it: it leaves with the frame before it, if at all. */
static void put_end(struct hca_wire_qp *w)
{
	const struct hca_frame f = { .kind = HCA_FRAME_CONT, .flags = HCA_FRAME_LAST,
				     .bytes = w->current_bytes - w->current_done, .total = w->current_bytes,
				     .sequence = w->current_sequence, .ack = hca_wire_ack(w) };

	hca_stream_put_after(&w->stream, &f);
	w->current_done += f.bytes;
}

/* The next frames of the current request; false: its memory is not registered any more. */
static bool put_part(struct hca_wire_qp *w)
{
	uint32_t left = w->current_bytes - w->current_done - HCA_STREAM_TAIL;
	struct iovec piece[HCA_SGE_MAX];
	struct hca_frame f = first_frame(w, w->current, w->current_bytes, w->current_sequence);
	int n;

	f.bytes = hca_wire_frame_bytes(w, left);
	n = gather(w->qp, w->current, w->current_done, f.bytes, piece);
	if (n < 0)
		return false;
	if (w->current_done)
		f = (struct hca_frame){ .kind = HCA_FRAME_CONT, .bytes = f.bytes, .total = f.total,
					.sequence = f.sequence, .ack = f.ack };
	hca_stream_put_in_place(&w->stream, &f, piece, (unsigned)n);
	w->current_done += f.bytes;
	w->shown = (struct hca_wire_shown){ .wr = w->current, .end = w->current_done };
	hca_wire_settle(w);
	if (f.bytes == left)
		put_end(w);
	return true;
}

bool hca_wire_own_place(struct hca_wire_qp *w)
{
	const uint32_t begin = w->shown.end - (uint32_t)w->stream.piece_left;
	struct iovec piece[HCA_SGE_MAX];
	int n = gather(w->qp, w->shown.wr, begin, hca_stream_rest(&w->stream), piece);

	if (n >= 0)
		hca_stream_place(&w->stream, piece, (unsigned)n);
	return n >= 0;
}

void hca_wire_send_current(struct hca_wire_qp *w)
{
	if (!w->current || !hca_stream_has_room(&w->stream, HCA_STREAM_END))
		return;
	if (!put_part(w))
		hca_wire_withdraw(w);
	else if (w->current_done == w->current_bytes)
		w->current = NULL;
}

/* ---- Memory that is withdrawn meanwhile ---------------------------------- */

/* A request that has been refused is handed over again, and fails then. */
void hca_wire_withdraw(struct hca_wire_qp *w)
{
	w->current = NULL;
	w->withdrawn = w->current_sequence - w->acked < w->sequence - w->acked;
	if (hca_wire_withdrawn_ends(w))
		hca_wire_owe(w);
}

/* The farewell tells a reliable peer, which abandons the message; an unreliable one finds the end. */
void hca_wire_end_withdrawn(struct hca_wire_qp *w)
{
	struct hca_qp *qp = w->qp;

	while (!qp->reliable && qp->sq.under_way > 1)
		qp->fabric->upcalls->ended(qp, 1);
	w->withdrawn = false;
	qp->fabric->upcalls->failed(qp, IBV_WC_LOC_PROT_ERR);
	if (!qp->reliable)
		hca_wire_begin_anew(w);
}

/* An unreliable request is over once it has left. */
static int put_request(struct hca_wire_qp *w, const struct ibv_send_wr *wr, uint32_t bytes,
		       const struct iovec *piece, unsigned count)
{
	if (hca_is_answered(wr->opcode)) {
		put_question(w, wr, bytes);
		return HCA_UNDERWAY;
	}
	if (bytes <= HCA_STREAM_COPIED) {
		put_copied(w, wr, bytes, piece, count);
		return w->qp->reliable ? HCA_UNDERWAY : IBV_WC_SUCCESS;
	}
	w->current = wr;
	w->current_bytes = bytes;
	w->current_done = 0;
	w->current_sequence = w->sequence++;
	hca_wire_send_current(w);
	return HCA_UNDERWAY;
}

/*
 * Send now, unless others left a moment ago: then the next pass sends.  A request that follows one of the
 * peer, with no other under way, is a reply, and others do not follow it.
 */
static void push_soon(struct hca_wire_qp *w)
{
	struct hca_stream *s = &w->stream;
	const bool replies = w->expected - w->replied == 1 && w->sequence - w->acked == 1;

	w->replied = w->expected;
	if (s->blocked)
		return;
	if (replies || s->piece_left || s->out_end - s->out_at >= TOGETHER ||
	    rg_now_ns() - s->flushed_ns >= PAUSE_NS)
		hca_wire_push(w);
	else
		hca_wire_owe(w);
}

/* There is no stream.  An unreliable message is lost then. */
static int not_open(struct hca_wire_qp *w)
{
	const bool over = w->state == HCA_WIRE_CLOSED || w->state == HCA_WIRE_LEFT ||
			  w->state == HCA_WIRE_REFUSED;

	if (over || (w->deadline_ns && rg_reached(w->deadline_ns, rg_now_ns()))) {
		if (!w->qp->reliable)
			return IBV_WC_SUCCESS;
		return w->state == HCA_WIRE_LEFT ? HCA_NO_PEER : HCA_PEER_DIED;
	}
	w->refused_one = true;
	atomic_store_explicit(&w->wire->look_ns, 0, memory_order_relaxed);
	return HCA_LATER;
}

int hca_wire_transfer(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	struct hca_wire_qp *w = qp->wire;
	struct iovec piece[HCA_SGE_MAX];
	int rc, count;

	if (qp->datagram)
		return hca_wire_datagram(qp, wr, bytes);
	/* Room first: a request that fails ends the stream, within a frame perhaps. */
	if (w->state == HCA_WIRE_OPEN &&
	    (w->current || w->withdrawn || !hca_stream_has_room(&w->stream, HCA_STREAM_COPIED))) {
		w->refused_one = true;
		return HCA_LATER;
	}
	count = gather(qp, wr, 0, bytes, piece);
	if (count < 0)
		return IBV_WC_LOC_PROT_ERR;
	if (w->state != HCA_WIRE_OPEN)
		return not_open(w);
	rc = put_request(w, wr, bytes, piece, (unsigned)count);
	if (rc <= 0)
		push_soon(w);
	return rc;
}

/* ---- Acknowledgements and refusals --------------------------------------- */

/* The oldest request under way. */
static const struct hca_wqe *oldest(const struct hca_qp *qp)
{
	return &qp->sq.wqe[hca_sq_oldest(&qp->sq) & qp->sq.mask];
}

/* Requests that the peer can have carried out: all bytes of them have been put. */
static uint32_t sent(const struct hca_wire_qp *w)
{
	const bool leaving = w->current || w->withdrawn || (w->stream.piece_left && w->shown.wr);
	const uint32_t all = w->sequence - w->acked, before = w->current_sequence - w->acked;

	return leaving && before < all ? before : all;
}

/* Is a READ or an atomic operation among the oldest `count`?  Its answer ends it. */
static bool any_is_answered(const struct hca_sq *sq, uint32_t count)
{
	uint32_t at = hca_sq_oldest(sq);

	for (; sq->answers && count; at++) {
		const struct hca_wqe *wqe = &sq->wqe[at & sq->mask];

		if (hca_is_answered(wqe->wr.opcode))
			return true;
		count -= !wqe->over;
	}
	return false;
}

static void end_oldest(struct hca_wire_qp *w, uint32_t count)
{
	w->acked += count;
	w->qp->fabric->upcalls->ended(w->qp, count);
}

bool hca_wire_acknowledged(struct hca_wire_qp *w, uint32_t ack)
{
	uint32_t count = ack - w->acked;

	if (!count || !w->qp->reliable)
		return true;
	if (count > sent(w) || any_is_answered(&w->qp->sq, count))
		return false;
	end_oldest(w, count);
	return true;
}

/* All from the oldest request on is sent again: nothing of it leaves any more. */
static void rewind_to_oldest(struct hca_wire_qp *w)
{
	w->current = NULL;
	w->withdrawn = false;
	w->sequence = w->acked;
}

static bool takes_receive(enum ibv_wr_opcode op)
{
	return kind_of(op) == HCA_FRAME_SEND || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* The frame has acknowledged all before the refused request. */
bool hca_wire_refused(struct hca_wire_qp *w, const struct hca_frame *f)
{
	struct hca_qp *qp = w->qp;

	if (!qp->reliable || w->acked == w->sequence || f->sequence != w->acked)
		return false;
	if (f->kind == HCA_FRAME_NAK) {
		w->acked++;
		qp->fabric->upcalls->failed(qp, f->aux);
		return true;
	}
	if (!takes_receive(oldest(qp)->wr.opcode))
		return false;
	w->rnr_timer = f->aux;
	rewind_to_oldest(w);
	qp->fabric->upcalls->rewound(qp, HCA_NO_RECEIVE);
	return true;
}

/* ---- Answers ------------------------------------------------------------- */

/* The first frame of an answer, or the next one of the answer that arrives. */
bool hca_wire_answer_begins(struct hca_wire_qp *w, const struct hca_frame *f)
{
	struct hca_wire_arriving *in = &w->reply;
	const struct hca_wqe *asked;

	/* The responder is done with all before. */
	if (!w->qp->reliable || !hca_wire_acknowledged(w, f->sequence))
		return false;
	if (w->state != HCA_WIRE_OPEN)
		return true;
	if (!sent(w))
		return false;
	asked = oldest(w->qp);
	if (in->first.kind != HCA_FRAME_RESPONSE)
		in->done = 0;
	if (!hca_is_answered(asked->wr.opcode) || f->total != asked->bytes ||
	    !hca_frame_follows(f, f->total, in->done))
		return false;
	in->first = *f;
	w->left = f->bytes;
	in->refused = false;
	return true;
}

unsigned hca_wire_answer_place(struct hca_wire_qp *w, struct iovec *piece)
{
	const struct hca_wqe *asked = oldest(w->qp);
	int n = gather(w->qp, &asked->wr, w->reply.done, w->left, piece);

	return n < 0 ? 0 : (unsigned)n;
}

void hca_wire_answer_ends(struct hca_wire_qp *w, const struct hca_frame *f)
{
	struct hca_qp *qp = w->qp;

	if (w->reply.refused) {
		w->acked++;
		qp->fabric->upcalls->failed(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	if (!(f->flags & HCA_FRAME_LAST))
		return;
	w->reply.first.kind = HCA_FRAME_ACK;
	end_oldest(w, 1);
}
