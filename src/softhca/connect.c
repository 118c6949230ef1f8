/* connect.c - from a queue pair number to another process's memory. */
#include <string.h>

#include "device.h"
#include "qp.h"

/* ---- The peer's queue pair ----------------------------------------------- */

static bool piece_fits(uint32_t line, uint64_t bytes)
{
	uint64_t at = (uint64_t)line * HCA_LINE;

	return at <= HCA_HEAP_BYTES && bytes <= HCA_HEAP_BYTES - at;
}

static bool is_count(uint32_t n, uint32_t most)
{
	return n && n <= most && (n & (n - 1)) == 0;
}

/*
 * Copy and check what the peer says about its queues.  volatile: what was
 * checked must not be read again.
 */
static int read_shape(struct hca_conn *c, const volatile struct hca_shm_qp *theirs)
{
	unsigned char *heap = c->peer->shm->heap;
	uint32_t rq_line = theirs->rq_line, rq_count = theirs->rq_count;
	uint32_t stride = theirs->rq_stride;
	uint32_t cq_line = theirs->cq_line, cq_count = theirs->cq_count;

	if (!is_count(rq_count, HCA_WR_MAX) || stride % HCA_LINE || stride < HCA_LINE ||
	    stride > hca_align_up(sizeof(struct hca_shm_recv) +
				  HCA_SGE_MAX * sizeof(struct hca_shm_sge), HCA_LINE) ||
	    !piece_fits(rq_line, (uint64_t)rq_count * stride) ||
	    !is_count(cq_count, HCA_CQE_MAX) || !piece_fits(cq_line, hca_mailbox_bytes(cq_count)))
		return -ENOTCONN;
	c->rq = heap + (uint64_t)rq_line * HCA_LINE;
	c->rq_mask = rq_count - 1;
	c->rq_stride = stride;
	c->rq_head = atomic_load_explicit(&theirs->rq_head, memory_order_relaxed);
	c->mailbox.shm = (struct hca_shm_mailbox *)(void *)(heap + (uint64_t)cq_line * HCA_LINE);
	c->mailbox.mask = cq_count - 1;
	c->mailbox.shift = hca_log2(cq_count);
	c->pd = theirs->pd;
	c->reads = theirs->reads;
	memset(c->mr, 0, sizeof(c->mr));
	return 0;
}

/* Hold the process in that slot; what is held already is kept. */
static int hold_peer(struct hca_qp *qp, uint32_t slot)
{
	struct hca_conn *c = &qp->conn;
	const struct hca_shm_slot *s = &qp->fabric->shm->slot[slot];

	if (c->peer && c->peer->slot == slot && c->peer->generation == atomic_load(&s->generation))
		return 0;
	hca_conn_drop(c);
	return hca_peer_get(qp->fabric, slot, &c->peer);
}

int hca_conn_resolve(struct hca_qp *qp)
{
	struct hca_conn *c = &qp->conn;
	struct hca_shm_qp *theirs;
	uint32_t slot, index;
	uint64_t gate;

	if (c->peer && hca_peer_fate(c->peer) == HCA_FATE_DEAD)
		return -ECONNRESET;
	c->shm = NULL;
	if (hca_fabric_find_qpn(qp->fabric, qp->dest_qpn, &slot, &index) || hold_peer(qp, slot))
		return -ENOTCONN;
	theirs = &c->peer->shm->qp[index];
	gate = atomic_load_explicit(&theirs->gate, memory_order_acquire);
	if ((uint32_t)gate != hca_qpn(qp) || theirs->qpn != qp->dest_qpn ||
	    theirs->address != qp->dest_address)
		return -ENOTCONN;
	if (read_shape(c, theirs))
		return -ENOTCONN;
	/* The shape belongs to this gate only if the gate is still the same. */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&theirs->gate, memory_order_relaxed) != gate)
		return -ENOTCONN;
	c->gate = gate;
	c->shm = theirs;
	return 0;
}

void hca_conn_drop(struct hca_conn *c)
{
	struct hca_peer *peer = c->peer;

	c->shm = NULL;
	c->peer = NULL;
	if (peer)
		hca_peer_put(peer);
}

/* ---- The peer's registrations -------------------------------------------- */

/* Our own: not what is in shared memory decides, but what we know. */
static bool read_own_mr(struct hca_conn *c, uint32_t key, struct hca_remote_mr *out)
{
	struct hca_fabric *f = c->peer->fabric;
	const struct hca_mr *mr = hca_mr_find(f, key);

	if (!mr || mr->pd != c->pd)
		return false;
	*out = (struct hca_remote_mr){
		.key = key, .access = mr->access, .iova = mr->iova, .length = mr->ibv.length,
		.addr = (uintptr_t)mr->ibv.addr, .mapped_end = mr->ibv.length,
		.base = mr->ibv.addr, .live = &f->self->mr[key >> HCA_KEY_GEN_BITS].key,
	};
	return true;
}

static void map_mr(struct hca_conn *c, struct hca_remote_mr *m, uint64_t start, uint64_t end)
{
	if (start < m->addr || end <= start || end - m->addr > m->length)
		return;
	m->base = hca_peer_map(c->peer, start, end - start);
	if (!m->base)
		return;
	m->mapped = start - m->addr;
	m->mapped_end = end - m->addr;
}

static bool read_mr(struct hca_conn *c, uint32_t key, struct hca_remote_mr *out)
{
	const volatile struct hca_shm_mr *mr = &c->peer->shm->mr[key >> HCA_KEY_GEN_BITS];
	uint64_t mapped, mapped_end;
	uint32_t pd;

	if (!key || atomic_load_explicit(&mr->key, memory_order_acquire) != key)
		return false;
	*out = (struct hca_remote_mr){ .access = mr->access, .iova = mr->iova,
				       .length = mr->length, .addr = mr->addr };
	out->live = &c->peer->shm->mr[key >> HCA_KEY_GEN_BITS].key;
	pd = mr->pd;
	mapped = mr->mapped;
	mapped_end = mr->mapped_end;
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&mr->key, memory_order_relaxed) != key || pd != c->pd)
		return false;
	map_mr(c, out, mapped, mapped_end);
	out->key = key;
	return true;
}

const struct hca_remote_mr *hca_conn_mr(struct hca_conn *c, uint32_t key)
{
	struct hca_remote_mr *m = &c->mr[(key >> HCA_KEY_GEN_BITS) % HCA_KEYS];

	if (hca_likely(m->key == key && key &&
		       atomic_load_explicit(m->live, memory_order_acquire) == key))
		return m;
	m->key = 0;
	return (c->peer->here ? read_own_mr : read_mr)(c, key, m) ? m : NULL;
}
