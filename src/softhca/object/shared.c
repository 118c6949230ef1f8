/* shared.c - a receive queue from which many senders claim. */
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "softhca/object/link.h"
#include "softhca/object/qp.h"
#include "softhca/object/shared.h"

enum {
	ADVANCE_TRIES = 8,
	PAUSE_NS = 50000,	/* between checks of a claimed receive */
};

static struct hca_shm_recv *entry_at(const struct hca_shared_view *v, uint32_t entry)
{
	return hca_rq_entry(v->ring, entry, v->mask, v->stride);
}

/* ---- Senders ------------------------------------------------------------- */

/* Only forward; one of several concurrent updates is sufficient. */
static void advance(_Atomic uint32_t *head, uint32_t to)
{
	uint32_t now = atomic_load_explicit(head, memory_order_relaxed);
	int tries;

	for (tries = 0; tries < ADVANCE_TRIES && (int32_t)(to - now) > 0; tries++)
		if (atomic_compare_exchange_weak_explicit(head, &now, to, memory_order_relaxed,
							  memory_order_relaxed))
			return;
}

/* True for the first claimer that finds fewer receives left than the limit. */
static bool below_limit(struct hca_shm_shared *shm, uint32_t next)
{
	uint32_t limit = atomic_load_explicit(&shm->limit, memory_order_relaxed);

	if (likely(!limit))
		return false;
	if (atomic_load_explicit(&shm->posted, memory_order_relaxed) - next >= limit ||
	    !atomic_compare_exchange_strong(&shm->limit, &limit, 0))
		return false;
	atomic_store_explicit(&shm->limit_reached, 1, memory_order_release);
	return true;
}

bool hca_shared_claim_oldest(const struct hca_shared_view *v, uint32_t claimer,
		     struct hca_shared_claim *claim)
{
	struct hca_shm_shared *shm = v->shm;
	uint32_t at = atomic_load_explicit(&shm->head, memory_order_relaxed), tries;

	/* Other claimers may be faster at each position: the loop is bounded. */
	for (tries = 0; tries <= 2 * v->mask + 1; tries++) {
		uint64_t order = atomic_load_explicit(&shm->order[at & v->mask],
						      memory_order_acquire);
		uint32_t posted = (uint32_t)(order >> 32), entry = (uint32_t)order;
		struct hca_shm_recv *r = entry_at(v, entry);
		uint64_t state = hca_shm_state(at, HCA_POSTED);

		if ((int32_t)(posted - at) < 0)
			return false;		/* not posted yet */
		if (posted != at) {
			at = posted - v->mask;	/* older by a lap or more */
			continue;
		}
		if (entry <= v->mask &&
		    atomic_compare_exchange_strong(&r->state, &state,
						   hca_shm_state(at, hca_shm_claimed(claimer)))) {
			advance(&shm->head, at + 1);
			claim->recv = r;
			claim->position = at;
			claim->entry = entry;
			claim->alert = below_limit(shm, at + 1);
			return true;
		}
		at++;
	}
	return false;
}

static void put_down(const struct hca_shared_claim *claim, uint32_t claimer, uint32_t state)
{
	uint64_t mine = hca_shm_state(claim->position, hca_shm_claimed(claimer));

	/* Unless the owner has reclaimed it meanwhile. */
	atomic_compare_exchange_strong_explicit(&claim->recv->state, &mine,
						hca_shm_state(claim->position, state),
						memory_order_release, memory_order_relaxed);
}

void hca_shared_done(const struct hca_shared_claim *claim, uint32_t claimer)
{
	put_down(claim, claimer, HCA_DONE);
}

void hca_shared_unclaim(const struct hca_shared_view *v, const struct hca_shared_claim *claim,
		       uint32_t claimer)
{
	_Atomic uint32_t *head = &v->shm->head;
	uint32_t now = atomic_load_explicit(head, memory_order_relaxed);
	int tries;

	put_down(claim, claimer, HCA_POSTED);
	/* A concurrent claimer may advance it over this position: the owner recovers that. */
	for (tries = 0; tries < ADVANCE_TRIES && (int32_t)(now - claim->position) > 0; tries++)
		if (atomic_compare_exchange_weak_explicit(head, &now, claim->position,
							  memory_order_relaxed,
							  memory_order_relaxed))
			break;
	atomic_store_explicit(&v->shm->returned, 1, memory_order_release);
}

