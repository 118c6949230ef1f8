/* pace.c - work requests on a timed fabric: each quantum is sent when it is due. */
#include <stdlib.h>

#include "util/clock.h"
#include "softhca/engine/engine.h"
#include "softhca/engine/deferred_wait.h"
#include "softhca/engine/pace.h"
#include "softhca/object/loss.h"
#include "softhca/object/mw.h"

/* Limits of one call, even if much work is due. */
enum { QUANTA_PER_TURN = 64, LOOK_NS = 1000000 };

/* ---- Coming and going ---------------------------------------------------- */

int hca_pace_make(struct hca_qp *qp)
{
	const struct hca_spec *s = &qp->fabric->spec;
	struct hca_pace *p = calloc(1, sizeof(*p));

	if (!p)
		return ENOMEM;
	qp->pace = p;
	if (!qp->reliable)
		return 0;		/* no acknowledgements: no limits */
	/* More messages than the queue holds cannot be outstanding anyway. */
	if (hca_window_init(&p->window, s->window) ||
	    hca_times_init(&p->outstanding,
			   s->outstanding < qp->sq.depth ? (uint32_t)s->outstanding : 0) ||
	    hca_times_init(&p->reads, (uint32_t)s->reads))
		return ENOMEM;
	return 0;
}

void hca_pace_free(struct hca_qp *qp)
{
	struct hca_pace *p = qp->pace;

	if (!p)
		return;
	hca_window_destroy(&p->window);
	hca_times_destroy(&p->outstanding);
	hca_times_destroy(&p->reads);
	free(p);
	qp->pace = NULL;
}

void hca_pace_connect(struct hca_qp *qp)
{
	uint32_t mtu = 128u << qp->attr.path_mtu;
	struct hca_fabric *f = qp->fabric;
	struct hca_conn *c = &qp->conn;

	hca_path_make(f->shm, &f->spec, qp->address, c->address, mtu, &c->out);
	hca_path_make(f->shm, &f->spec, c->address, qp->address, mtu, &c->in);
}

void hca_pace_stop(struct hca_qp *qp)
{
	if (!qp->pace)
		return;
	qp->link->transfer_drop(qp);
	qp->pace->begun = qp->pace->sent = false;
	qp->pace->losses = 0;
	qp->pace->resume_ns = 0;
}

void hca_pace_reset(struct hca_qp *qp)
{
	hca_pace_stop(qp);
	if (qp->deferred)
		hca_deferred_clear(qp->deferred);
}

/* ---- A message ----------------------------------------------------------- */

/* The time at which the limits on messages let the request begin. */
static uint64_t may_begin(const struct hca_pace *p, const struct hca_wqe *w)
{
	uint64_t at = w->posted_ns, open = hca_times_open(&p->outstanding);

	if (open > at)
		at = open;
	open = hca_is_answered(w->wr.opcode) ? hca_times_open(&p->reads) : 0;
	if (open > at)
		at = open;
	if ((w->wr.send_flags & IBV_SEND_FENCE) && p->read_ns > at)
		at = p->read_ns;
	return at;
}

enum step { WAIT = -100, ON = 0 };	/* others: a status that ends the request */

static uint64_t jitter(struct hca_qp *qp)
{
	return (uint64_t)((unsigned __int128)qp->fabric->spec.jitter_ns * hca_random(qp) >> 32);
}

/* ---- Loss (RC; UC and UD messages are lost as a whole, transfer.c) ------- */

/* A try failed; the next is at `resume_ns`. */
static int pace_miss(struct hca_pace *p, uint64_t resume_ns)
{
	p->losses++;
	p->resume_ns = resume_ns;
	return WAIT;
}

static uint64_t timeout_after(const struct hca_qp *qp, uint64_t at)
{
	return qp->attr.timeout ? at + (4096ull << qp->attr.timeout) : UINT64_MAX;
}

