/* responder.c - requests of the peer: where they land, what they are answered. */
#include "softhca/link/wire/wire.h"

#include <errno.h>
#include <string.h>

#include "softhca/object/fabric.h"

/* ---- Refusing ------------------------------------------------------------ */

static bool is_send(const struct hca_frame *f)
{
	return f->kind == HCA_FRAME_SEND;
}

static bool takes_receive(const struct hca_frame *f)
{
	return is_send(f) || (f->kind == HCA_FRAME_WRITE && f->flags & HCA_FRAME_IMM);
}

/* The receive completes with an error of its own. */
static bool fail_receive(struct hca_wire_qp *w, int theirs)
{
	struct hca_arrival_wc wc = { .status = theirs, .opcode = IBV_WC_RECV,
				     .bytes = w->request.first.total, .src_qp = w->qp->conn.qpn };

	return w->request.receive.claimed && !hca_arrival_complete(w->qp, &w->request.receive, &wc);
}

void hca_wire_request_drop(struct hca_wire_qp *w)
{
	if (w->request.receive.claimed)
		hca_arrival_release(w->qp, &w->request.receive);
	w->request.receive.claimed = false;
	w->request.refused = true;
}

/* The error state ends the stream: it waits for the NAK, which waits for room in the kernel. */
static void fail(struct hca_wire_qp *w, int status, uint32_t sequence, uint32_t fault)
{
	w->discards = w->failed = true;
	if (!w->qp->reliable) {
		hca_qp_report(w->qp, fault);
		return;
	}
	hca_wire_refuse(w, HCA_FRAME_NAK, (uint16_t)status, sequence);
	w->fault = fault;
}

/*
 * The message fails: the requester is told, and this queue pair enters the error state.  An
 * unreliable message that does not fit or is not allowed is dropped (IBTA 9.9.3, class D); an
 * unusable receive is this end's fault (class A).
 */
static void refuse(struct hca_wire_qp *w, int status, int theirs)
{
	w->request.refused = true;
	if (!w->qp->reliable && (status != IBV_WC_REM_OP_ERR || !is_send(&w->request.first))) {
		hca_wire_request_drop(w);
		w->expected++;
		return;
	}
	/* An error that a receive completion reports is not also an event (IBTA 11.6.3.2). */
	fail(w, status, w->request.first.sequence,
	     fail_receive(w, theirs) ? HCA_FAULT_TOLD : hca_fault_of(status));
}

/* No receive is posted: the requester sends the message again, after a time. */
static void not_ready(struct hca_wire_qp *w)
{
	w->request.refused = true;
	if (!w->qp->reliable) {
		w->expected++;
		return;
	}
	w->discards = true;
	hca_wire_refuse(w, HCA_FRAME_RNR, w->qp->attr.min_rnr_timer, w->request.first.sequence);
}

void hca_wire_request_refuse(struct hca_wire_qp *w, int status)
{
	refuse(w, status, w->request.theirs);
}

/* ---- A message begins ---------------------------------------------------- */

static unsigned access_of(const struct hca_frame *f)
{
	switch (f->kind) {
	case HCA_FRAME_READ:
		return IBV_ACCESS_REMOTE_READ;
	case HCA_FRAME_CMP_SWAP:
	case HCA_FRAME_FETCH_ADD:
		return IBV_ACCESS_REMOTE_ATOMIC;
	default:
		return IBV_ACCESS_REMOTE_WRITE;
	}
}

static bool is_atomic(const struct hca_frame *f)
{
	return f->kind == HCA_FRAME_CMP_SWAP || f->kind == HCA_FRAME_FETCH_ADD;
}

static bool is_asked(const struct hca_frame *f)
{
	return f->kind == HCA_FRAME_READ || is_atomic(f);
}

/* Is the message allowed, with its memory?  *theirs: the status of its receive. */
static int locate(struct hca_wire_qp *w, int *theirs)
{
	const struct hca_frame *f = &w->request.first;
	int status = IBV_WC_SUCCESS;

	if (f->flags & HCA_FRAME_INV && !hca_window_is_peers(w->qp, f->imm)) {
		*theirs = IBV_WC_REM_INV_REQ_ERR;
		return IBV_WC_REM_ACCESS_ERR;
	}
	if (is_send(f))
		return hca_arrival_buffers(w->qp, &w->request.receive, f->total, theirs);
	if (is_asked(f) && w->answer_count >= w->qp->attr.max_dest_rd_atomic)
		return IBV_WC_REM_INV_REQ_ERR;
	return hca_remote_address(w->qp, f->rkey, f->addr, is_atomic(f) ? 8 : f->total,
				  access_of(f), &status) ? IBV_WC_SUCCESS : status;
}

