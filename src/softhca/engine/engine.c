/* engine.c - work that could not be done when it was posted. */
#include "util/clock.h"
#include "softhca/engine/engine.h"
#include "softhca/engine/flush.h"
#include "softhca/engine/deferred_wait.h"
#include "softhca/engine/pace.h"
#include "softhca/engine/port_events.h"
#include "softhca/engine/post.h"
#include "softhca/engine/under_way.h"
#include "softhca/object/event.h"
#include "softhca/object/loss.h"
#include "softhca/object/mw.h"
#include "softhca/object/srq.h"

/* Shortest time between two checks of the peers. */
enum { LOOK_NS = 10000000 };
/* Verbs that post serve a wire when no verb has done so for this time. */
enum { POSTS_NS = 20000 };
/* All tries of an unreachable peer, at least: a stream needs this long to know. */
#define WIRE_NS 5000000000u

/* ---- The list ------------------------------------------------------------ */

/* With a wire, turns have times: the list needs one at `at_ns`. */
static void list_needs(struct hca_engine *e, uint64_t at_ns)
{
	uint64_t before = atomic_load(&e->list_ns);

	while (at_ns < before && !atomic_compare_exchange_weak(&e->list_ns, &before, at_ns))
		;
}

uint64_t hca_engine_next_ns(const struct hca_fabric *f)
{
	const struct hca_engine *e = hca_engine_of(f);
	uint64_t list_ns = hca_engine_waits(f) ? 0 : UINT64_MAX, wire_ns;

	if (!f->wire)
		return list_ns;
	if (!list_ns)
		list_ns = atomic_load(&e->list_ns);
	wire_ns = atomic_load(&e->wire_ns);
	return list_ns < wire_ns ? list_ns : wire_ns;
}

/* `at_ns`: its next turn, 0: as soon as possible. */
static void list_add(struct hca_qp *qp, uint64_t at_ns)
{
	struct hca_engine *e = hca_engine_of(qp->fabric);
	const bool wire = qp->fabric->wire;
	bool first = false;

	hca_lock(&e->list_lock);
	if (!qp->queued) {
		qp->queued = true;
		qp->next = NULL;
		if (e->last)
			e->last->next = qp;
		else
			e->first = qp;
		e->last = qp;
		first = atomic_fetch_add(&e->pending, 1) == wire;
	}
	hca_unlock(&e->list_lock);
	if (wire)
		list_needs(e, at_ns);
	if (first)
		hca_progress_thread_wake(qp->fabric);
}

void hca_engine_add(struct hca_qp *qp)
{
	list_add(qp, 0);
}

static struct hca_qp *take_first(struct hca_engine *e)
{
	struct hca_qp *qp;

	hca_lock(&e->list_lock);
	qp = e->first;
	if (qp) {
		e->first = qp->next;
		if (!e->first)
			e->last = NULL;
		qp->queued = false;
		atomic_fetch_sub_explicit(&e->pending, 1, memory_order_release);
	}
	hca_unlock(&e->list_lock);
	return qp;
}

void hca_engine_remove(struct hca_qp *qp)
{
	struct hca_engine *e = hca_engine_of(qp->fabric);
	struct hca_qp **at, *last = NULL;

	hca_lock(&e->list_lock);
	if (qp->queued) {
		for (at = &e->first; *at != qp; at = &(*at)->next)
			last = *at;
		*at = qp->next;
		if (e->last == qp)
			e->last = last;
		qp->queued = false;
		atomic_fetch_sub_explicit(&e->pending, 1, memory_order_relaxed);
	}
	hca_unlock(&e->list_lock);
}

/* ---- Waiting, by the rules of RC ----------------------------------------- */

/* IBTA: RNR NAK timer field to time; 0 is the longest. */
static uint64_t rnr_ns(unsigned code)
{
	static const uint32_t us10[32] = {
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
		16384, 24576, 32768, 49152,
	};

	return us10[code & 31] * 10000ull;
}

