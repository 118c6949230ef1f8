/* pace.c - work requests on a timed fabric: each quantum when it is due. */
#include <stdlib.h>

#include "clock.h"
#include "engine.h"
#include "pace.h"

/* One call does not go on for ever, however far behind it is. */
enum { QUANTA_PER_TURN = 64 };

/* ---- Coming and going ---------------------------------------------------- */

int hca_pace_make(struct hca_qp *qp)
{
	const struct hca_spec *s = &qp->fabric->spec;
	struct hca_pace *p = calloc(1, sizeof(*p));

	if (!p)
		return ENOMEM;
	qp->pace = p;
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

	hca_path_make(qp->fabric, qp->address, qp->dest_address, mtu, &qp->pace->out);
	hca_path_make(qp->fabric, qp->dest_address, qp->address, mtu, &qp->pace->in);
}

void hca_pace_reset(struct hca_qp *qp)
{
	if (!qp->pace)
		return;
	qp->pace->begun = false;
	qp->pace->held.count = 0;
}

/* ---- A message ----------------------------------------------------------- */

/* When the limits on messages let the request begin. */
static uint64_t may_begin(const struct hca_pace *p, const struct hca_wqe *w)
{
	uint64_t at = w->posted_ns, open = hca_times_open(&p->outstanding);

	if (open > at)
		at = open;
	open = w->wr.opcode == IBV_WR_RDMA_READ ? hca_times_open(&p->reads) : 0;
	if (open > at)
		at = open;
	if ((w->wr.send_flags & IBV_SEND_FENCE) && p->read_ns > at)
		at = p->read_ns;
	return at;
}

enum step { WAIT = -100, ON = 0 };	/* else a status that ends the request */

static int begin(struct hca_qp *qp, struct hca_wqe *w, uint64_t now)
{
	struct hca_pace *p = qp->pace;
	struct hca_sq *sq = &qp->sq;
	int rc;

	p->earliest_ns = may_begin(p, w);
	if (p->earliest_ns > now)
		return WAIT;
	/* After a receiver-not-ready the next try is when the timer ends, not before. */
	if (sq->wait == HCA_WAITS_RECEIVE && now < sq->deadline_ns)
		return WAIT;
	rc = hca_transfer_begin(qp, &w->wr, w->bytes);
	if (rc < 0) {
		rc = hca_engine_wait_or_fail(qp, rc);
		return rc ? rc : WAIT;
	}
	if (rc)
		return rc;
	if (sq->wait != HCA_NOT_WAITING)
		p->earliest_ns = now;
	sq->wait = HCA_NOT_WAITING;
	if (w->wr.opcode == IBV_WR_RDMA_READ)
		p->earliest_ns = hca_path_request(&p->out, p->earliest_ns);
	p->begun = true;
	return ON;
}

/* When the next quantum may begin; in the future: not yet. */
static uint64_t quantum_begin(struct hca_pace *p, const struct hca_path *path, bool reading)
{
	uint64_t t = p->earliest_ns, open = reading ? 0 : hca_window_open(&p->window);

	if (open > t)
		t = open;
	/* What comes after does not fill time that was idle before. */
	if (p->end_ns > t + path->horizon_ns)
		t = p->end_ns - path->horizon_ns;
	return t;
}

static int quantum(struct hca_qp *qp, struct hca_wqe *w, uint64_t now)
{
	const bool reading = w->wr.opcode == IBV_WR_RDMA_READ;
	struct hca_pace *p = qp->pace;
	const struct hca_path *path = reading ? &p->in : &p->out;
	const uint32_t done = qp->message.done;
	uint64_t t = quantum_begin(p, path, reading), span;
	uint32_t bytes = w->bytes - done, held = 0;
	bool hold;
	int rc;

	if (bytes > path->quantum_bytes)
		bytes = path->quantum_bytes;
	/* The answer to a read begins at the responder, when the request is there. */
	if (t > now && !reading)
		return WAIT;
	if (hca_path_free(path) > (t > now ? t : now) + path->horizon_ns)
		return WAIT;
	hold = bytes == w->bytes - done && w->wr.opcode == IBV_WR_RDMA_WRITE;
	rc = hca_transfer_copy(qp, &w->wr, bytes, hold ? &held : NULL);
	if (rc < 0) {
		/* The peer went away in mid-message: no answer any more. */
		rc = hca_engine_wait_or_fail(qp, rc);
		return rc ? rc : WAIT;
	}
	if (rc)
		return rc;
	p->end_ns = hca_path_reserve(path, t, bytes, !done && !reading, &span);
	if (p->end_ns + path->latency_ns > p->arrival_ns)
		p->arrival_ns = p->end_ns + path->latency_ns;
	if (hold)
		hca_transfer_hold(qp, &w->wr, held, p->arrival_ns);
	if (!reading)
		hca_window_add(&p->window, hca_packets(bytes, path->mtu),
			       p->arrival_ns + path->latency_ns, span);
	return ON;
}

/* All of it is on its way: tell both ends when. */
static int end(struct hca_qp *qp, struct hca_wqe *w)
{
	const bool reading = w->wr.opcode == IBV_WR_RDMA_READ;
	struct hca_pace *p = qp->pace;
	uint64_t visible = p->arrival_ns + (reading ? 0 : p->out.latency_ns);
	int rc = hca_transfer_end(qp, &w->wr, p->arrival_ns);

	if (rc)
		return rc;
	if (visible > p->visible_ns)
		p->visible_ns = visible;
	if (reading) {
		p->read_ns = visible;
		hca_times_add(&p->reads, visible);
	}
	hca_times_add(&p->outstanding, visible);
	return IBV_WC_SUCCESS;
}

/* The next step of the oldest request. */
static int step(struct hca_qp *qp, struct hca_wqe *w)
{
	uint64_t now = rg_now_ns();
	int rc = qp->pace->begun ? ON : begin(qp, w, now);

	if (!rc)
		rc = quantum(qp, w, now);
	return rc;
}

/* Others of this process have their turn after each quantum. */
static bool alone(const struct hca_qp *qp)
{
	const struct hca_engine *e = &qp->fabric->engine;

	return !atomic_load_explicit(&e->pending, memory_order_relaxed) &&
	       !atomic_load_explicit(&e->sharing, memory_order_relaxed);
}

bool hca_pace_progress(struct hca_qp *qp)
{
	struct hca_held_list *held = &qp->pace->held;
	struct hca_sq *sq = &qp->sq;
	int turn;

	for (turn = 0; sq->next != sq->posted; turn++) {
		struct hca_wqe *w = &sq->wqe[sq->next & sq->mask];
		int rc = WAIT;

		if (turn == 0 || (turn < QUANTA_PER_TURN && alone(qp)))
			rc = step(qp, w);
		if (rc == WAIT)
			break;
		if (!rc && qp->message.done < w->bytes)
			continue;
		if (!rc)
			rc = end(qp, w);
		qp->pace->begun = false;
		hca_engine_finish(qp, rc);
	}
	/* After the loop, since what it has found late may be due already. */
	if (held->count)
		hca_held_release(qp, rg_now_ns());
	return turn > 0;
}

bool hca_pace_due(const struct hca_qp *qp)
{
	return qp->sq.next != qp->sq.posted || qp->pace->held.count;
}