/* ---- Creation and destruction -------------------------------------------- */

/* No position precedes the first; positions of an earlier queue in the same memory are far away. */
static uint32_t first_position(struct hca_fabric *f)
{
	return ++f->shared_last << 16;
}

void hca_shared_clear(struct hca_shared *s)
{
	struct hca_shm_shared *shm = s->view.shm;
	uint32_t i, first;

	pthread_mutex_lock(&s->fabric->slow);
	first = first_position(s->fabric);
	pthread_mutex_unlock(&s->fabric->slow);
	hca_lock(&s->lock);
	for (i = 0; i < s->depth; i++) {
		atomic_store(&entry_at(&s->view, i)->state, hca_shm_state(first, HCA_FREE));
		atomic_store(&s->wr[i].held, 0);
		/* Positions before the first one. */
		atomic_store(&shm->order[i], (uint64_t)(first + i - s->depth) << 32);
		atomic_store(&s->freed[i], i + 1);
	}
	s->freed_head = 0;
	atomic_store(&s->freed_tail, 0);
	s->posted = s->oldest = s->first = first;
	s->recovered = 0;
	atomic_store(&shm->posted, first);
	atomic_store(&shm->head, first);
	atomic_store(&shm->first, first);
	hca_unlock(&s->lock);
}

int hca_shared_make(struct hca_shared *s, struct hca_fabric *f, uint32_t pd, uint32_t wr,
		    uint32_t sge)
{
	struct hca_shared_view *v = &s->view;
	int rc;

	s->fabric = f;
	s->pd = pd;
	s->depth = hca_pow2(wr);
	v->mask = s->depth - 1;
	v->stride = hca_rq_stride(sge, &s->sge_max);
	s->wr = calloc(s->depth, sizeof(*s->wr));
	s->freed = calloc(s->depth, sizeof(*s->freed));
	if (!s->wr || !s->freed)
		return ENOMEM;
	pthread_mutex_lock(&f->slow);
	rc = hca_heap_alloc(&f->heap, (size_t)s->depth * v->stride, &s->line);
	if (!rc) {
		v->ring = f->self->heap + (uint64_t)s->line * HCA_LINE;
		rc = hca_heap_alloc(&f->heap, hca_shared_bytes(s->depth), &s->shm_line);
	}
	pthread_mutex_unlock(&f->slow);
	if (rc)
		return ENOMEM;
	v->shm = (struct hca_shm_shared *)(void *)(f->self->heap +
						   (uint64_t)s->shm_line * HCA_LINE);
	hca_shared_clear(s);
	return 0;
}

void hca_shared_free(struct hca_shared *s)
{
	struct hca_fabric *f = s->fabric;

	if (!f)
		return;
	pthread_mutex_lock(&f->slow);
	if (s->view.ring && !s->unquiet)
		hca_heap_free(&f->heap, s->line, (size_t)s->depth * s->view.stride);
	if (s->view.shm && !s->unquiet)
		hca_heap_free(&f->heap, s->shm_line, hca_shared_bytes(s->depth));
	pthread_mutex_unlock(&f->slow);
	free(s->freed);
	free(s->wr);
	memset(s, 0, sizeof(*s));
}

/* ---- Posting, completing ------------------------------------------------- */

/* Make an entry claimable.  The entry is written first: one found in order[] is valid. */
static void shared_publish(struct hca_shared *s, uint32_t entry)
{
	struct hca_shm_shared *shm = s->view.shm;
	uint32_t at = s->posted++;

	atomic_store_explicit(&s->wr[entry].held, (uint64_t)at << 32 | 1, memory_order_relaxed);
	atomic_store_explicit(&entry_at(&s->view, entry)->state, hca_shm_state(at, HCA_POSTED),
			      memory_order_release);
	atomic_store_explicit(&shm->order[at & s->view.mask], (uint64_t)at << 32 | entry,
			      memory_order_release);
	atomic_store_explicit(&shm->posted, at + 1, memory_order_relaxed);
}