uint64_t hca_engine_rnr_ns(const struct hca_qp *qp)
{
	return rnr_ns(qp->link->rnr_timer(qp));
}

/* The time until the next try is due; 0: no limit. */
static uint64_t period_ns(const struct hca_qp *qp, enum hca_wait wait)
{
	uint64_t ns = qp->attr.timeout ? 4096ull << qp->attr.timeout : 0;

	if (wait == HCA_WAITS_RECEIVE)
		return hca_engine_rnr_ns(qp);
	return ns && hca_qp_on_wire(qp) ? hca_later(ns, WIRE_NS / (qp->attr.retry_cnt + 1u)) : ns;
}

int hca_engine_wait_or_fail(struct hca_qp *qp, int why)
{
	enum hca_wait wait = why == HCA_NO_RECEIVE ? HCA_WAITS_RECEIVE : HCA_WAITS_PEER;
	const int failed = wait == HCA_WAITS_RECEIVE ? IBV_WC_RNR_RETRY_EXC_ERR
						     : IBV_WC_RETRY_EXC_ERR;
	const bool forever = wait == HCA_WAITS_RECEIVE ? qp->attr.rnr_retry == 7
						       : !qp->attr.timeout;
	struct hca_sq *sq = &qp->sq;
	uint64_t now;

	if (why == HCA_PEER_DIED)
		return IBV_WC_RETRY_EXC_ERR;
	if (why == HCA_BUSY)
		return 0;
	if (sq->wait == wait && forever)
		return 0;
	now = rg_now_ns();
	if (sq->wait != wait) {
		/* A receiver's NAK ends a try, silence ends one only with the timeout. */
		sq->wait = wait;
		sq->tries = wait == HCA_WAITS_RECEIVE ? qp->attr.rnr_retry
						      : qp->attr.retry_cnt + 1;
		sq->deadline_ns = now + period_ns(qp, wait);
		if (sq->tries && wait == HCA_WAITS_RECEIVE)
			hca_qp_retried(qp, 1);
		return sq->tries ? 0 : failed;
	}
	while (rg_reached(sq->deadline_ns, now)) {
		if (--sq->tries == 0)
			return failed;
		hca_qp_retried(qp, 1);
		sq->deadline_ns += period_ns(qp, wait);
	}
	return 0;
}

/* ---- A queue pair's turn ------------------------------------------------- */

void hca_engine_finish(struct hca_qp *qp, int status)
{
	uint32_t position = hca_sq_oldest(&qp->sq);
	struct hca_wqe *w = &qp->sq.wqe[position & qp->sq.mask];

	hca_sq_pop(qp);
	hca_sq_complete(qp, &w->wr, position, w->bytes, status, 0);
	if (status)
		hca_sq_fail(qp);
}

/* On a lossy path each request draws random numbers once: at its first try. */
static int engine_transfer(struct hca_qp *qp, const struct hca_wqe *w)
{
	if (qp->reliable && qp->sq.wait == HCA_NOT_WAITING && !hca_mw_is_local(w->wr.opcode) &&
	    hca_loss_exhausts(qp, w->bytes))
		return IBV_WC_RETRY_EXC_ERR;
	return qp->link->transfer_whole(qp, &w->wr, w->bytes);
}

/* True while a request waits. */
static bool progress_untimed(struct hca_qp *qp)
{
	struct hca_sq *sq = &qp->sq;

	while (sq->next != sq->posted && (sq->wait || hca_qp_state(qp) == IBV_QPS_RTS)) {
		struct hca_wqe *w = &sq->wqe[sq->next & sq->mask];
		int rc = engine_transfer(qp, w);

		if (rc < 0 && !qp->reliable) {
			if (qp->link->wait_for_receiver(qp))
				return true;
			continue;
		}
		if (rc < 0) {
			rc = hca_engine_wait_or_fail(qp, rc);
			if (!rc)
				return true;
		}
		hca_engine_finish(qp, rc);
	}
	qp->fast = hca_qp_state(qp) == IBV_QPS_RTS && hca_path_clear(qp);
	return false;
}

