/* engine.c - work that could not be done when it was posted. */
#include "clock.h"
#include "engine.h"
#include "pace.h"

/* How often peers are looked at when there is nothing to do. */
enum { LOOK_NS = 10000000 };

/* ---- The list ------------------------------------------------------------ */

void hca_engine_add(struct hca_qp *qp)
{
	struct hca_engine *e = &qp->fabric->engine;
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
		first = !atomic_fetch_add(&e->pending, 1);
	}
	hca_unlock(&e->list_lock);
	if (first)
		hca_attend(qp->fabric);
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
		atomic_fetch_sub_explicit(&e->pending, 1, memory_order_relaxed);
	}
	hca_unlock(&e->list_lock);
	return qp;
}

void hca_engine_remove(struct hca_qp *qp)
{
	struct hca_engine *e = &qp->fabric->engine;
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

/* ---- Waiting, as RC does ------------------------------------------------- */

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

/* How long until the next try is due; 0: no limit. */
static uint64_t period_ns(const struct hca_qp *qp, enum hca_wait wait)
{
	if (wait == HCA_WAITS_RECEIVE)
		return rnr_ns(atomic_load_explicit(&qp->conn.shm->rnr_timer,
						   memory_order_relaxed));
	return qp->attr.timeout ? 4096ull << qp->attr.timeout : 0;
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
	if (sq->wait == wait && forever)
		return 0;
	now = rg_now_ns();
	if (sq->wait != wait) {
		/* A receiver's NAK ends a try, silence ends one only with the timeout. */
		sq->wait = wait;
		sq->tries = wait == HCA_WAITS_RECEIVE ? qp->attr.rnr_retry
						      : qp->attr.retry_cnt + 1;
		sq->deadline_ns = now + period_ns(qp, wait);
		return sq->tries ? 0 : failed;
	}
	while (now >= sq->deadline_ns) {
		if (--sq->tries == 0)
			return failed;
		sq->deadline_ns += period_ns(qp, wait);
	}
	return 0;
}

/* ---- A queue pair's turn ------------------------------------------------- */

void hca_engine_finish(struct hca_qp *qp, int status)
{
	struct hca_sq *sq = &qp->sq;
	struct hca_wqe *w = &sq->wqe[sq->next & sq->mask];
	uint32_t position = sq->next;

	hca_sq_pop(qp);
	hca_sq_complete(qp, &w->wr, position, w->bytes, status, 0);
	if (status)
		hca_qp_fail(qp);
}

/* True while something waits. */
static bool progress_untimed(struct hca_qp *qp)
{
	struct hca_sq *sq = &qp->sq;

	while (sq->next != sq->posted) {
		struct hca_wqe *w = &sq->wqe[sq->next & sq->mask];
		int rc = hca_transfer(qp, &w->wr, w->bytes);

		if (rc < 0) {
			rc = hca_engine_wait_or_fail(qp, rc);
			if (!rc)
				return true;
		}
		hca_engine_finish(qp, rc);
	}
	qp->fast = hca_qp_state(qp) == IBV_QPS_RTS;
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

static enum turn take_turn(struct hca_qp *qp)
{
	bool served;

	switch (hca_qp_state(qp)) {
	case IBV_QPS_RTS:
		if (!qp->pace)
			return progress_untimed(qp) ? WAITS : OVER;
		served = hca_pace_progress(qp);
		return !hca_pace_due(qp) ? OVER : served ? SERVED : WAITS;
	case IBV_QPS_ERR:
		return progress_flush(qp) ? WAITS : OVER;
	default:
		return OVER;	/* SQD: posted work stays where it is */
	}
}

void hca_sq_progress(struct hca_qp *qp)
{
	if (take_turn(qp) != OVER)
		hca_engine_add(qp);
}

/* ---- Errors that others found -------------------------------------------- */

static bool overflowed(struct hca_cq *cq)
{
	return atomic_load(&cq->overflowed) ||
	       atomic_load_explicit(&cq->mailbox.shm->overflow, memory_order_acquire);
}

static void look_for_faults(struct hca_fabric *f)
{
	uint32_t i, top = atomic_load(&f->qp_top);

	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (!qp || hca_qp_state(qp) < IBV_QPS_RTR)
			continue;
		if (atomic_exchange(&qp->shm->fault, 0) || overflowed(hca_send_cq(qp)) ||
		    overflowed(hca_recv_cq(qp))) {
			hca_lock(&qp->lock);
			hca_qp_fail(qp);
			hca_unlock(&qp->lock);
		}
	}
}

/*
 * A process that leaves in good order closes its gates.  So a gate that is
 * still open on a process that is gone means death, even if somebody else has
 * its slot by now.
 */
static bool peer_died(const struct hca_conn *c)
{
	if (!c->peer || c->peer->fate == HCA_FATE_ALIVE)
		return false;
	return c->peer->fate == HCA_FATE_DEAD ||
	       (c->shm && atomic_load_explicit(&c->shm->gate, memory_order_relaxed) == c->gate);
}

/* A queue pair whose peer has ended without a word is of no use any more. */
static void look_for_deaths(struct hca_fabric *f)
{
	uint32_t i, top = atomic_load(&f->qp_top);

	hca_peers_look(f);
	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (!qp || (hca_qp_state(qp) != IBV_QPS_RTS && hca_qp_state(qp) != IBV_QPS_RTR))
			continue;
		hca_lock(&qp->lock);
		if (!qp->conn.peer)
			hca_conn_resolve(qp);
		if (peer_died(&qp->conn)) {
			hca_sq_died(qp);
			hca_qp_fail(qp);
		}
		hca_unlock(&qp->lock);
	}
}