/* A path that is down gives no answer: the timeout runs. */
static int ask_path(struct hca_qp *qp, uint64_t now)
{
	struct hca_pace *p = qp->pace;

	if (!qp->reliable || hca_path_up(qp->fabric, qp->address, qp->conn.address))
		return ON;
	p->silent = false;
	if (qp->attr.timeout)
		return pace_miss(p, timeout_after(qp, now));
	p->resume_ns = now + LOOK_NS;		/* no timeout: wait for the path */
	return WAIT;
}

/* ON: a lost packet, if any, may be sent again now. */
static int recover(struct hca_qp *qp, uint64_t now)
{
	const uint64_t answer_ns = 2 * qp->conn.out.latency_ns;
	struct hca_pace *p = qp->pace;

	if (!p->resume_ns)
		return ON;
	/* A later request shows the receiver that a packet is missing. */
	if (p->silent && qp->sq.posted - qp->sq.next > 1) {
		p->silent = false;
		if (now + answer_ns < p->resume_ns)
			p->resume_ns = now + answer_ns;
	}
	if (!rg_reached(p->resume_ns, now))
		return WAIT;
	p->after_ns = p->resume_ns;
	p->resume_ns = 0;
	if (p->losses > qp->attr.retry_cnt)
		return IBV_WC_RETRY_EXC_ERR;
	if (p->losses)
		hca_qp_retried(qp, 1);
	return ON;
}

/* The packet that left at `end_ns` is lost: set the time at which the sender detects this. */
static int lose_packet(struct hca_qp *qp, bool last, uint64_t end_ns, uint64_t gap_ns)
{
	struct hca_pace *p = qp->pace;

	p->silent = last;
	return pace_miss(p, last ? timeout_after(qp, end_ns)
			    : end_ns + gap_ns + 2 * qp->conn.out.latency_ns);
}

/* Can the message begin: is the path up, and a request for an answer not lost? */
static int pace_ask(struct hca_qp *qp, const struct hca_wqe *w, uint64_t now)
{
	int rc = ask_path(qp, now);

	if (rc || !hca_is_answered(w->wr.opcode) ||
	    hca_loss_first_lost(qp, qp->conn.address, 1))
		return rc;
	return lose_packet(qp, true, now, 0);
}

/* The peer cannot accept it now. */
static int hold_up(struct hca_qp *qp, int why)
{
	int rc = 0;

	if (qp->reliable)
		rc = hca_engine_wait_or_fail(qp, why);
	else
		qp->link->wait_for_receiver(qp);	/* false: the next try loses it */
	return rc ? rc : WAIT;
}

static int pace_begin(struct hca_qp *qp, struct hca_wqe *w, uint64_t now)
{
	struct hca_pace *p = qp->pace;
	struct hca_sq *sq = &qp->sq;
	int rc;

	if (hca_qp_state(qp) == IBV_QPS_SQD && sq->wait == HCA_NOT_WAITING && !p->losses)
		return WAIT;		/* draining: no request begins */
	p->earliest_ns = hca_later(p->after_ns, may_begin(p, w));
	if (!rg_reached(p->earliest_ns, now))
		return WAIT;
	/* After a receiver-not-ready the next try is when the timer ends, not before. */
	if (qp->reliable && sq->wait == HCA_WAITS_RECEIVE &&
	    !rg_reached(sq->deadline_ns, now))
		return WAIT;
	rc = pace_ask(qp, w, now);
	if (rc)
		return rc;
	rc = qp->link->transfer_begin(qp, &w->wr, w->bytes);
	if (rc < 0)
		return hold_up(qp, rc);
	if (rc)
		return rc;
	if (sq->wait != HCA_NOT_WAITING)
		p->earliest_ns = now;
	sq->wait = HCA_NOT_WAITING;
	if (qp->fabric->spec.jitter_ns) {
		p->late_ns = jitter(qp);
		p->ack_late_ns = jitter(qp);
	}
	if (hca_is_answered(w->wr.opcode))
		p->earliest_ns = hca_path_request(&qp->message.to->out, p->earliest_ns) +
				 p->ack_late_ns;
	p->begun = true;
	return ON;
}

