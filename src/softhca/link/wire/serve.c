/* serve.c - the streams of queue pairs: frames that arrive, frames that leave. */
#include "softhca/link/wire/wire.h"

#include <string.h>

#include "softhca/base/copy_last.h"
#include "softhca/object/fabric.h"
#include "util/clock.h"

enum {
	PASS_BYTES = 1 << 19,	/* read from one stream in a pass: others have their turn */
	IDLE_PASSES = 4096,	/* without a byte, before a queue pair is left to epoll */
	ACK_PASSES = 2,		/* until an acknowledgement leaves alone: a reply may carry it */
	LATE_PASSES = 64,	/* the same, when no completion waits for it */
	REPLY_PASSES = 16,	/* the same, when a program takes the message and replies, perhaps */
	LONG = 16384,		/* compared with which an acknowledgement costs little: it leaves ... */
	PAUSE = 8,		/* ... at once after so many passes without a byte: none follows */
	DIRECT = 4,		/* so many active streams are read without asking epoll */
	BUSY_PASSES = 3,	/* without a byte, before others need not make room for it */
	REST_NS = 10000,	/* after a read that found less ... */
	REST_BYTES = 1 << 19,	/* ... than this, which is to come */
};

/* ---- Active queue pairs -------------------------------------------------- */

void hca_wire_activate(struct hca_wire_qp *w)
{
	struct hca_wire *wire = w->wire;

	w->idle = 0;
	if (w->active)
		return;
	w->active = true;
	hca_lock(&wire->active_lock);
	w->next_active = wire->active;
	wire->active = w;
	wire->active_count++;
	hca_unlock(&wire->active_lock);
}

void hca_wire_deactivate(struct hca_wire_qp *w)
{
	struct hca_wire_qp **at = &w->wire->active;

	if (!w->active)
		return;
	hca_lock(&w->wire->active_lock);
	while (*at != w)
		at = &(*at)->next_active;
	*at = w->next_active;
	w->wire->active_count--;
	hca_unlock(&w->wire->active_lock);
	w->active = false;
}

void hca_wire_owe(struct hca_wire_qp *w)
{
	if (w->owes)
		return;
	w->owes = true;
	atomic_fetch_add_explicit(&w->wire->owed, 1, memory_order_relaxed);
	hca_wire_activate(w);
}

static unsigned ack_passes(const struct hca_wire_arriving *in)
{
	const struct hca_frame *f = &in->first;

	if (!(f->flags & HCA_FRAME_AWAITED))
		return LATE_PASSES;
	if (f->total < LONG || in->pause < PAUSE)
		return ACK_PASSES;
	return f->kind == HCA_FRAME_SEND && f->total < REST_BYTES ? REPLY_PASSES : 0;
}

void hca_wire_owe_ack(struct hca_wire_qp *w, const struct hca_wire_arriving *in)
{
	const uint64_t at = hca_wire_pass(w->wire) + ack_passes(in);

	if (!w->owes_ack || at < w->ack_at)
		w->ack_at = at;
	w->owes_ack = true;
	hca_wire_owe(w);
}

/* Passes are not what it waits for. */
static void owe_no_pass(struct hca_wire_qp *w)
{
	if (!w->owes)
		return;
	w->owes = false;
	atomic_fetch_sub_explicit(&w->wire->owed, 1, memory_order_relaxed);
}

void hca_wire_forgive(struct hca_wire_qp *w)
{
	owe_no_pass(w);
	w->owes_ack = false;
}

/* ---- Output -------------------------------------------------------------- */

static void put_plain(struct hca_wire_qp *w, enum hca_frame_kind kind, uint8_t flags, uint16_t aux,
		      uint32_t sequence)
{
	struct hca_frame f = { .kind = (uint8_t)kind, .flags = flags, .aux = aux,
			       .sequence = sequence, .ack = hca_wire_ack(w) };

	hca_stream_put(&w->stream, &f, NULL, 0);
	hca_wire_settle(w);
}

void hca_wire_refuse(struct hca_wire_qp *w, enum hca_frame_kind kind, uint16_t aux,
		     uint32_t sequence)
{
	w->refusal = (uint8_t)kind;
	w->refusal_aux = aux;
	w->refusal_sequence = sequence;
	hca_wire_owe(w);
}