static void begin(struct hca_wire_qp *w)
{
	const struct hca_frame *f = &w->request.first;
	int rc = IBV_WC_SUCCESS, theirs = IBV_WC_WR_FLUSH_ERR;

	hca_qp_first_arrived(w->qp);
	/* A write that may not be done claims no receive. */
	hca_landing_begin(w->qp->fabric);
	if (!is_send(f))
		rc = locate(w, &theirs);
	if (!rc && takes_receive(f))
		rc = hca_arrival_claim(w->qp, &w->request.receive);
	if (!rc && is_send(f))
		rc = locate(w, &theirs);
	hca_landing_end(w->qp->fabric);
	if (rc == HCA_NO_RECEIVE)
		not_ready(w);
	else if (rc)
		refuse(w, rc, theirs);
}

/* A part of the message that has begun is to follow. */
static bool is_incomplete(const struct hca_wire_arriving *in)
{
	return in->first.kind && !in->refused && !(in->first.flags & HCA_FRAME_LAST);
}

/* A further frame of the message that has begun. */
static bool go_on(struct hca_wire_arriving *in, const struct hca_frame *f)
{
	if (in->refused)
		return true;
	if (!is_incomplete(in) || in->first.sequence != f->sequence ||
	    !hca_frame_follows(f, in->first.total, in->done))
		return false;
	in->first.flags |= f->flags & HCA_FRAME_LAST;
	return true;
}

/* After a refusal frames that had left before it are passed over. */
bool hca_wire_request_begins(struct hca_wire_qp *w, const struct hca_frame *f)
{
	struct hca_wire_arriving *in = &w->request;

	w->left = f->bytes;
	if (f->kind == HCA_FRAME_CONT)
		return go_on(in, f);
	if (w->failed || (w->discards && f->sequence != w->expected)) {
		in->refused = true;
		return true;
	}
	if (f->sequence != w->expected || is_incomplete(in))
		return false;
	w->discards = false;
	in->pause = w->idle;
	in->first = *f;
	in->done = 0;
	in->refused = false;
	begin(w);
	return true;
}

/* ---- A message lands ----------------------------------------------------- */

unsigned hca_wire_request_place(struct hca_wire_qp *w, struct iovec *piece, int *status)
{
	struct hca_wire_arriving *in = &w->request;
	const struct hca_frame *f = &in->first;
	unsigned char *at;

	in->theirs = IBV_WC_WR_FLUSH_ERR;

	if (is_atomic(f)) {
		piece[0] = (struct iovec){ in->word + (sizeof(in->word) - w->left), w->left };
		return 1;
	}
	if (is_send(f)) {
		*status = hca_arrival_buffers(w->qp, &in->receive, f->total, &in->theirs);
		if (!*status)
			return hca_pieces_cut(in->receive.to, in->receive.count, in->done, w->left,
					      piece);
	} else {
		at = hca_remote_address(w->qp, f->rkey, f->addr + in->done, w->left,
					IBV_ACCESS_REMOTE_WRITE, status);
		if (at) {
			piece[0] = (struct iovec){ at, w->left };
			return 1;
		}
	}
	return 0;
}

static void complete_receive(struct hca_wire_qp *w)
{
	const struct hca_frame *f = &w->request.first;
	struct hca_arrival_wc wc = {
		.status = IBV_WC_SUCCESS,
		.opcode = is_send(f) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.bytes = f->total, .src_qp = w->qp->conn.qpn,
		.solicited = f->flags & HCA_FRAME_SOLICITED,
	};

	if (f->flags & (HCA_FRAME_IMM | HCA_FRAME_INV)) {
		wc.flags = f->flags & HCA_FRAME_IMM ? IBV_WC_WITH_IMM : IBV_WC_WITH_INV;
		wc.imm = f->flags & HCA_FRAME_IMM ? htobe32(f->imm) : f->imm;
	}
	if (f->flags & HCA_FRAME_INV)
		hca_window_invalidate(w->qp, f->imm);
	if (!hca_arrival_complete(w->qp, &w->request.receive, &wc))
		return;
	hca_wire_request_drop(w);
	fail(w, IBV_WC_REM_OP_ERR, f->sequence, IBV_EVENT_CQ_ERR + 1);
}