/* freed[] has no entry at its head: has a polling thread reserved it but not yet filled it? */
static bool is_coming(const struct hca_shared *s)
{
	uint32_t freed = atomic_load_explicit(&s->freed_tail, memory_order_relaxed);

	if (s->freed_head - freed >= s->depth)
		return false;
	rg_yield();
	return true;
}

static int shared_post_one(struct hca_shared *s, const struct ibv_recv_wr *wr)
{
	uint32_t slot = s->freed_head & s->view.mask, entry;
	struct hca_shm_recv *r;
	uint64_t room = 0;
	int i;

	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > s->sge_max))
		return EINVAL;
	while (!(entry = atomic_load_explicit(&s->freed[slot], memory_order_acquire)))
		if (!is_coming(s))
			return ENOMEM;
	atomic_store_explicit(&s->freed[slot], 0, memory_order_relaxed);
	s->freed_head++;
	entry--;
	s->wr[entry].wr_id = wr->wr_id;
	r = entry_at(&s->view, entry);
	r->sge_count = (uint32_t)wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		r->sge[i] = (struct hca_shm_sge){ wr->sg_list[i].addr, wr->sg_list[i].length,
						  wr->sg_list[i].lkey };
		room += wr->sg_list[i].length;
	}
	s->wr[entry].room = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
	shared_publish(s, entry);
	return 0;
}

int hca_shared_post(struct hca_shared *s, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int rc = 0;

	hca_lock(&s->lock);
	for (; wr && !rc; wr = wr->next) {
		rc = shared_post_one(s, wr);
		if (unlikely(rc))
			*bad = wr;
	}
	hca_unlock(&s->lock);
	return rc;
}

