/* poll.c - ibv_poll_cq: the engine runs, then entries are handed out. */
#include "softhca/engine/poll.h"

#include "util/clock.h"
#include "softhca/engine/engine.h"
#include "softhca/object/cq.h"
#include "softhca/object/qp.h"

/*
 * LOOK_POLLS: empty polls in a row before the peers' fate is checked; the check reads
 * the clock first.  Not many, because a caller that yields between its polls may wait
 * a time slice for each.  IDLE_POLLS: empty polls (some 20 us) before a yield.
 * BUSY_POLLS: polls before the check by a poller that always finds completions; they may be the
 * poller's own, or of peers other than the dead ones.
 */
enum { LOOK_POLLS = 64, BUSY_POLLS = 1024, IDLE_POLLS = 2048 };
/* A wire that was served so lately may wait until completions are taken. */
enum { SERVED_NS = 20000 };

static void completion_deliver(const struct hca_completion *c, struct ibv_wc *wc)
{
	struct hca_qp *qp = c->qp;

	*wc = (struct ibv_wc){
		.wr_id = c->wr_id,
		.status = (enum ibv_wc_status)c->status,
		.opcode = (enum ibv_wc_opcode)c->opcode,
		.byte_len = c->bytes,
		.imm_data = c->imm,
		.qp_num = hca_qpn(qp),
		.src_qp = c->src_qp,
		.wc_flags = c->flags,
		.slid = c->slid,
		.sl = c->sl,
	};
	if (unlikely(c->receive && qp->shared)) {
		hca_shared_release(qp->shared, c->position);
		return;
	}
	/* The request's slot and all earlier ones are free from now on. */
	atomic_store_explicit(c->receive ? &qp->rq.done : &qp->sq.done, c->position + 1,
			      memory_order_release);
}

static int poll_untimed(struct hca_cq *cq, int max, struct ibv_wc *wc)
{
	struct hca_completion c;
	int n;

	for (n = 0; n < max; n++) {
		if (cq->count) {
			completion_deliver(&cq->list[cq->first], &wc[n]);
			cq->first = (cq->first + 1) & (cq->room - 1);
			cq->count--;
		} else if (hca_cq_mailbox_take(cq, &c)) {
			completion_deliver(&c, &wc[n]);
		} else {
			break;
		}
	}
	return n;
}

static int poll_timed(struct hca_cq *cq, uint64_t now, int max, struct ibv_wc *wc,
		      uint64_t *stamp_ns)
{
	struct hca_completion c;
	int n;

	hca_cq_drain_locked(cq);
	for (n = 0; n < max && cq->count && rg_reached(cq->list[0].visible_ns, now) &&
		    !unlikely(hca_is_held(&cq->list[0])); n++) {
		hca_cq_heap_pop(cq, &c);
		completion_deliver(&c, &wc[n]);
		if (!stamp_ns)
			continue;
		if (cq->stamp_ns < c.visible_ns)
			cq->stamp_ns = c.visible_ns;
		*stamp_ns = cq->stamp_ns;
	}
	return n;
}

/*
 * A pass over a wire carries the bytes of others: completions that are there do not wait for it, and it
 * follows them where the last one was long ago.  Without any the clock is not read.
 */
static int poll_before_pass(struct hca_cq *cq, int max, struct ibv_wc *wc)
{
	const struct hca_engine *e = hca_engine_of(cq->fabric);
	int n;

	hca_lock(&cq->lock);
	n = poll_untimed(cq, max, wc);
	if (n) {
		cq->idle = 0;
		cq->polls++;
	}
	hca_unlock(&cq->lock);
	if (n && rg_now_ns() - atomic_load_explicit(&e->ran_ns, memory_order_relaxed) >= SERVED_NS)
		hca_engine_run(cq->fabric);
	return n;
}

static inline int cq_poll(struct hca_cq *cq, int max, struct ibv_wc *wc, uint64_t *stamp_ns)
{
	uint32_t idle, polls;
	uint64_t now = 0;
	int n;

	/*
	 * The clock before the engine: the engine has written every byte of
	 * messages that are complete by then.
	 */
	if (cq->fabric->wire && !cq->timed) {
		n = poll_before_pass(cq, max, wc);
		if (n)
			return n;
	}
	if (cq->timed) {
		now = rg_now_ns();
		atomic_store_explicit(&hca_engine_of(cq->fabric)->polled_ns, now,
				      memory_order_relaxed);
	}
	if (cq->timed ? hca_engine_behind(cq->fabric) : hca_engine_due(cq->fabric))
		hca_engine_run(cq->fabric);
	hca_lock(&cq->lock);
	n = cq->timed ? poll_timed(cq, now, max, wc, stamp_ns) : poll_untimed(cq, max, wc);
	polls = ++cq->polls;
	idle = n ? 0 : cq->idle + 1;
	cq->idle = idle;
	if (unlikely((idle && idle % LOOK_POLLS == 0) || polls % BUSY_POLLS == 0))
		hca_cq_revoke_stale_claim(cq);
	hca_unlock(&cq->lock);
	if (cq->timed && !n)
		atomic_store_explicit(&hca_engine_of(cq->fabric)->waited_ns, now,
				      memory_order_relaxed);
	if (unlikely((idle && idle % LOOK_POLLS == 0) || polls % BUSY_POLLS == 0))
		hca_engine_idle(cq->fabric);
	/* The process that is waited for may need this very core. */
	if (unlikely(idle && idle % IDLE_POLLS == 0))
		rg_yield();
	return n;
}

int hca_cq_poll(struct ibv_cq *ibv, int max, struct ibv_wc *wc)
{
	return cq_poll(hca_cq_of(ibv), max, wc, NULL);
}

int hca_cq_poll_stamped(struct hca_cq *cq, struct ibv_wc *wc, uint64_t *stamp_ns)
{
	return cq_poll(cq, 1, wc, stamp_ns);
}
