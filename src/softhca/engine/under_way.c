/* under_way.c - see under_way.h. */
#include "softhca/engine/under_way.h"

#include "util/clock.h"
#include "softhca/engine/engine.h"
#include "softhca/engine/flush.h"
#include "softhca/object/mw.h"

/* A peer that could not be reached is tried again after so long. */
enum { AGAIN_NS = 10000000 };

static struct hca_wqe *oldest(struct hca_sq *sq)
{
	return &sq->wqe[hca_sq_oldest(sq) & sq->mask];
}

/* ---- Handing over -------------------------------------------------------- */

/* Is position a before b?  Positions wrap. */
static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Does the oldest queued request stay in the queue for now? */
static bool must_wait(const struct hca_qp *qp, const struct hca_wqe *w)
{
	const struct hca_sq *sq = &qp->sq;

	if (sq->blocked)
		return true;
	if (hca_qp_state(qp) == IBV_QPS_SQD && !before(sq->next, sq->begun))
		return true;		/* draining: no request begins */
	if (hca_mw_is_local(w->wr.opcode))
		return sq->under_way;
	if ((w->wr.send_flags & IBV_SEND_FENCE) && sq->answers)
		return true;
	return hca_is_answered(w->wr.opcode) && sq->answers &&
	       sq->answers >= qp->attr.max_rd_atomic;
}

/* The errors that concern no link; datagrams have rules of their own. */
static int check_request(const struct hca_qp *qp, const struct hca_wqe *w)
{
	if (!(qp->operations & 1u << w->wr.opcode))
		return IBV_WC_LOC_QP_OP_ERR;
	if (qp->datagram)
		return IBV_WC_SUCCESS;
	if (w->bytes > HCA_MESSAGE_MAX)
		return IBV_WC_LOC_LEN_ERR;
	if (hca_is_answered(w->wr.opcode) && !qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	return hca_is_atomic(w->wr.opcode) && w->bytes != 8 ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

static int hand_over(struct hca_qp *qp, const struct hca_wqe *w)
{
	int rc = check_request(qp, w);

	if (rc)
		return rc;
	if (hca_mw_is_local(w->wr.opcode))
		return hca_mw_carry_out(qp, &w->wr);
	return qp->link->transfer_whole(qp, &w->wr, w->bytes);
}

static void put_under_way(struct hca_sq *sq, struct hca_wqe *w, bool over)
{
	w->over = over;
	sq->answers += hca_is_answered(w->wr.opcode);
	sq->under_way++;
	sq->next++;
	if (before(sq->begun, sq->next))
		sq->begun = sq->next;
}

/* The oldest request is to be tried again, if any tries are left: 0, or the status of its end. */
static int try_again(struct hca_qp *qp, int why)
{
	struct hca_sq *sq = &qp->sq;
	uint64_t now = rg_now_ns();
	int rc;

	/* Each RNR answer ends one try, however late it comes. */
	if (why == HCA_NO_RECEIVE && sq->wait == HCA_WAITS_RECEIVE)
		sq->deadline_ns = now;
	rc = hca_engine_wait_or_fail(qp, why);
	if (why == HCA_NO_RECEIVE)
		sq->again_ns = now + hca_engine_rnr_ns(qp);
	else if (why == HCA_NO_PEER)
		sq->again_ns = now + AGAIN_NS;
	return rc;
}

/*
 * The oldest queued request was not accepted; none is under way.  True: it stays, and has another
 * turn.
 */
static bool stays(struct hca_qp *qp, int rc)
{
	if (rc < 0 && !qp->reliable)	/* a datagram to this host; false: the next try loses it */
		return qp->fabric->link->wait_for_receiver(qp);
	if (rc < 0) {
		rc = try_again(qp, rc);
		if (!rc)
			return true;
	}
	hca_engine_finish(qp, rc);
	return false;
}

bool hca_under_way_progress(struct hca_qp *qp)
{
	struct hca_sq *sq = &qp->sq;

	while (sq->next != sq->posted) {
		struct hca_wqe *w = &sq->wqe[sq->next & sq->mask];
		int rc;

		if (must_wait(qp, w))
			return false;
		if (sq->again_ns && !rg_reached(sq->again_ns, rg_now_ns()))
			return true;
		sq->again_ns = 0;
		rc = hand_over(qp, w);
		if (rc == HCA_UNDERWAY || (!rc && sq->under_way)) {
			put_under_way(sq, w, !rc);
			continue;
		}
		sq->blocked = rc == HCA_LATER;
		if (sq->blocked || sq->under_way)
			return false;	/* it ends after those that are under way */
		if (stays(qp, rc))
			return true;
	}
	return false;
}

bool hca_under_way_remains(const struct hca_qp *qp)
{
	return qp->sq.under_way || before(qp->sq.next, qp->sq.begun);
}

/* ---- Upcalls ------------------------------------------------------------- */

/* Give it a turn, if it has something to do then. */
static void want_turn(struct hca_qp *qp)
{
	if (qp->sq.next != qp->sq.posted || qp->draining)
		hca_engine_add(qp);
}

static void ended(struct hca_qp *qp, uint32_t count)
{
	struct hca_sq *sq = &qp->sq;

	for (; count && sq->under_way; count--) {
		hca_engine_finish(qp, IBV_WC_SUCCESS);
		while (sq->under_way && oldest(sq)->over)
			hca_engine_finish(qp, IBV_WC_SUCCESS);
	}
	want_turn(qp);
}

static void failed(struct hca_qp *qp, int status)
{
	if (qp->sq.under_way)
		hca_engine_finish(qp, status);
}

static void rewound(struct hca_qp *qp, int why)
{
	struct hca_sq *sq = &qp->sq;
	bool any = sq->under_way;
	int rc;

	sq->next = hca_sq_oldest(sq);
	sq->under_way = sq->answers = 0;
	sq->blocked = false;
	rc = any ? try_again(qp, why) : 0;
	if (rc)
		hca_engine_finish(qp, rc);
	want_turn(qp);
}

static void resume(struct hca_qp *qp)
{
	qp->sq.blocked = false;
	want_turn(qp);
}

static void lost(struct hca_qp *qp)
{
	int state = hca_qp_state(qp);

	if (qp->reliable && (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD))
		hca_qp_lose_peer(qp);
}

const struct hca_link_upcalls hca_engine_upcalls = {
	.ended = ended,
	.failed = failed,
	.rewound = rewound,
	.resume = resume,
	.lost = lost,
};