static struct hca_wire_answer *add_answer(struct hca_wire_qp *w)
{
	const struct hca_frame *f = &w->request.first;
	struct hca_wire_answer *a =
	    &w->answer[(w->answer_first + w->answer_count++) % w->answer_room];

	*a = (struct hca_wire_answer){ .sequence = f->sequence, .rkey = f->rkey, .addr = f->addr,
				       .bytes = f->total };
	return a;
}

static void carry_out_atomic(struct hca_wire_qp *w)
{
	const struct hca_frame *f = &w->request.first;
	enum ibv_wr_opcode op = f->kind == HCA_FRAME_CMP_SWAP ? IBV_WR_ATOMIC_CMP_AND_SWP
							       : IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct hca_operands operands;
	struct hca_wire_answer *a;
	uint64_t old = 0;
	int rc;

	hca_operands_read(w->request.word, &operands);
	hca_landing_begin(w->qp->fabric);
	/* Holders of the lock of this host's adapter hold it for microseconds. */
	do {
		rc = hca_remote_atomic(w->qp, op, f->rkey, f->addr, operands.compare_add,
				       operands.swap, &old);
	} while (rc == HCA_BUSY);
	hca_landing_end(w->qp->fabric);
	if (rc) {
		refuse(w, rc, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	a = add_answer(w);
	a->atomic = true;
	a->bytes = sizeof(old);
	a->value = old;
}

void hca_wire_request_ends(struct hca_wire_qp *w)
{
	struct hca_wire_arriving *in = &w->request;

	if (in->refused || !(in->first.flags & HCA_FRAME_LAST))
		return;
	switch (in->first.kind) {
	case HCA_FRAME_READ:
		add_answer(w);
		break;
	case HCA_FRAME_CMP_SWAP:
	case HCA_FRAME_FETCH_ADD:
		carry_out_atomic(w);
		break;
	default:
		if (in->receive.claimed)
			complete_receive(w);
	}
	if (w->discards)
		return;
	w->expected++;
	if (w->qp->reliable)
		hca_wire_owe_ack(w, in);
}

/* ---- Answers ------------------------------------------------------------- */

static void answer_over(struct hca_wire_qp *w)
{
	w->answer_first = (w->answer_first + 1) % w->answer_room;
	w->answer_count--;
}

static void send_value(struct hca_wire_qp *w, struct hca_wire_answer *a)
{
	struct hca_frame f = { .kind = HCA_FRAME_RESPONSE, .flags = HCA_FRAME_LAST,
			       .bytes = sizeof(a->value), .total = sizeof(a->value),
			       .sequence = a->sequence, .ack = a->sequence };
	struct iovec piece = { &a->value, sizeof(a->value) };

	hca_stream_put(&w->stream, &f, &piece, 1);
	answer_over(w);
}

/* A READ fails after its request was accepted: no later one is acknowledged, either. */
static void fail_answer(struct hca_wire_qp *w, uint32_t sequence, int status)
{
	hca_wire_request_drop(w);
	w->expected = sequence;
	w->answer_count = 0;
	fail(w, status, sequence, hca_fault_of(status));
}

void hca_wire_report_fault(struct hca_wire_qp *w)
{
	if (!w->fault || w->refusal || hca_stream_waits(&w->stream))
		return;
	hca_qp_report(w->qp, w->fault);
	w->fault = 0;
}

/* The frame's payload, while its registration lasts: IBV_WC_SUCCESS or a status. */
static int put_data(struct hca_wire_qp *w, const struct hca_wire_answer *a,
		    const struct hca_frame *f)
{
	struct iovec piece = { .iov_len = f->bytes };
	int status = IBV_WC_SUCCESS;

	piece.iov_base = hca_remote_address(w->qp, a->rkey, a->addr + a->done, f->bytes,
					    IBV_ACCESS_REMOTE_READ, &status);
	if (!piece.iov_base)
		return status;
	if (f->bytes <= HCA_STREAM_COPIED) {
		hca_stream_put(&w->stream, f, &piece, 1);
		return IBV_WC_SUCCESS;
	}
	hca_stream_put_in_place(&w->stream, f, &piece, 1);
	w->shown = (struct hca_wire_shown){ .rkey = a->rkey, .sequence = a->sequence,
					    .addr = a->addr + a->done + f->bytes };
	return IBV_WC_SUCCESS;
}

/* The end of the answer, which completes it: it leaves with the frame before it, if at all. */
static void put_end(struct hca_wire_qp *w, struct hca_wire_answer *a)
{
	const struct hca_frame f = { .kind = HCA_FRAME_RESPONSE, .flags = HCA_FRAME_LAST,
				     .bytes = a->bytes - a->done, .total = a->bytes,
				     .sequence = a->sequence, .ack = a->sequence };

	hca_stream_put_after(&w->stream, &f);
	a->done += f.bytes;
}

static void send_data(struct hca_wire_qp *w, struct hca_wire_answer *a)
{
	uint32_t left = a->bytes - a->done;
	struct hca_frame f = { .kind = HCA_FRAME_RESPONSE, .total = a->bytes,
			       .sequence = a->sequence, .ack = a->sequence };
	int status;

	/* A frame in place is never the last one, and leaves in one landing. */
	if (left > HCA_STREAM_COPIED)
		left -= HCA_STREAM_TAIL;
	f.bytes = hca_wire_frame_bytes(w, left < HCA_LANDING_BYTES ? left : HCA_LANDING_BYTES);
	f.flags = a->done + f.bytes == a->bytes ? HCA_FRAME_LAST : 0;
	hca_landing_begin(w->qp->fabric);
	status = put_data(w, a, &f);
	hca_landing_end(w->qp->fabric);
	if (status) {
		fail_answer(w, a->sequence, status);
		return;
	}
	a->done += f.bytes;
	if (w->stream.piece_left && a->bytes - a->done == HCA_STREAM_TAIL)
		put_end(w, a);
	if (a->done == a->bytes)
		answer_over(w);
}

/* In a landing: the rest of the payload in place, found anew; else the status of its READ. */
static int find_place(struct hca_wire_qp *w)
{
	struct iovec piece = { .iov_len = hca_stream_rest(&w->stream) };
	int status;

	if (w->shown.wr)
		return hca_wire_own_place(w) ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
	piece.iov_base = hca_remote_address(w->qp, w->shown.rkey, w->shown.addr - w->stream.piece_left,
					    (uint32_t)piece.iov_len, IBV_ACCESS_REMOTE_READ, &status);
	if (!piece.iov_base)
		return status;
	hca_stream_place(&w->stream, &piece, 1);
	return IBV_WC_SUCCESS;
}

/* The announced rest of the frame leaves as zeros; then the peer learns that the message has failed. */
static void withdraw(struct hca_wire_qp *w, int status)
{
	hca_stream_void(&w->stream);
	if (w->shown.wr)
		hca_wire_withdraw(w);
	else
		fail_answer(w, w->shown.sequence, status);
}

int hca_wire_flush(struct hca_wire_qp *w)
{
	int rc = 0, status;

	/* A frame of 1 MiB would end in a short segment, which costs as much as a whole one. */
	w->stream.more = w->current || w->refused_one;
	if (!w->stream.piece_left || w->stream.zeros)
		return hca_stream_flush(&w->stream);
	hca_landing_begin(w->qp->fabric);
	status = find_place(w);
	if (!status)
		rc = hca_stream_flush(&w->stream);
	hca_landing_end(w->qp->fabric);
	if (rc == -EFAULT)
		status = IBV_WC_REM_OP_ERR;	/* registered, and not mapped */
	if (!status)
		return rc;
	withdraw(w, status);
	return hca_stream_flush(&w->stream);
}

void hca_wire_send_answers(struct hca_wire_qp *w)
{
	while (w->answer_count && hca_stream_has_room(&w->stream, HCA_STREAM_COPIED)) {
		struct hca_wire_answer *a = &w->answer[w->answer_first];

		if (a->atomic)
			send_value(w, a);
		else
			send_data(w, a);
	}
}