static bool progress_flush(struct hca_qp *qp)
{
	bool remains;

	hca_sq_flush(qp);
	hca_lock(&qp->rq_lock);
	remains = hca_rq_flush(qp);
	hca_unlock(&qp->rq_lock);
	return remains;
}

enum turn { OVER, WAITS, SERVED };

/* A wire's system calls would be points of cancellation, under locks. */
static int hold_cancel(const struct hca_fabric *f)
{
	int before = PTHREAD_CANCEL_ENABLE;

	if (f->wire)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static void allow_cancel(const struct hca_fabric *f, int before)
{
	if (f->wire)
		pthread_setcancelstate(before, NULL);
}

/*
 * SQD: a request that was begun before the state was entered ends, its
 * acknowledgement included; no other begins.
 */
static enum turn drain(struct hca_qp *qp)
{
	bool remains, again = true;

	if (!qp->draining)
		return OVER;
	if (hca_qp_on_wire(qp)) {
		again = hca_under_way_progress(qp);
		remains = hca_under_way_remains(qp);
	} else if (qp->pace) {
		hca_pace_progress(qp);
		remains = qp->pace->begun || qp->sq.wait || qp->pace->losses ||
			  qp->deferred->count || !rg_reached(qp->pace->visible_ns, rg_now_ns());
	} else {
		remains = progress_untimed(qp);
	}
	if (hca_qp_state(qp) != IBV_QPS_SQD)
		return OVER;		/* the request failed */
	if (remains)
		return again ? WAITS : OVER;
	qp->draining = false;
	if (qp->drain_told)
		hca_event_qp(qp, IBV_EVENT_SQ_DRAINED);
	return OVER;
}

/* After a failure: do ends of earlier writes remain that cannot be written yet? */
static bool ends_remain(struct hca_qp *qp)
{
	return qp->pace && hca_release_due(qp, rg_now_ns());
}

static enum turn take_turn(struct hca_qp *qp)
{
	bool served, remains;

	switch (hca_qp_state(qp)) {
	case IBV_QPS_RTS:
		if (hca_qp_on_wire(qp))
			return hca_under_way_progress(qp) ? WAITS : OVER;
		if (!qp->pace)
			return progress_untimed(qp) ? WAITS : OVER;
		served = hca_pace_progress(qp);
		return !hca_pace_due(qp) ? OVER : served ? SERVED : WAITS;
	case IBV_QPS_SQE:
		hca_sq_flush(qp);
		return ends_remain(qp) ? WAITS : OVER;
	case IBV_QPS_ERR:
		remains = progress_flush(qp);
		return ends_remain(qp) || remains ? WAITS : OVER;
	case IBV_QPS_SQD:
		return drain(qp);
	default:
		return OVER;
	}
}

void hca_sq_progress(struct hca_qp *qp)
{
	int cancel = hold_cancel(qp->fabric);

	if (take_turn(qp) != OVER)
		list_add(qp, qp->sq.again_ns);
	allow_cancel(qp->fabric, cancel);
}

/* ---- Errors found by peers or other threads ------------------------------ */

static bool overflowed(struct hca_cq *cq)
{
	return atomic_load(&cq->overflowed) ||
	       atomic_load_explicit(&cq->mailbox.shm->overflow, memory_order_acquire);
}

/* An overflowed queue raises one event; each of its queue pairs in use raises its own. */
static bool check_cq(struct hca_cq *cq)
{
	if (likely(!overflowed(cq)))
		return false;
	hca_cq_tell_error(cq);
	return true;
}

/* Raise the fault that a peer has reported, as an event of the queue pair. */
static void raise_fault(struct hca_qp *qp, uint32_t fault)
{
	switch (fault) {
	case HCA_FAULT_TOLD:
		break;
	case IBV_EVENT_QP_REQ_ERR + 1:
	case IBV_EVENT_QP_ACCESS_ERR + 1:
		hca_event_qp(qp, (enum ibv_event_type)(fault - 1));
		break;
	default:
		hca_event_qp(qp, IBV_EVENT_QP_FATAL);
	}
}

void hca_qp_check_first(struct hca_qp *qp, bool last)
{
	uint32_t first;

	/* The event is raised once, even if peers write the word again. */
	if (!qp->listening)
		return;
	first = last ? atomic_exchange(&qp->shm->first, HCA_FIRST_IGNORED)
		     : atomic_load(&qp->shm->first);
	qp->listening = !last && first != HCA_FIRST_ARRIVED;
	if (first == HCA_FIRST_ARRIVED)
		hca_event_qp(qp, IBV_EVENT_COMM_EST);
}

/* Work that claiming peers leave to the owner of a shared receive queue. */
static void check_shared(struct hca_qp *qp)
{
	struct hca_shared *s = qp->shared;
	struct ibv_srq *srq = qp->ibv.qp_base.srq;

	if (atomic_load(&s->view.shm->returned))
		hca_shared_recover(s, false);
	if (srq && atomic_exchange(&s->view.shm->limit_reached, 0))
		hca_event_srq(hca_srq_of(srq), IBV_EVENT_SRQ_LIMIT_REACHED);
}

static void check_qp(struct hca_qp *qp)
{
	uint32_t fault = atomic_exchange(&qp->shm->fault, 0);
	bool send_cq = check_cq(hca_send_cq(qp)), recv_cq = check_cq(hca_recv_cq(qp));

	if (qp->shared)
		check_shared(qp);
	hca_qp_check_first(qp, false);
	if (!fault && !send_cq && !recv_cq)
		return;
	hca_lock(&qp->lock);
	if (hca_qp_state(qp) != IBV_QPS_ERR) {
		hca_qp_fail(qp);
		raise_fault(qp, fault);
	}
	hca_unlock(&qp->lock);
}

/* fabric.life held. */
static void check_faults(struct hca_fabric *f)
{
	uint32_t i, top = atomic_load(&f->qp_top);

	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (qp && hca_qp_state(qp) >= IBV_QPS_RTR)
			check_qp(qp);
	}
}