/* ---- Running ------------------------------------------------------------- */

/*
 * Each that waits has a turn.  Who was served goes behind who was not, so that
 * no one takes every place that comes free.
 */
static void take_turns(struct hca_engine *e)
{
	struct hca_qp *qp, *served = NULL, **last = &served;
	uint32_t turns = atomic_load(&e->pending);

	atomic_store_explicit(&e->sharing, turns > 1, memory_order_relaxed);
	for (; turns && (qp = take_first(e)); turns--) {
		enum turn t;

		hca_lock(&qp->lock);
		t = take_turn(qp);
		hca_unlock(&qp->lock);
		if (t == WAITS)
			hca_engine_add(qp);
		if (t != SERVED)
			continue;
		qp->served = NULL;
		*last = qp;
		last = &qp->served;
	}
	for (; served; served = served->served)
		hca_engine_add(served);
	atomic_store_explicit(&e->sharing, false, memory_order_relaxed);
}

void hca_engine_run(struct hca_fabric *f)
{
	struct hca_engine *e = &f->engine;
	uint32_t seen;

	if (f->spec.timed)
		hca_lock(&e->lock);	/* what is due now must be done now */
	else if (!hca_trylock(&e->lock))
		return;			/* somebody is at it */
	atomic_fetch_add_explicit(&e->runs, 1, memory_order_relaxed);
	seen = atomic_load_explicit(&f->self->attention, memory_order_acquire);
	if (atomic_exchange(&e->faults, 0) || seen != atomic_load(&e->attention)) {
		atomic_store(&e->attention, seen);
		look_for_faults(f);
	}
	take_turns(e);
	hca_unlock(&e->lock);
}

void hca_engine_idle(struct hca_fabric *f)
{
	struct hca_engine *e = &f->engine;
	uint64_t now = rg_now_ns();

	if (now - atomic_load_explicit(&e->looked_ns, memory_order_relaxed) < LOOK_NS ||
	    !hca_trylock(&e->lock))
		return;
	atomic_store_explicit(&e->looked_ns, now, memory_order_relaxed);
	look_for_deaths(f);
	hca_unlock(&e->lock);
}