/* Add what can leave now; false: nothing. */
static bool put_more(struct hca_wire_qp *w)
{
	hca_wire_send_answers(w);
	if (w->refusal && !w->answer_count && hca_stream_has_room(&w->stream, 0)) {
		put_plain(w, (enum hca_frame_kind)w->refusal, 0, w->refusal_aux,
			  w->refusal_sequence);
		w->refusal = 0;
	}
	if (!w->fault)			/* the error state waits for the NAK alone */
		hca_wire_send_current(w);
	return hca_stream_waits(&w->stream);
}

void hca_wire_push(struct hca_wire_qp *w)
{
	const uint64_t end = w->stream.out_total + hca_wire_turn_bytes(w, UINT32_MAX);
	bool more;
	int rc;

	do {
		rc = hca_wire_flush(w);
		more = !rc && put_more(w);
	} while (more && w->stream.out_total < end);
	/* The kernel had no room when the acknowledgement was owed, perhaps, and has some now. */
	if (more || (!rc && w->owes_ack) || hca_wire_withdrawn_ends(w))
		hca_wire_owe(w);
	else if (!rc || rc == -EAGAIN)
		owe_no_pass(w);		/* epoll reports room in the kernel */
	hca_wire_report_fault(w);
	if (rc && rc != -EAGAIN && !w->broken)
		w->broken = rc;
	if (!w->broken)
		return;
	w->stream.ended = true;		/* the peer may have said why: its bytes are read first */
	hca_wire_owe(w);
}

void hca_wire_greet(struct hca_wire_qp *w)
{
	const struct hca_frame f = { .kind = HCA_FRAME_ACK, .imm = w->qp->attr.rq_psn };

	hca_stream_put(&w->stream, &f, NULL, 0);
	hca_wire_push(w);
}

void hca_wire_disown(struct hca_wire_qp *w)
{
	const struct hca_frame f = { .kind = HCA_FRAME_ACK, .flags = HCA_FRAME_LAST,
				     .imm = HCA_FRAME_DISOWNED };

	hca_stream_put(&w->stream, &f, NULL, 0);
	hca_stream_flush(&w->stream);
}

/* A refusal is the reason, and answers to requests before it come first. */
void hca_wire_farewell(struct hca_wire_qp *w)
{
	w->current = NULL;
	if (w->refusal)
		hca_wire_push(w);
	if (w->broken || w->refusal || hca_wire_flush(w))
		return;
	put_plain(w, HCA_FRAME_ACK, HCA_FRAME_LAST, 0, 0);
	hca_stream_flush(&w->stream);
}

/* Debts that no frame has carried since the pass before leave by themselves. */
static void pay(struct hca_wire_qp *w)
{
	if (w->owes_ack && hca_wire_pass(w->wire) >= w->ack_at && hca_stream_has_room(&w->stream, 0))
		put_plain(w, HCA_FRAME_ACK, 0, 0, 0);
	hca_wire_push(w);
}

/* ---- Input --------------------------------------------------------------- */

static bool is_answer(const struct hca_wire_qp *w)
{
	return w->frame.kind == HCA_FRAME_RESPONSE;
}

static struct hca_wire_arriving *arriving(struct hca_wire_qp *w)
{
	return is_answer(w) ? &w->reply : &w->request;
}

static void frame_ends(struct hca_wire_qp *w)
{
	if (is_answer(w))
		hca_wire_answer_ends(w, &w->frame);
	else
		hca_wire_request_ends(w);
}

/* Bytes at the end of the frame that are stored last, by this process. */
static uint32_t tail_of(const struct hca_wire_qp *w)
{
	const struct hca_frame *f = &w->request.first;

	if (is_answer(w) || f->kind != HCA_FRAME_WRITE || f->flags & HCA_FRAME_IMM ||
	    !(f->flags & HCA_FRAME_LAST))
		return 0;
	return f->total < HCA_STREAM_TAIL ? f->total : HCA_STREAM_TAIL;
}

/* The last bytes of a write: together, once all have arrived. */
static int land_tail(struct hca_wire_qp *w, unsigned char *to)
{
	struct hca_stream *s = &w->stream;
	int n;

	while (hca_stream_arrived(s) < w->left) {
		n = hca_stream_fill(s, w->left);
		if (n <= 0)
			return n;
	}
	hca_copy_last_last(to, s->in + s->in_at, w->left);
	hca_stream_skip(s, w->left);
	return (int)w->left;
}