/* fabric.life held. */
static void look(struct hca_fabric *f)
{
	uint32_t seen = atomic_load(&f->self->attention);

	/* Read first: an exchange in each pass costs a poller more. */
	if (!(atomic_load(&f->faults) && atomic_exchange(&f->faults, 0)) && seen == atomic_load(&f->attention))
		return;
	atomic_store(&f->attention, seen);
	check_faults(f);
	hca_port_events_handle(f);
}

/* Drain all completions of a shared receive queue; false: some find no room. */
static bool drain_all(struct hca_fabric *f, const struct hca_shared *s)
{
	uint32_t i, top = atomic_load(&f->qp_top);
	bool all = true;

	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (qp && qp->shared == s)
			all &= hca_cq_drain(hca_recv_cq(qp));
	}
	return all;
}

/* Receives that dead peers have claimed are posted again. */
static void check_claims(struct hca_fabric *f)
{
	uint32_t i, top = atomic_load(&f->qp_top);

	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		/* Completions of dead peers come first. */
		if (qp && qp->shared && hca_shared_suspect(qp->shared) && drain_all(f, qp->shared))
			hca_shared_recover(qp->shared, true);
	}
}

/* Bring queue pairs whose peer has died to the error state. */
static void check_deaths(struct hca_fabric *f)
{
	uint32_t i, top = atomic_load(&f->qp_top);

	hca_links_look(f);
	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (qp && qp->datagram) {
			hca_lock(&qp->lock);
			f->link->qp_look(qp);
			hca_unlock(&qp->lock);
		}
		if (!qp || !qp->reliable ||
		    (hca_qp_state(qp) != IBV_QPS_RTS && hca_qp_state(qp) != IBV_QPS_RTR))
			continue;
		hca_lock(&qp->lock);
		if (qp->link->peer_lost(qp))
			hca_qp_lose_peer(qp);
		hca_unlock(&qp->lock);
	}
}

