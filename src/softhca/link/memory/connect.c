/* connect.c - resolving a queue pair number to another process's memory. */
#include <stdlib.h>
#include <string.h>

#include "softhca/link/memory/wakeup_peer.h"
#include "softhca/link/memory/connect.h"
#include "softhca/link/memory/numbers.h"
#include "softhca/link/memory/peer.h"
#include "softhca/object/device.h"
#include "softhca/object/loss.h"
#include "softhca/object/mw.h"

/* ---- The peer's queue pair ----------------------------------------------- */

static bool piece_fits(const struct hca_peer *p, uint32_t line, uint64_t bytes)
{
	uint64_t at = (uint64_t)line * HCA_LINE;

	return at <= p->heap_bytes && bytes <= p->heap_bytes - at;
}

static bool is_count(uint32_t n, uint32_t most)
{
	return n && n <= most && (n & (n - 1)) == 0;
}

/* The shared part of a receive queue that many senders claim from. */
static int read_shared(struct hca_conn *c, uint32_t line)
{
	c->shared.shm = NULL;
	if (!line)
		return 0;
	if (!piece_fits(c->peer, line, hca_shared_bytes(c->rq_mask + 1)))
		return -ENOTCONN;
	c->shared.shm = (struct hca_shm_shared *)(void *)(c->peer->shm->heap +
							  (uint64_t)line * HCA_LINE);
	c->shared.ring = c->rq;
	c->shared.mask = c->rq_mask;
	c->shared.stride = c->rq_stride;
	return 0;
}

static void forget_keys(struct hca_conn *c)
{
	memset(c->mr, 0, sizeof(c->mr));
	if (c->rq_mr != c->mr)
		free(c->rq_mr);
	c->rq_mr = NULL;
}

/* The cache of registrations of receives' buffers; an SRQ's may have another PD. */
static int make_rq_keys(struct hca_conn *c)
{
	c->rq_mr = c->rq_pd == c->pd ? c->mr : calloc(HCA_KEYS, sizeof(*c->rq_mr));
	return c->rq_mr ? 0 : -ENOTCONN;
}

int hca_conn_mailbox(struct hca_conn *c, const struct hca_shm_qp *theirs)
{
	uint64_t word = atomic_load_explicit(&theirs->cq, memory_order_acquire);
	uint32_t line = (uint32_t)(word >> 32), count = (uint32_t)word;

	if (!is_count(count, HCA_CQE_MAX) || !piece_fits(c->peer, line, hca_mailbox_bytes(count)))
		return -ENOTCONN;
	c->mailbox.shm = (struct hca_shm_mailbox *)(void *)(c->peer->shm->heap +
							    (uint64_t)line * HCA_LINE);
	c->mailbox.mask = count - 1;
	c->mailbox.shift = hca_log2(count);
	c->mailbox.peer = c->peer;
	c->mailbox.wake_peer = hca_wakeup_send_peer;
	c->cq = word;
	return 0;
}

/* Copy and check the peer's description of its queues: each word is read once. */
static int read_shape(struct hca_conn *c, const struct hca_shm_qp *theirs)
{
	unsigned char *heap = c->peer->shm->heap;
	uint32_t rq_line = hca_get(theirs->rq_line), rq_count = hca_get(theirs->rq_count);
	uint32_t stride = hca_get(theirs->rq_stride);

	if (!is_count(rq_count, HCA_WR_MAX) || stride % HCA_LINE || stride < HCA_LINE ||
	    stride > hca_align_up(sizeof(struct hca_shm_recv) +
				  HCA_SGE_MAX * sizeof(struct hca_shm_sge), HCA_LINE) ||
	    !piece_fits(c->peer, rq_line, (uint64_t)rq_count * stride) || hca_conn_mailbox(c, theirs))
		return -ENOTCONN;
	c->rq = heap + (uint64_t)rq_line * HCA_LINE;
	c->rq_mask = rq_count - 1;
	c->rq_stride = stride;
	c->rq_head = hca_get(theirs->rq_head);
	forget_keys(c);
	c->pd = hca_get(theirs->pd);
	c->rq_pd = hca_get(theirs->rq_pd);
	return read_shared(c, hca_get(theirs->shared_line)) || make_rq_keys(c) ? -ENOTCONN : 0;
}

/* Hold a reference to the process in that slot; keep one that is held already. */
static int hold_peer(struct hca_qp *qp, struct hca_conn *c, uint32_t slot)
{
	const struct hca_shm_slot *s = &qp->fabric->shm->slot[slot];

	if (c->peer && c->peer->slot == slot && c->peer->generation == atomic_load(&s->generation))
		return 0;
	hca_conn_drop(c);
	return hca_peer_get(qp->fabric, slot, &c->peer);
}

/* Both ends are of one partition, and one end at least is a full member: all others are dropped. */
static bool pkeys_match(uint32_t a, uint32_t b)
{
	const uint32_t full = 0x8000;

	return (a & ~full) && (a & ~full) == (b & ~full) && ((a | b) & full);
}