bool hca_shared_accept(struct hca_shared *s, uint32_t position, uint32_t entry, uint64_t *wr_id,
		       uint32_t *room)
{
	uint64_t held = (uint64_t)position << 32 | 1, state;
	struct hca_shm_recv *r;

	if (entry > s->view.mask)
		return false;
	r = entry_at(&s->view, entry);
	state = atomic_load_explicit(&r->state, memory_order_acquire);
	if (state >> 32 != position ||
	    (hca_shm_kind(state) != HCA_CLAIMED && hca_shm_kind(state) != HCA_DONE))
		return false;
	/* Once, even if peers report it again. */
	if (!atomic_compare_exchange_strong_explicit(&s->wr[entry].held, &held, 0,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	*wr_id = s->wr[entry].wr_id;
	*room = s->wr[entry].room;
	return true;
}

void hca_shared_release(struct hca_shared *s, uint32_t entry)
{
	/* Acquires all who filled places before: the poster's 0 in this place comes before the entry. */
	uint32_t at = atomic_fetch_add_explicit(&s->freed_tail, 1, memory_order_acq_rel);

	atomic_store_explicit(&s->freed[at & s->view.mask], entry + 1, memory_order_release);
}

/* ---- Claims that lead to nothing ----------------------------------------- */

static uint64_t entry_state(const struct hca_shared_view *v, uint32_t entry)
{
	return atomic_load_explicit(&entry_at(v, entry)->state, memory_order_acquire);
}

static bool is_worked_on(struct hca_fabric *f, uint64_t state)
{
	return hca_shm_kind(state) == HCA_CLAIMED &&
	       f->link->claim_fate(f, hca_shm_claimer(state)) == HCA_FATE_ALIVE;
}

bool hca_shared_busy(struct hca_shared *s)
{
	uint32_t i;

	for (i = 0; i < s->depth; i++)
		if ((atomic_load(&s->wr[i].held) & 1) &&
		    is_worked_on(s->fabric, entry_state(&s->view, i)))
			return true;
	return false;
}

void hca_shared_quiesce(struct hca_fabric *f, const struct hca_shared_view *v,
			uint64_t deadline_ns)
{
	uint32_t i;

	for (i = 0; i <= v->mask; i++) {
		uint64_t seen = entry_state(v, i);

		while (is_worked_on(f, seen) && !rg_reached(deadline_ns, rg_now_ns()) &&
		       entry_state(v, i) == seen)
			rg_sleep_ns(PAUSE_NS);
	}
}

/* Was it claimed by a process that will not complete it? */
static bool is_forlorn(struct hca_shared *s, uint64_t state)
{
	return hca_shm_kind(state) == HCA_CLAIMED &&
	       s->fabric->link->claim_fate(s->fabric, hca_shm_claimer(state)) != HCA_FATE_ALIVE;
}

/* Is it posted at a position that no claimer tries any more? */
static bool is_behind(struct hca_shared *s, uint64_t state)
{
	uint32_t head = atomic_load_explicit(&s->view.shm->head, memory_order_relaxed);

	return hca_shm_kind(state) == HCA_POSTED && (int32_t)((uint32_t)(state >> 32) - head) < 0;
}

/*
 * Cheap in the normal case: then as many receives have been claimed as have been
 * completed or posted again.
 */
bool hca_shared_suspect(struct hca_shared *s)
{
	uint32_t claimed = atomic_load_explicit(&s->view.shm->head, memory_order_relaxed) -
			   s->first, i;

	if (claimed == atomic_load(&s->freed_tail) + s->recovered)
		return false;
	if (atomic_load_explicit(&s->view.shm->returned, memory_order_relaxed))
		return true;
	for (i = 0; i < s->depth; i++) {
		uint64_t state = entry_state(&s->view, i);

		if ((atomic_load(&s->wr[i].held) & 1) &&
		    (is_forlorn(s, state) || is_behind(s, state)))
			return true;
	}
	return false;
}

/* A polling thread may accept its completion concurrently: only one obtains the entry. */
static bool let_go(struct hca_shared *s, uint32_t entry, uint64_t held)
{
	return atomic_compare_exchange_strong(&s->wr[entry].held, &held, 0);
}

static bool shared_reclaim(struct hca_shared *s, uint32_t entry, bool dead)
{
	uint64_t held = atomic_load(&s->wr[entry].held), state = entry_state(&s->view, entry);

	if (!(held & 1))
		return false;
	if (is_behind(s, state))
		return atomic_compare_exchange_strong(&entry_at(&s->view, entry)->state, &state,
						      state >> 32 << 32 | HCA_FREE);
	return dead && is_forlorn(s, state) && let_go(s, entry, held);
}

void hca_shared_recover(struct hca_shared *s, bool dead)
{
	struct hca_shm_shared *shm = s->view.shm;
	uint32_t i;

	atomic_store(&shm->returned, 0);
	hca_lock(&s->lock);
	/* Peers write the head: it is not trusted. */
	if ((int32_t)(atomic_load(&shm->head) - s->posted) > 0)
		atomic_store(&shm->head, s->posted);
	for (i = 0; i < s->depth; i++)
		if (shared_reclaim(s, i, dead)) {
			shared_publish(s, i);
			s->recovered++;
		}
	hca_unlock(&s->lock);
}

/* ---- The error state ----------------------------------------------------- */

/* The entry posted at a position, if the queue still holds it; else UINT32_MAX. */
static uint32_t entry_posted_at(const struct hca_shared *s, uint32_t at)
{
	uint32_t i = (uint32_t)atomic_load_explicit(&s->view.shm->order[at & s->view.mask],
						    memory_order_relaxed);

	return i < s->depth && atomic_load_explicit(&s->wr[i].held, memory_order_relaxed) ==
				       ((uint64_t)at << 32 | 1) ? i : UINT32_MAX;
}

int hca_shared_withdraw(struct hca_shared *s, bool force, uint32_t *entry, uint64_t *wr_id)
{
	uint32_t at, i = UINT32_MAX;
	uint64_t state;

again:
	if (s->posted - s->oldest > s->depth)
		s->oldest = s->posted - s->depth;
	for (at = s->oldest; at != s->posted; at++) {
		i = entry_posted_at(s, at);
		if (i < s->depth)
			break;
	}
	s->oldest = at;
	if (at == s->posted)
		return 0;
	state = hca_shm_state(at, HCA_POSTED);
	if (!atomic_compare_exchange_strong(&entry_at(&s->view, i)->state, &state,
					    hca_shm_state(at, HCA_FREE)) &&
	    !force && !is_forlorn(s, state))
		return -EAGAIN;
	if (!let_go(s, i, (uint64_t)at << 32 | 1))
		goto again;
	*entry = i;
	*wr_id = s->wr[i].wr_id;
	return 1;
}