/* The payload of a refused message. */
static int pass_over(struct hca_wire_qp *w)
{
	struct hca_stream *s = &w->stream;
	uint32_t have = hca_stream_arrived(s);
	int n;

	if (!have) {
		n = hca_stream_fill(s, w->left);
		if (n <= 0)
			return n;
		have = hca_stream_arrived(s);
	}
	if (have > w->left)
		have = w->left;
	hca_stream_skip(s, have);
	return (int)have;
}

/* In a landing.  *status: the payload has no place, or its memory is registered and not mapped. */
static int land_in_place(struct hca_wire_qp *w, int *status)
{
	struct iovec piece[HCA_SGE_MAX];
	uint32_t tail = tail_of(w), most;
	unsigned count = is_answer(w) ? hca_wire_answer_place(w, piece)
				      : hca_wire_request_place(w, piece, status);
	int n;

	if (!count)
		return -EFAULT;
	if (tail && w->left <= tail)
		return land_tail(w, piece[0].iov_base);
	most = w->left - tail;
	n = hca_stream_take(&w->stream, piece, count,
			    most < HCA_LANDING_BYTES ? most : HCA_LANDING_BYTES);
	if (n == -EFAULT) {
		*status = IBV_WC_REM_OP_ERR;
		w->request.theirs = IBV_WC_LOC_PROT_ERR;
	}
	return n;
}

static int land_or_refuse(struct hca_wire_qp *w)
{
	struct hca_wire_arriving *in = arriving(w);
	int n, status = IBV_WC_SUCCESS;

	hca_landing_begin(w->qp->fabric);
	n = land_in_place(w, &status);
	hca_landing_end(w->qp->fabric);
	if (n > 0)
		in->done += (uint32_t)n;
	if (n != -EFAULT)
		return n;
	in->refused = true;
	if (!is_answer(w))
		hca_wire_request_refuse(w, status);
	return pass_over(w);
}

/* Some bytes of a payload: as hca_stream_take. */
static int land(struct hca_wire_qp *w)
{
	int n = arriving(w)->refused ? pass_over(w) : land_or_refuse(w);

	if (n <= 0)
		return n;
	w->left -= (uint32_t)n;
	if (!w->left)
		frame_ends(w);
	return n;
}

/* A frame of the peer; false: a breach of the protocol. */
static bool frame_begins(struct hca_wire_qp *w)
{
	const struct hca_frame *f = &w->frame;

	if (f->kind == HCA_FRAME_RESPONSE)
		return hca_wire_answer_begins(w, f);
	if (!hca_wire_acknowledged(w, f->ack))
		return false;
	if (w->state != HCA_WIRE_OPEN)
		return true;
	switch (f->kind) {
	case HCA_FRAME_ACK:
		if ((f->flags & HCA_FRAME_LAST) && f->imm == HCA_FRAME_DISOWNED)
			hca_wire_disowned(w);
		else if (f->flags & HCA_FRAME_LAST)
			hca_wire_left(w);
		return true;
	case HCA_FRAME_NAK:
	case HCA_FRAME_RNR:
		return hca_wire_refused(w, f);
	case HCA_FRAME_DATAGRAM:
		return false;
	default:
		return hca_wire_request_begins(w, f);
	}
}

/* The next header: 1, or as hca_stream_fill. */
static int next_frame(struct hca_wire_qp *w)
{
	struct hca_stream *s = &w->stream;
	int n;

	while (hca_stream_arrived(s) < HCA_FRAME_BYTES) {
		n = hca_stream_fill(s, HCA_FRAME_BYTES);
		if (n <= 0)
			return n;
	}
	w->left = 0;
	if (hca_frame_read(s->in + s->in_at, &w->frame))
		return -EPROTO;
	hca_stream_skip(s, HCA_FRAME_BYTES);
	hca_stream_expect(s, &w->frame);
	if (w->state == HCA_WIRE_GREETING)
		hca_wire_greeted(w, &w->frame);
	if (!frame_begins(w))
		return -EPROTO;
	if (w->state == HCA_WIRE_OPEN && !w->left && w->frame.kind <= HCA_FRAME_RESPONSE)
		frame_ends(w);
	return 1;
}

