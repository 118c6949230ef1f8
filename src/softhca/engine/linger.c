/* linger.c - when the deferred ends of RDMA writes are written (object/deferred.h). */
#include "engine/linger.h"

#include "clock.h"
#include "engine/engine.h"

enum {
	POLLING_NS = 100000,	/* a program that polled so recently will call again on time */
	LINGER_NS = 5000,	/* ibv_post_send waits for what is due sooner */
	LINGER_ALONE_NS = 12000,	/* without polling: 4 KiB, and 7 us at 1 GB/s */
	STREAM_NS = 1000,	/* posts closer than this are a stream */
};

/* Does the program wait in a queue, so that it calls again on time? */
static bool polls(const struct hca_qp *qp, uint64_t now_ns)
{
	return now_ns < POLLING_NS + atomic_load_explicit(&hca_engine_of(qp->fabric)->polled_ns,
							  memory_order_relaxed);
}

/* For a program that does not poll, the progress thread writes what is due later than that. */
static void arm_timer(struct hca_qp *qp, uint64_t now_ns, uint64_t later_ns)
{
	const struct hca_deferred_list *l = qp->deferred;

	if (l->count && hca_deferred_first_ns(l) > now_ns + later_ns && !polls(qp, now_ns))
		hca_progress_thread_arm(qp->fabric, hca_deferred_first_ns(l));
}

static void release(struct hca_qp *qp, uint64_t now_ns)
{
	if (qp->deferred->count && rg_reached(hca_deferred_first_ns(qp->deferred), now_ns))
		qp->fabric->link->release_deferred(qp, now_ns);
}

void hca_release_due(struct hca_qp *qp, uint64_t now_ns)
{
	release(qp, now_ns);
	/* What is due sooner the post waits for that this may be a part of. */
	arm_timer(qp, now_ns, LINGER_ALONE_NS);
}

void hca_linger(struct hca_qp *qp)
{
	uint64_t stream_ns = qp->conn.out.latency_ns / 2;
	struct hca_deferred_list *l = qp->deferred;
	uint64_t now, due, most;
	bool streaming;

	if (!l->count)
		return;
	if (stream_ns > STREAM_NS)
		stream_ns = STREAM_NS;
	now = rg_now_ns();
	streaming = now - l->posted_ns < stream_ns;
	due = hca_deferred_last_ns(l);
	most = polls(qp, now) ? LINGER_NS : LINGER_ALONE_NS;
	if (qp->sq.next == qp->sq.posted && due < now + most && !streaming)
		while (now < due) {
			rg_relax(due);
			now = rg_now_ns();
		}
	release(qp, now);
	arm_timer(qp, now, 0);
	l->posted_ns = now;
}