/* The time at which the limits permit the next quantum to begin. */
static uint64_t quantum_open(struct hca_pace *p, bool reading)
{
	uint64_t open = reading ? 0 : hca_window_open(&p->window);

	return hca_later(hca_later(p->earliest_ns, p->after_ns), open);
}

/* A later quantum does not fill time that was idle before an earlier one. */
static uint64_t in_order(const struct hca_pace *p, const struct hca_path *path, uint64_t t)
{
	return p->end_ns > t + path->horizon_ns ? p->end_ns - path->horizon_ns : t;
}

/* Send `bytes` of the message, from t on; `defer`: they end a write that may be polled for. */
static int send(struct hca_qp *qp, struct hca_wqe *w, const struct hca_path *path, uint64_t t,
		uint32_t bytes, bool defer, uint64_t *span)
{
	const bool reading = hca_is_answered(w->wr.opcode), first = !qp->message.done;
	struct hca_pace *p = qp->pace;
	const struct hca_link_operations *link = qp->link;
	uint32_t deferred = 0;
	int rc = link->transfer_copy(qp, &w->wr, bytes, defer ? &deferred : NULL);

	if (rc < 0)
		return hold_up(qp, rc);	/* the peer may have gone within the message */
	if (rc)
		return rc;
	p->end_ns = hca_path_reserve(path, t, bytes, first && !reading, span);
	p->arrival_ns = hca_later(p->arrival_ns, p->end_ns + path->latency_ns + p->late_ns);
	p->ack_ns = hca_later(p->ack_ns, p->arrival_ns + path->latency_ns + p->ack_late_ns);
	if (defer)
		link->transfer_defer(qp, &w->wr, deferred, p->arrival_ns);
	if (!reading)
		hca_window_add(&p->window, hca_packets(bytes, path->mtu), p->ack_ns, *span);
	p->losses = 0;
	return ON;
}

/* Packet `good` of `bytes` that may leave at t is lost; the packets before it arrive. */
static int lose(struct hca_qp *qp, struct hca_wqe *w, const struct hca_path *path, uint64_t t,
		uint32_t bytes, uint32_t good)
{
	const uint32_t arriving = good * path->mtu;
	const uint32_t lost = bytes - arriving < path->mtu ? bytes - arriving : path->mtu;
	const bool reading = hca_is_answered(w->wr.opcode);
	struct hca_pace *p = qp->pace;
	uint64_t span;
	bool last;
	int rc = good ? send(qp, w, path, t, arriving, false, &span) : ON;

	if (rc)
		return rc;
	last = qp->message.done + lost == w->bytes &&
	       (reading || qp->sq.posted - qp->sq.next == 1);
	p->end_ns = hca_path_reserve(path, t, lost, !qp->message.done && !reading, &span);
	return lose_packet(qp, last, p->end_ns, span);
}

/*
 * The time ahead for which the path may be reserved.  Processes that check more often than
 * this one would reserve every gap: a queue pair that had none for long reserves after them.
 */
static uint64_t patience(const struct hca_pace *p, const struct hca_path *path, uint64_t now)
{
	return p->end_ns + 2 * path->horizon_ns < now ? 2 * path->horizon_ns : path->horizon_ns;
}

