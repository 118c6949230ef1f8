/* atomic.c - atomic operations on the peer's memory. */
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/atomic.h"
#include "util/clock.h"
#include "softhca/link/memory/copy.h"
#include "softhca/object/device.h"
#include "softhca/base/proc.h"
#include "softhca/link/memory/state.h"

enum {
	WORD = 8,
	LOOK_NS = 20000,	/* after so long the fate of the holder is checked */
	WAIT_NS = 200000,	/* after so long other queue pairs have their turn */
	STOPPED_NS = 1000000000, /* limit of the wait for a stopped holder */
};

/* The limit for a running holder: a turn takes microseconds, and a processor is free some time. */
#define RUNNING_NS 5000000000ull

static uint64_t word_change(const struct ibv_send_wr *wr, uint64_t old)
{
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return old + wr->wr.atomic.compare_add;
	return old == wr->wr.atomic.compare_add ? wr->wr.atomic.swap : old;
}

/* ---- Mapped memory ------------------------------------------------------- */

/*
 * A process always reaches its own memory; but peers reach memory that they cannot map
 * through the kernel, under the lock; this process then needs the lock as well.
 */
static bool all_peers_map(const struct hca_conn *c, uint32_t key, uint64_t remote)
{
	const struct hca_mr *mr;

	if (!c->peer->is_self)
		return true;
	mr = hca_mr_find(c->peer->fabric, key);
	return mr && remote >= mr->mapped && remote + WORD <= mr->mapped_end;
}

static uint64_t on_processor(const struct ibv_send_wr *wr, void *at)
{
	_Atomic uint64_t *word = at;
	uint64_t old = wr->wr.atomic.compare_add;

	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return atomic_fetch_add(word, wr->wr.atomic.compare_add);
	atomic_compare_exchange_strong(word, &old, wr->wr.atomic.swap);
	return old;
}

/* ---- The lock ------------------------------------------------------------ */

/* The holder: generation << 32 | turn << 12 | slot + 1; a value recurs after 2^20 turns only. */
static uint64_t my_turn(const struct hca_fabric *f)
{
	static _Atomic uint32_t turns;
	uint32_t turn = atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);

	static_assert(HCA_PROCS_MAX < 1 << 12, "a slot fits");
	return (uint64_t)f->generation << 32 | (turn & 0xfffff) << 12 | (f->slot + 1);
}

static uint32_t holder_slot(uint64_t holder)
{
	return ((uint32_t)holder & 0xfff) - 1;
}

static bool holder_is_gone(struct hca_fabric *f, uint64_t holder)
{
	uint32_t slot = holder_slot(holder);

	return hca_slot_fate(f, slot) != HCA_FATE_ALIVE ||
	       atomic_load(&f->shm->slot[slot].generation) != (uint32_t)(holder >> 32);
}

/*
 * Has this holder, which is not gone, had its turn for so long, over all tries of the
 * message, that the lock is taken from it?  A holder that only waits for a processor is
 * about to write, and gets a processor sooner.
 */
static bool waited_enough(struct hca_fabric *f, struct hca_message *m, uint64_t holder,
			  uint64_t now)
{
	const struct hca_shm_slot *s = &f->shm->slot[holder_slot(holder)];

	if (m->lock_holder != holder) {
		m->lock_holder = holder;
		m->lock_since_ns = now;
	}
	return rg_reached(m->lock_since_ns + RUNNING_NS + 1, now) ||
	       (rg_reached(m->lock_since_ns + STOPPED_NS + 1, now) &&
		hca_is_near(&f->link_state->me, s->pid_ns) &&
		hca_process_stopped(s->pid, s->start_time));
}

static bool lock(struct hca_fabric *f, struct hca_message *m, _Atomic uint64_t *word, uint64_t me)
{
	uint64_t start = 0, holder = 0;
	bool looked = false;

	while (!atomic_compare_exchange_weak_explicit(word, &holder, me, memory_order_acquire,
						      memory_order_relaxed)) {
		uint64_t now = rg_now_ns();

		if (!start)
			start = now;
		if (holder && !looked && now - start > LOOK_NS) {
			/* The next try takes the lock, unless another process was faster. */
			if (holder_is_gone(f, holder) || waited_enough(f, m, holder, now))
				continue;
			looked = true;
		}
		if (now - start > WAIT_NS)
			return false;
		holder = 0;
		rg_relax(start + (looked ? WAIT_NS : LOOK_NS) + 1);
		if (looked)
			rg_yield();	/* the holder may need this very core */
	}
	m->lock_holder = 0;
	return true;
}

static void unlock(_Atomic uint64_t *word, uint64_t me)
{
	/* Unless another process has taken the lock. */
	atomic_compare_exchange_strong_explicit(word, &me, 0, memory_order_release,
						memory_order_relaxed);
}

/* ---- Other memory -------------------------------------------------------- */

static int read_word(struct hca_conn *c, const struct hca_span *s, uint64_t *value)
{
	if (!s->local)
		return hca_copy_remote(c->peer, HCA_FROM_REMOTE, value, s->remote, s->key, WORD);
	memcpy(value, s->local, WORD);
	return 0;
}

static int write_word(struct hca_conn *c, const struct hca_span *s, uint64_t value)
{
	if (!s->local)
		return hca_copy_remote(c->peer, HCA_TO_REMOTE, &value, s->remote, s->key, WORD);
	memcpy(s->local, &value, WORD);
	return 0;
}

static int under_lock(struct hca_qp *qp, const struct ibv_send_wr *wr,
		      const struct hca_span *s, uint64_t *old)
{
	struct hca_fabric *f = qp->fabric;
	struct hca_conn *c = qp->message.to;
	const uint64_t me = my_turn(f);
	_Atomic uint64_t *word;
	uint32_t port;
	int rc;

	word = &hca_adapter(f->shm, &f->spec, c->address, &port)->atomics;
	if (!lock(f, &qp->message, word, me))
		return -EBUSY;
	rc = read_word(c, s, old);
	/* After a long stop of this process the lock may be another's. */
	if (!rc && atomic_load_explicit(word, memory_order_relaxed) != me)
		return -EBUSY;
	if (rc == -EINPROGRESS)
		rc = -EBUSY;		/* nothing was changed: once more */
	else if (!rc && word_change(wr, *old) != *old)
		rc = write_word(c, s, word_change(wr, *old));
	unlock(word, me);
	return rc;
}

/* ---- The operation ------------------------------------------------------- */

/* The result may go to several pieces. */
static void atomic_scatter(const struct hca_message *m, uint64_t value)
{
	const unsigned char *from = (const unsigned char *)&value;
	size_t left = WORD;
	unsigned i;

	for (i = 0; i < m->local_count && left; i++) {
		size_t n = m->local[i].bytes < left ? m->local[i].bytes : left;

		memcpy(m->local[i].local, from, n);
		from += n;
		left -= n;
	}
}

int hca_atomic(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	struct hca_message *m = &qp->message;
	/* A word of which only a part is mapped has pieces; the kernel reaches all of them. */
	struct hca_span word = { .local = m->remote_count == 1 ? m->remote[0].local : NULL,
				 .remote = m->remote[0].remote, .bytes = WORD,
				 .key = m->remote[0].key };
	uint64_t old;
	int rc = 0;

	if (word.local && word.remote % WORD == 0 &&
	    all_peers_map(m->to, wr->wr.atomic.rkey, word.remote))
		old = on_processor(wr, word.local);
	else
		rc = under_lock(qp, wr, &word, &old);
	if (!rc)
		atomic_scatter(m, old);
	return rc;
}