static bool has_stream(const struct hca_wire_qp *w)
{
	return w->state == HCA_WIRE_OPEN || w->state == HCA_WIRE_GREETING;
}

/*
 * Each read of what little has come costs an acknowledgement, and the socket's lock, for which the other
 * end's kernel waits: a long payload rests.  At 100 Gbit/s this much of it comes meanwhile.
 */
static bool rests(struct hca_wire_qp *w)
{
	const struct hca_wire_arriving *in = arriving(w);
	const struct hca_stream *s = &w->stream;

	return w->left && in->first.total - in->done >= REST_BYTES && !hca_stream_arrived(s) && !s->ended &&
	       rg_now_ns() - s->drained_ns < REST_NS;
}

/* All that has arrived, up to a bound. */
static void receive(struct hca_wire_qp *w)
{
	const uint64_t end = w->stream.in_total + hca_wire_turn_bytes(w, PASS_BYTES);
	int n = 1;

	w->unread = rests(w);
	if (w->unread) {
		w->idle = 0;
		return;
	}
	while (n > 0 && has_stream(w)) {
		if (w->stream.in_total > end) {
			w->unread = true;
			return;
		}
		n = w->left ? land(w) : next_frame(w);
	}
	if (has_stream(w) && n != -EAGAIN)
		hca_wire_lost(w, n);
}

/* ---- A pass -------------------------------------------------------------- */

/* An unreliable message is over once it has left. */
static void end_unreliable(struct hca_wire_qp *w)
{
	if (!w->qp->reliable && w->qp->sq.under_way && !w->current &&
	    !hca_stream_waits(&w->stream))
		w->qp->fabric->upcalls->ended(w->qp, w->qp->sq.under_way);
}

void hca_wire_serve(struct hca_wire_qp *w)
{
	uint64_t before = w->stream.in_total + w->stream.out_total;

	if (!has_stream(w))
		return;
	receive(w);
	if (w->state != HCA_WIRE_OPEN)
		return;
	if (w->owes || w->answer_count || w->current || hca_stream_waits(&w->stream))
		pay(w);
	if (w->broken && !w->unread) {
		hca_wire_lost(w, 0);
		return;
	}
	if (hca_wire_withdrawn_ends(w)) {
		hca_wire_end_withdrawn(w);
		return;
	}
	end_unreliable(w);
	if (w->refused_one && !w->withdrawn && !w->current &&
	    hca_stream_has_room(&w->stream, HCA_STREAM_COPIED)) {
		w->refused_one = false;
		w->qp->fabric->upcalls->resume(w->qp);
		/* The request stays where its queue pair drains or its memory has gone. */
		if (w->stream.held)
			hca_wire_owe(w);
	}
	if (w->stream.in_total + w->stream.out_total != before)
		w->idle = 0;
}

/* Serve one of the active ones; does it stay one?  Adds to *busy if bytes have moved lately. */
static bool active_turn(struct hca_wire_qp *w, bool direct, unsigned *busy)
{
	struct hca_wire *wire = w->wire;
	bool stays;

	hca_lock(&w->qp->lock);
	w->idle++;
	if (direct || w->owes || w->unread)
		hca_wire_serve(w);
	stays = has_stream(w) && (w->owes || w->unread || w->idle < IDLE_PASSES);
	*busy += stays && w->idle < BUSY_PASSES;
	hca_lock(&wire->active_lock);
	w->active = stays;
	if (w->unwatched && !(stays && direct))
		hca_wire_qp_watch_again(w);
	if (stays) {
		w->next_active = wire->active;
		wire->active = w;
		wire->active_count++;
	}
	hca_unlock(&wire->active_lock);
	hca_unlock(&w->qp->lock);
	return stays;
}

bool hca_wire_serve_active(struct hca_wire *wire)
{
	struct hca_wire_qp *w, *next;
	bool direct, any = false;
	unsigned busy = 0;

	hca_lock(&wire->active_lock);
	w = wire->active;
	direct = wire->active_count <= DIRECT;
	wire->active = NULL;
	wire->active_count = 0;
	hca_unlock(&wire->active_lock);
	for (; w; w = next) {
		next = w->next_active;
		any |= active_turn(w, direct, &busy);
	}
	atomic_store_explicit(&wire->shared, busy > 1, memory_order_relaxed);
	return direct && any;
}