static int quantum(struct hca_qp *qp, struct hca_wqe *w, uint64_t now)
{
	const bool reading = hca_is_answered(w->wr.opcode);
	const struct hca_path *path = reading ? &qp->message.to->in : &qp->message.to->out;
	uint64_t open = quantum_open(qp->pace, reading), t = in_order(qp->pace, path, open);
	uint64_t busy, ahead, span;
	uint32_t bytes = w->bytes - qp->message.done, packets, good;
	bool defer;
	int rc;

	/* The answer to a read begins at the responder, when the request is there. */
	if (!reading && !rg_reached(t, now))
		return WAIT;
	/* Not `t`: it would always admit the queue pair served last, and never the others. */
	busy = hca_path_free(path);
	ahead = patience(qp->pace, path, now);
	if (busy > hca_later(open, now) + ahead && !hca_implausible(busy, now)) {
		rg_await(busy - ahead);
		return WAIT;
	}
	if (bytes > path->quantum_bytes)
		bytes = path->quantum_bytes;
	rc = ask_path(qp, now);
	if (rc)
		return rc;
	packets = hca_packets(bytes, path->mtu);
	good = qp->reliable ? hca_loss_first_lost(qp, qp->conn.address, packets) : packets;
	if (good < packets)
		return lose(qp, w, path, t, bytes, good);
	defer = bytes == w->bytes - qp->message.done && w->wr.opcode == IBV_WR_RDMA_WRITE;
	return send(qp, w, path, t, bytes, defer, &span);
}

/* All of it is in flight: complete it at both ends, with the times. */
static int pace_end(struct hca_qp *qp, struct hca_wqe *w)
{
	const bool reading = hca_is_answered(w->wr.opcode);
	const uint64_t cqe_ns = qp->fabric->spec.cqe_ns;
	struct hca_pace *p = qp->pace;
	/* An unacknowledged message is over when it has left. */
	uint64_t over = reading ? p->arrival_ns : qp->reliable ? p->ack_ns : p->end_ns;
	int rc = qp->link->transfer_end(qp, &w->wr, p->arrival_ns + cqe_ns);

	if (rc < 0)
		return hold_up(qp, rc);
	if (rc)
		return rc;
	p->visible_ns = hca_later(p->visible_ns, over + cqe_ns);
	if (reading) {
		p->read_ns = over;
		hca_times_add(&p->reads, over);
	}
	hca_times_add(&p->outstanding, over);
	return IBV_WC_SUCCESS;
}

/* The next step of the oldest request. */
static int step(struct hca_qp *qp, struct hca_wqe *w)
{
	uint64_t now = rg_now_ns();
	int rc;

	if (qp->pace->sent)
		return ON;
	if (qp->fabric->spec.schedule.count)
		hca_loss_advance(qp->fabric, now);
	rc = recover(qp, now);
	if (!rc && !qp->pace->begun)
		rc = pace_begin(qp, w, now);
	if (!rc)
		rc = quantum(qp, w, now);
	return rc;
}

/* Does no other queue pair wait?  Waiting ones have their turn after each quantum. */
static bool alone(const struct hca_qp *qp)
{
	const struct hca_engine *e = hca_engine_of(qp->fabric);

	return !atomic_load_explicit(&e->pending, memory_order_relaxed) &&
	       !atomic_load_explicit(&e->sharing, memory_order_relaxed);
}

bool hca_pace_progress(struct hca_qp *qp)
{
	struct hca_sq *sq = &qp->sq;
	int turn;

	for (turn = 0; sq->next != sq->posted; turn++) {
		struct hca_wqe *w = &sq->wqe[sq->next & sq->mask];
		int rc = WAIT;

		if (unlikely(hca_mw_is_local(w->wr.opcode))) {
			hca_engine_finish(qp, hca_mw_carry_out(qp, &w->wr));
			continue;
		}
		if (turn == 0 || (turn < QUANTA_PER_TURN && alone(qp)))
			rc = step(qp, w);
		if (rc == WAIT)
			break;
		if (!rc && qp->message.done < w->bytes)
			continue;
		if (!rc) {
			qp->pace->sent = true;
			rc = pace_end(qp, w);
		}
		if (rc == WAIT)
			break;
		qp->pace->begun = qp->pace->sent = false;
		hca_engine_finish(qp, rc);
	}
	/* After the loop: ends that it has added may be due already. */
	if (qp->deferred->count)
		hca_release_due(qp, rg_now_ns());
	return turn > 0;
}

bool hca_pace_due(const struct hca_qp *qp)
{
	return qp->sq.next != qp->sq.posted || qp->deferred->count;
}
