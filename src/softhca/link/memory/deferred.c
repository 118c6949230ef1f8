/* deferred.c - the end of an RDMA write is deferred until its arrival time. */
#include "util/clock.h"
#include "softhca/link/memory/copy.h"
#include "softhca/link/memory/connect.h"
#include "softhca/link/memory/deferred.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/steps.h"

/* A peer that answers -EBUSY is retried for so long. */
enum { BUSY_NS = 1000000000 };

static struct hca_deferred_list *list_of(const struct hca_qp *qp)
{
	return qp->deferred;
}

uint32_t hca_deferred_bytes(const struct hca_qp *qp)
{
	const struct hca_message *m = &qp->message;
	const struct hca_span *last;
	uint32_t in_line;

	if (!m->bytes)
		return 0;
	last = &m->remote[m->remote_count - 1];
	/* A peer that copies may be stopped when it is due: the completion would come first. */
	if (!last->local && hca_copy_bounces(m->to->peer))
		return 0;
	in_line = (uint32_t)((last->remote + last->bytes - 1) % HCA_LINE + 1);
	return in_line < last->bytes ? in_line : (uint32_t)last->bytes;
}

/* The last bytes of the local end of the message. */
static void gather_end(const struct hca_message *m, unsigned char *to, uint32_t bytes)
{
	unsigned i = m->local_count;

	while (bytes) {
		const struct hca_span *s = &m->local[--i];
		uint32_t n = s->bytes < bytes ? (uint32_t)s->bytes : bytes;

		bytes -= n;
		memcpy(to + bytes, s->local + s->bytes - n, n);
	}
}

static uint32_t section_of(const struct hca_qp *qp)
{
	return atomic_load_explicit(&qp->shm->access_section, memory_order_relaxed);
}

static int copy_end(const struct hca_qp *qp, const struct hca_deferred *h)
{
	struct hca_peer *peer = qp->conn.peer;
	void *data = (void *)(uintptr_t)h->data;
	const uint32_t key = (uint32_t)h->stamp;

	return list_of(qp)->reached == section_of(qp) ?
		       hca_copy_reached(peer, data, h->remote, key, h->bytes) :
		       hca_copy_remote(peer, HCA_TO_REMOTE, data, h->remote, key, h->bytes);
}

/*
 * Another stamp with the same key: a smaller part is mapped than when the write was deferred,
 * or the registration is another one.  A failure is not reported: the next message finds it.
 */
static void write_elsewhere(struct hca_qp *qp, const struct hca_deferred *h)
{
	struct hca_conn *c = &qp->conn;
	const struct hca_remote_mr *mr = hca_conn_mr(c, (uint32_t)h->stamp);
	uint64_t at, until_ns;

	if (!mr || !(mr->access & IBV_ACCESS_REMOTE_WRITE))
		return;
	at = h->remote - mr->addr;
	if (at > mr->length || h->bytes > mr->length - at)
		return;
	if (hca_remote_mapped(mr, at, h->bytes)) {
		hca_copy_last_last(mr->base + (at - mr->mapped), h->data, h->bytes);
		return;
	}
	until_ns = rg_now_ns() + BUSY_NS;
	while (copy_end(qp, h) == -EBUSY && hca_peer_fate(c->peer) == HCA_FATE_ALIVE &&
	       !rg_reached(until_ns, rg_now_ns()))
		rg_yield();
}

static void write_out(struct hca_qp *qp, const struct hca_deferred *h)
{
	struct hca_conn *c = &qp->conn;

	/* Memory that was withdrawn meanwhile is not written to. */
	if (!c->shm || atomic_load_explicit(&c->shm->accept, memory_order_acquire) != c->accept)
		return;
	if (h->local && hca_remote_is_valid(h->live, h->invalidated, h->stamp))
		hca_copy_last_last(h->local, h->data, h->bytes);
	else
		write_elsewhere(qp, h);
}

bool hca_deferred_waits(const struct hca_qp *qp)
{
	struct hca_deferred_list *l = list_of(qp);
	const struct hca_conn *c = &qp->conn;
	uint32_t i;

	for (i = 0; i < l->count && c->shm; i++)
		if (hca_peer_memory_moving(c->peer, (uint32_t)l->entry[(l->first + i) %
								       HCA_DEFERRED_MAX].stamp))
			return true;
	l->reached = section_of(qp);
	return false;
}

static void write_oldest(struct hca_qp *qp)
{
	struct hca_deferred_list *l = list_of(qp);

	write_out(qp, &l->entry[l->first]);
	l->first = (l->first + 1) % HCA_DEFERRED_MAX;
	l->count--;
	atomic_store_explicit(&l->held, false, memory_order_release);
}

void hca_deferred_make_room(struct hca_qp *qp)
{
	if (list_of(qp)->count == HCA_DEFERRED_MAX)
		write_oldest(qp);
}

/*
 * Since the message was copied the owner may have moved the memory.  The registration whose stamp
 * is kept, not the message's spans, says which part is mapped.
 */
void hca_deferred_add(struct hca_qp *qp, uint32_t key, uint32_t bytes, uint64_t due_ns)
{
	const struct hca_message *m = &qp->message;
	const struct hca_span *last = &m->remote[m->remote_count - 1];
	struct hca_deferred_list *l = list_of(qp);
	struct hca_deferred *h = &l->entry[(l->first + l->count) % HCA_DEFERRED_MAX];
	const struct hca_remote_mr *mr = hca_conn_mr(&qp->conn, key);
	uint64_t at;

	if (!mr)
		return;			/* withdrawn meanwhile */
	l->count++;
	h->due_ns = due_ns;
	h->remote = last->remote + last->bytes - bytes;
	at = h->remote - mr->addr;
	h->local = hca_remote_mapped(mr, at, bytes) ? mr->base + (at - mr->mapped) : NULL;
	h->stamp = mr->stamp;
	h->live = mr->live;
	h->invalidated = mr->invalidated;
	h->bytes = bytes;
	gather_end(m, h->data, bytes);
}

static void release(struct hca_qp *qp, uint64_t now_ns)
{
	struct hca_deferred_list *l = list_of(qp);

	while (l->count && rg_reached(l->entry[l->first].due_ns, now_ns))
		write_oldest(qp);
}

void hca_deferred_release(struct hca_qp *qp, uint64_t now_ns)
{
	struct hca_deferred_list *l = list_of(qp);
	bool waits;

	hca_access_section_enter(qp->shm);
	/* The memory of a dead process stays moving. */
	waits = hca_deferred_waits(qp) && hca_peer_fate(qp->conn.peer) == HCA_FATE_ALIVE;
	if (!waits)
		release(qp, now_ns);
	hca_access_section_leave(qp->shm);
	if (waits && rg_reached(l->entry[l->first].due_ns, now_ns))
		atomic_store_explicit(&l->held, true, memory_order_relaxed);
}

void hca_deferred_settle(struct hca_qp *qp)
{
	release(qp, UINT64_MAX);
}

static bool touches(const struct hca_message *m, const struct hca_deferred *h)
{
	unsigned i;

	for (i = 0; i < m->remote_count; i++)
		if (m->remote[i].remote < h->remote + h->bytes &&
		    h->remote < m->remote[i].remote + m->remote[i].bytes)
			return true;
	return false;
}

void hca_deferred_avoid(struct hca_qp *qp)
{
	struct hca_deferred_list *l = list_of(qp);
	unsigned i;

	for (i = 0; i < l->count; i++)
		if (touches(&qp->message, &l->entry[(l->first + i) % HCA_DEFERRED_MAX])) {
			hca_deferred_settle(qp);
			return;
		}
}
