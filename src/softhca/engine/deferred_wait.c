/* deferred_wait.c - when the deferred ends of RDMA writes are written (object/deferred.h). */
#include "softhca/engine/deferred_wait.h"

#include "util/clock.h"
#include "softhca/engine/engine.h"

enum {
	POLLING_NS = 100000,	/* a program that polled so recently will call again on time */
	WAIT_NS = 5000,	/* ibv_post_send waits for ends that are due sooner */
	WAIT_ALONE_NS = 12000,	/* without polling: 4 KiB, and 7 us at 1 GB/s */
	STREAM_NS = 1000,	/* posts closer than this are a stream */
};

/* Does the program poll, so that it calls again on time? */
static bool polls(const struct hca_qp *qp, uint64_t now_ns)
{
	return now_ns < POLLING_NS + atomic_load_explicit(&hca_engine_of(qp->fabric)->polled_ns,
							  memory_order_relaxed);
}

/*
 * A program that polls memory for the peer's answer does not poll the CQ on time.  Sign: at each
 * post all earlier posts are complete.  In a stream one never is.
 */
static bool looks_in_memory(const struct hca_qp *qp, uint64_t now_ns)
{
	const struct hca_engine *e = hca_engine_of(qp->fabric);

	return now_ns >= qp->deferred->complete_ns &&
	       now_ns >= POLLING_NS + atomic_load_explicit(&e->waited_ns, memory_order_relaxed);
}

/* `alone`: the program will not call again on time, and the progress thread writes the rest. */
static void release_due(struct hca_qp *qp, uint64_t now_ns, bool alone)
{
	const struct hca_deferred_list *l = qp->deferred;

	if (rg_reached(hca_deferred_first_ns(l), now_ns))
		qp->link->release_deferred(qp, now_ns);
	if (l->count && alone)
		hca_progress_thread_arm(qp->fabric, atomic_load(&l->held) ?
				       rg_now_ns() + HCA_HELD_NS : hca_deferred_first_ns(l));
}

bool hca_release_due(struct hca_qp *qp, uint64_t now_ns)
{
	if (qp->deferred->count)
		release_due(qp, now_ns, !polls(qp, now_ns));
	return qp->deferred->count;
}

/* The time between two calls: what the requests of this one took, copies too, is none of it. */
static bool is_streaming(const struct hca_qp *qp, uint32_t first)
{
	const uint64_t latency_ns = qp->conn.out.latency_ns / 2;
	const struct hca_sq *sq = &qp->sq;

	return first != sq->posted &&
	       sq->wqe[first & sq->mask].posted_ns - qp->deferred->posted_ns <
		       (latency_ns < STREAM_NS ? latency_ns : STREAM_NS);
}

void hca_wait_for_deferred(struct hca_qp *qp, uint32_t first)
{
	struct hca_deferred_list *l = qp->deferred;
	uint64_t now, due, most;
	bool streaming, alone;

	if (!l->count)
		return;
	now = rg_now_ns();
	streaming = is_streaming(qp, first);
	due = hca_deferred_last_ns(l);
	alone = !polls(qp, now) || looks_in_memory(qp, now);
	most = alone ? WAIT_ALONE_NS : WAIT_NS;
	l->complete_ns = due + qp->conn.out.latency_ns;
	if (qp->sq.next == qp->sq.posted && due < now + most && !streaming)
		while (now < due) {
			rg_relax(due);
			now = rg_now_ns();
		}
	release_due(qp, now, alone);
	l->posted_ns = now;
}