int hca_conn_resolve(struct hca_qp *qp, struct hca_conn *c)
{
	struct hca_shm_qp *theirs;
	const uint32_t opened = qp->datagram ? HCA_ANY_SENDER : hca_qpn(qp);
	uint32_t slot, index;
	uint64_t token;

	if (c->peer && hca_peer_fate(c->peer) == HCA_FATE_DEAD)
		return -ECONNRESET;
	c->shm = NULL;
	if (!hca_path_up(qp->fabric, qp->address, c->address))
		return -ENOTCONN;
	if (hca_number_find(qp->fabric, c->qpn, &slot, &index) || hold_peer(qp, c, slot))
		return -ENOTCONN;
	theirs = &c->peer->shm->qp[index];
	token = atomic_load_explicit(&theirs->accept, memory_order_acquire);
	if ((uint32_t)token != opened || hca_get(theirs->qpn) != c->qpn ||
	    hca_get(theirs->address) != c->address ||
	    !pkeys_match(hca_qp_pkey(qp), hca_get(theirs->pkey)))
		return -ENOTCONN;
	if (read_shape(c, theirs))
		return -ENOTCONN;
	/* The shape belongs to this accept token only if the token is still the same. */
	if (atomic_load_explicit(&theirs->accept, memory_order_relaxed) != token)
		return -ENOTCONN;
	c->accept = token;
	c->shm = theirs;
	return 0;
}

void hca_conn_drop(struct hca_conn *c)
{
	struct hca_peer *peer = c->peer;

	c->shm = NULL;
	c->peer = NULL;
	c->shared.shm = NULL;
	forget_keys(c);
	if (peer)
		hca_peer_put(peer);
}

/* ---- The peer's registrations -------------------------------------------- */

/* A registration of this process: its addresses are used as they are. */
static void use_own_mr(struct hca_remote_mr *m)
{
	m->base = (unsigned char *)(uintptr_t)m->addr;
	m->mapped_end = m->length;
}

static void map_mr(struct hca_conn *c, struct hca_remote_mr *m, uint64_t start, uint64_t end)
{
	if (start < m->addr || end <= start || end - m->addr > m->length)
		return;
	m->base = hca_peer_map(c->peer, start, end - start);
	if (!m->base) {
		m->access &= ~(unsigned)IBV_ACCESS_REMOTE_ATOMIC;	/* atomic.h */
		return;
	}
	m->mapped = start - m->addr;
	m->mapped_end = end - m->addr;
}

static bool read_mr(struct hca_conn *c, uint32_t pd, uint32_t key, struct hca_remote_mr *out)
{
	const uint32_t index = key >> HCA_KEY_GEN_BITS;
	const struct hca_shm_mr *mr = &c->peer->table->mr[index];
	uint64_t mapped, mapped_end, stamp;
	uint32_t their_pd, qpn;

	stamp = atomic_load_explicit(&mr->stamp, memory_order_acquire);
	if (!key || (uint32_t)stamp != key)
		return false;
	*out = (struct hca_remote_mr){ .access = hca_get(mr->access), .iova = hca_get(mr->iova),
				       .length = hca_get(mr->length), .addr = hca_get(mr->addr),
				       .stamp = stamp, .live = &mr->stamp };
	their_pd = hca_get(mr->pd);
	qpn = hca_get(mr->qpn);
	mapped = hca_get(mr->mapped);
	mapped_end = hca_get(mr->mapped_end);
	if (atomic_load_explicit(&mr->stamp, memory_order_relaxed) != stamp || their_pd != pd ||
	    (qpn && qpn != c->qpn))
		return false;
	out->invalidated = qpn ? &c->peer->shm->invalidated[index] : NULL;
	if (c->peer->is_self)
		use_own_mr(out);
	else
		map_mr(c, out, mapped, mapped_end);
	return true;
}

static bool is_known_window(const struct hca_remote_mr *m, uint32_t key)
{
	return m->invalidated && (uint32_t)m->stamp == key &&
	       atomic_load_explicit(m->live, memory_order_acquire) == m->stamp;
}

/*
 * The slow path.  A row whose stamp changes meanwhile may still have the same key, with a
 * smaller mapped part: then it is read again.
 */
const struct hca_remote_mr *hca_conn_mr_look_up(struct hca_conn *c, struct hca_remote_mr *m,
						uint32_t pd, uint32_t key)
{
	const _Atomic uint64_t *live = &c->peer->table->mr[key >> HCA_KEY_GEN_BITS].stamp;
	int tries;

	m->key = 0;
	for (tries = 0; tries < HCA_CHANGES; tries++) {
		uint64_t before = atomic_load(live);

		if ((is_known_window(m, key) ||
		     read_mr(c, pd, key, m)) &&
		    hca_remote_is_valid(m->live, m->invalidated, m->stamp)) {
			/* A window may be invalidated by a peer: its key is never cached. */
			m->key = m->invalidated ? 0 : key;
			return m;
		}
		if (atomic_load(live) == before)
			break;
	}
	m->invalidated = NULL;
	return NULL;
}

/* ---- The peer's windows -------------------------------------------------- */

bool hca_mw_is_theirs(const struct hca_conn *c, uint32_t rkey)
{
	const uint32_t index = rkey >> HCA_KEY_GEN_BITS;

	return hca_mw_is_open(&c->peer->table->mr[index], &c->peer->shm->invalidated[index], rkey,
			      c->qpn, c->pd);
}

void hca_mw_invalidate_theirs(const struct hca_conn *c, uint32_t rkey)
{
	const uint32_t index = rkey >> HCA_KEY_GEN_BITS;

	hca_mw_invalidate_open(&c->peer->table->mr[index], &c->peer->shm->invalidated[index], rkey);
}