/* ---- Running ------------------------------------------------------------- */

/*
 * Each queue pair on the list has a turn.  A served queue pair goes to the end of the
 * list, after the others, so that none uses every gap on the path.
 */
static void take_turns(struct hca_engine *e)
{
	struct hca_qp *qp, *served = NULL, **last = &served;
	uint32_t turns;

	/* Before the list is read: a thread that adds to it afterwards says so again. */
	if (e->fabric.wire)
		atomic_store(&e->list_ns, UINT64_MAX);
	turns = atomic_load(&e->pending);
	atomic_store_explicit(&e->sharing, turns > 1, memory_order_relaxed);
	atomic_store_explicit(&e->turning, true, memory_order_relaxed);
	for (; turns && (qp = take_first(e)); turns--) {
		uint64_t again_ns;
		enum turn t;

		hca_lock(&qp->lock);
		t = take_turn(qp);
		again_ns = qp->sq.again_ns;
		hca_unlock(&qp->lock);
		if (t == WAITS)
			list_add(qp, again_ns);
		if (t != SERVED)
			continue;
		qp->served = NULL;
		*last = qp;
		last = &qp->served;
	}
	for (; served; served = served->served)
		hca_engine_add(served);
	atomic_store_explicit(&e->turning, false, memory_order_release);
	atomic_store_explicit(&e->sharing, false, memory_order_relaxed);
}

/* fabric.life held. */
static void run_wire(struct hca_engine *e)
{
	struct hca_fabric *f = &e->fabric;

	atomic_store_explicit(&e->ran_ns, f->wire->progress(f), memory_order_relaxed);
	look(f);
	take_turns(e);
	atomic_store(&e->wire_ns, f->wire->next_ns(f));
}

void hca_engine_run(struct hca_fabric *f)
{
	struct hca_engine *e = hca_engine_of(f);
	int cancel = hold_cancel(f);

	if (f->spec.timed) {
		hca_lock(&f->life);	/* due work must be done now */
	} else if (!hca_trylock(&f->life)) {
		allow_cancel(f, cancel);
		return;			/* another thread does this */
	}
	atomic_fetch_add_explicit(&e->runs, 1, memory_order_relaxed);
	if (f->wire) {
		run_wire(e);
	} else {
		look(f);
		take_turns(e);
	}
	hca_unlock(&f->life);
	allow_cancel(f, cancel);
}

void hca_engine_run_for_post(struct hca_fabric *f)
{
	const struct hca_engine *e = hca_engine_of(f);

	/* Requests of a burst leave together: passes between them would part them. */
	if (f->wire && rg_now_ns() - atomic_load_explicit(&e->ran_ns, memory_order_relaxed) <
			   POSTS_NS)
		return;
	hca_engine_run(f);
}

int hca_engine_serve_wire(struct hca_fabric *f)
{
	struct hca_engine *e = hca_engine_of(f);

	atomic_store(&e->list_ns, UINT64_MAX);
	atomic_store(&e->wire_ns, 0);
	return hca_progress_thread_serve(f);
}

void hca_engine_handle_events(struct hca_fabric *f)
{
	if (!hca_fabric_told(f))
		return;
	hca_lock(&f->life);
	look(f);
	hca_unlock(&f->life);
}

void hca_engine_idle(struct hca_fabric *f)
{
	struct hca_engine *e = hca_engine_of(f);
	uint64_t now = rg_now_ns();

	if (now - atomic_load_explicit(&e->looked_ns, memory_order_relaxed) < LOOK_NS ||
	    !hca_trylock(&f->life))
		return;
	atomic_store_explicit(&e->looked_ns, now, memory_order_relaxed);
	check_deaths(f);
	check_claims(f);
	hca_unlock(&f->life);
}
