/* cq.c - completion queues: the owner's side. */
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "softhca/object/device.h"
#include "softhca/object/link.h"
#include "softhca/object/qp.h"

/* A claim on a mailbox entry that has not been published for so long is revoked. */
enum { CLAIM_NS = 1000000 };

/*
 * No peer's completion becomes visible later than now plus this, for any time that the peer wrote.
 */
#define FAR_NS 60000000000ull

/* ---- The list of a timed queue: a binary heap ---------------------------- */

static bool completion_before(const struct hca_completion *a, const struct hca_completion *b)
{
	return a->visible_ns != b->visible_ns ? a->visible_ns < b->visible_ns
					      : a->order < b->order;
}

static void heap_push(struct hca_cq *cq, const struct hca_completion *c)
{
	uint32_t at = cq->count++;

	while (at && completion_before(c, &cq->list[(at - 1) / 2])) {
		cq->list[at] = cq->list[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	cq->list[at] = *c;
}

static void heap_sift(struct hca_cq *cq, uint32_t at, const struct hca_completion *c)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= cq->count)
			break;
		if (child + 1 < cq->count &&
		    completion_before(&cq->list[child + 1], &cq->list[child]))
			child++;
		if (!completion_before(&cq->list[child], c))
			break;
		cq->list[at] = cq->list[child];
		at = child;
	}
	cq->list[at] = *c;
}

void hca_cq_heap_pop(struct hca_cq *cq, struct hca_completion *out)
{
	struct hca_completion last;

	*out = cq->list[0];
	last = cq->list[--cq->count];
	if (cq->count)
		heap_sift(cq, 0, &last);
}

/* ---- The list ------------------------------------------------------------ */

static void list_push(struct hca_cq *cq, const struct hca_completion *c)
{
	if (cq->timed) {
		struct hca_completion copy = *c;

		copy.order = cq->order++;
		if (c->receive && c->visible_ns > FAR_NS && c->visible_ns - FAR_NS > rg_now_ns())
			copy.visible_ns = rg_now_ns() + FAR_NS;
		heap_push(cq, &copy);
	} else {
		cq->list[(cq->first + cq->count++) & (cq->room - 1)] = *c;
	}
}

static void add_stamped(struct hca_cq *cq, const struct hca_completion *c)
{
	struct hca_completion copy = *c;
	uint64_t now = rg_now_ns();

	if (copy.visible_ns < now)
		copy.visible_ns = now;
	list_push(cq, &copy);
}

void hca_cq_tell_error(struct hca_cq *cq)
{
	if (!atomic_exchange(&cq->error_told, true))
		hca_event_cq(cq, IBV_EVENT_CQ_ERR);
}

int hca_cq_add(struct hca_cq *cq, const struct hca_completion *c)
{
	int rc = 0;

	hca_lock(&cq->lock);
	if (unlikely(cq->count >= cq->size)) {
		atomic_store(&cq->overflowed, true);
		hca_cq_tell_error(cq);
		rc = -ENOSPC;
	} else {
		if (unlikely(cq->stamped))
			add_stamped(cq, c);
		else
			list_push(cq, c);
		if (unlikely(cq->armed))
			hca_cq_fire(cq, c);
	}
	hca_unlock(&cq->lock);
	return rc;
}

/* ---- The mailbox --------------------------------------------------------- */

/* The receive that a peer reports complete, in the queue pair's own queue or a shared one. */
static bool accept_own(struct hca_qp *qp, uint32_t position, struct hca_completion *c,
		       uint32_t *room)
{
	struct hca_rq *rq = &qp->rq;

	if (position != atomic_load_explicit(&rq->next, memory_order_relaxed) ||
	    position == atomic_load_explicit(&rq->posted, memory_order_acquire))
		return false;
	atomic_store_explicit(&rq->next, position + 1, memory_order_relaxed);
	c->wr_id = rq->wr_id[position & rq->mask];
	*room = rq->room[position & rq->mask];
	c->position = position;
	return true;
}

static bool accept_shared(struct hca_qp *qp, uint32_t position, uint32_t entry,
			  struct hca_completion *c, uint32_t *room)
{
	c->position = entry;
	return hca_shared_accept(qp->shared, position, entry, &c->wr_id, room);
}

/*
 * A program acts upon the fields of a completion: an operation or a length that
 * its receive cannot have must not reach it.
 */
static void check_words(struct hca_completion *c, uint32_t room)
{
	if (c->opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
		c->opcode = IBV_WC_RECV;
		if (c->bytes > room && c->status == IBV_WC_SUCCESS)
			c->status = IBV_WC_LOC_LEN_ERR;
	}
	if (c->status > IBV_WC_GENERAL_ERR)
		c->status = IBV_WC_GENERAL_ERR;
	c->flags &= IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV;
}

/* An entry written by a peer, checked; false: it refers to nothing that exists. */
static bool cqe_decode(struct hca_cq *cq, const volatile struct hca_shm_cqe *e,
		       struct hca_completion *c)
{
	uint32_t index = e->qp_index, room;
	struct hca_qp *qp;

	qp = index < HCA_QPS_MAX ? atomic_load_explicit(&cq->fabric->qp[index],
							memory_order_acquire) : NULL;
	if (!qp || hca_qpn(qp) != e->qpn || hca_recv_cq(qp) != cq)
		return false;
	c->visible_ns = e->visible_ns;
	if (!(qp->shared ? accept_shared(qp, e->position, e->entry, c, &room)
			 : accept_own(qp, e->position, c, &room)))
		return false;
	/* Entries of one sender are in order, in spite of the times that it writes. */
	if (!qp->datagram && c->visible_ns < qp->rq.visible_ns)
		c->visible_ns = qp->rq.visible_ns;
	qp->rq.visible_ns = c->visible_ns;
	c->qp = qp;
	c->bytes = e->bytes;
	c->imm = e->imm;
	c->src_qp = e->src_qp;
	c->slid = e->slid;
	c->sl = e->sl;
	c->status = e->status;
	c->opcode = e->opcode;
	c->flags = e->flags;
	c->solicited = e->solicited;
	c->receive = true;
	check_words(c, room);
	return true;
}

static uint64_t cqe_state(const struct hca_cq *cq, uint32_t position, uint32_t state)
{
	return hca_shm_state(position >> cq->mailbox.shift, state);
}

static void free_slot(struct hca_cq *cq, uint32_t position)
{
	struct hca_shm_cqe *e = &cq->mailbox.shm->slot[position & cq->mailbox.mask];

	atomic_store_explicit(&e->state, cqe_state(cq, position + cq->mailbox.mask + 1, HCA_FREE),
			      memory_order_release);
}

/* Skip a slot whose claim was revoked; free one that its claimer has released. */
static bool pass_by(struct hca_cq *cq, uint64_t state)
{
	if (hca_shm_kind(state) == HCA_RETURNED ||
	    (hca_shm_kind(state) == HCA_REVOKED &&
	     cq->fabric->link->slot_fate(cq->fabric, hca_shm_claimer(state)) != HCA_FATE_ALIVE))
		free_slot(cq, cq->head);
	else if (hca_shm_kind(state) != HCA_REVOKED)
		return false;
	cq->head++;
	return true;
}

bool hca_cq_mailbox_take(struct hca_cq *cq, struct hca_completion *c)
{
	uint32_t passed = 0;

	for (;;) {
		struct hca_shm_cqe *e = &cq->mailbox.shm->slot[cq->head & cq->mailbox.mask];
		uint64_t state = atomic_load_explicit(&e->state, memory_order_acquire);
		bool valid;

		if (state != cqe_state(cq, cq->head, HCA_FULL)) {
			if (unlikely(hca_shm_kind(state) >= HCA_REVOKED) &&
			    passed++ <= cq->mailbox.mask && pass_by(cq, state))
				continue;
			return false;
		}
		valid = cqe_decode(cq, e, c);
		free_slot(cq, cq->head);
		cq->head++;
		if (likely(valid))
			return true;
		/* A peer may be writing invalid entries as fast as they are read. */
		if (passed++ > cq->mailbox.mask)
			return false;
	}
}

/* Entries after an unpublished claim at the head must not wait for ever: revoke it. */
void hca_cq_revoke_stale_claim(struct hca_cq *cq)
{
	struct hca_shm_cqe *e = &cq->mailbox.shm->slot[cq->head & cq->mailbox.mask];
	uint64_t state = atomic_load_explicit(&e->state, memory_order_relaxed), now;

	if (state >> 32 != cqe_state(cq, cq->head, 0) >> 32 || hca_shm_kind(state) != HCA_CLAIMED) {
		cq->stuck_ns = 0;
		return;
	}
	now = rg_now_ns();
	if (!cq->stuck_ns || cq->stuck_head != cq->head) {
		cq->stuck_ns = now;
		cq->stuck_head = cq->head;
		return;
	}
	/* A revoked entry is passed by; that checks whether its claimer lives. */
	if (rg_reached(cq->stuck_ns + CLAIM_NS + 1, now))
		atomic_compare_exchange_strong(&e->state, &state,
			cqe_state(cq, cq->head, hca_shm_revoked(hca_shm_claimer(state))));
}

static void move_entries(struct hca_cq *cq, uint32_t most)
{
	struct hca_completion c = { 0 };

	while (cq->count < most && hca_cq_mailbox_take(cq, &c))
		list_push(cq, &c);
}

void hca_cq_drain_locked(struct hca_cq *cq)
{
	move_entries(cq, cq->size);
}

void hca_cq_empty_mailbox(struct hca_cq *cq)
{
	const struct hca_mailbox *m = &cq->mailbox;
	uint32_t n;

	for (n = 0; n <= m->mask; n++) {
		move_entries(cq, cq->room);
		if (atomic_load(&m->shm->slot[cq->head & m->mask].state) ==
		    cqe_state(cq, cq->head, HCA_FREE))
			return;
		/* Claimed by a process that died or was stopped: entries follow it. */
		cq->head++;
	}
}

bool hca_cq_drain(struct hca_cq *cq)
{
	bool empty;

	hca_lock(&cq->lock);
	hca_cq_drain_locked(cq);
	empty = !cq->moving &&
		atomic_load_explicit(&cq->mailbox.shm->slot[cq->head & cq->mailbox.mask].state,
				     memory_order_relaxed) == cqe_state(cq, cq->head, HCA_FREE);
	if (!empty)
		hca_cq_revoke_stale_claim(cq);	/* a caller that waits need not poll */
	hca_unlock(&cq->lock);
	return empty;
}

/* The time at which it can be polled or is checked again. */
static uint64_t shows_ns(const struct hca_completion *c)
{
	return hca_is_held(c) ? rg_now_ns() + HCA_HELD_NS : c->visible_ns;
}

uint64_t hca_cq_next_ns(const struct hca_cq *cq, bool solicited, uint64_t after)
{
	uint64_t next = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < cq->count; i++) {
		const struct hca_completion *c = &cq->list[i];
		uint64_t shows = shows_ns(c);

		if ((!solicited || c->solicited || c->status) && shows >= after && shows < next)
			next = shows;
		if (!solicited && !after)
			break;		/* the first of all */
	}
	return next;
}

uint64_t hca_cq_stuck_ns(struct hca_cq *cq)
{
	uint32_t ahead;
	uint64_t state;

	for (ahead = 0; ahead <= cq->mailbox.mask; ahead++) {
		state = atomic_load(&cq->mailbox.shm->slot[(cq->head + ahead) &
							   cq->mailbox.mask].state);
		if (state >> 32 != cqe_state(cq, cq->head + ahead, 0) >> 32 ||
		    hca_shm_kind(state) != HCA_CLAIMED)
			break;
	}
	if (!ahead || ahead > cq->mailbox.mask ||
	    state != cqe_state(cq, cq->head + ahead, HCA_FULL))
		return 0;
	hca_cq_revoke_stale_claim(cq);
	return cq->stuck_ns + CLAIM_NS;
}

/* ---- Removal, creation and destruction ----------------------------------- */

/* Remove the entries of qp from the list; returns their number. */
static uint32_t purge(struct hca_cq *cq, const struct hca_qp *qp)
{
	uint32_t i, kept = 0, removed;

	for (i = 0; i < cq->count; i++) {
		uint32_t from = cq->timed ? i : (cq->first + i) & (cq->room - 1);
		uint32_t to = cq->timed ? kept : (cq->first + kept) & (cq->room - 1);

		if (cq->list[from].qp == qp) {
			if (cq->list[from].receive && qp->shared)
				hca_shared_release(qp->shared, cq->list[from].position);
			continue;
		}
		cq->list[to] = cq->list[from];
		kept++;
	}
	removed = cq->count - kept;
	cq->count = kept;
	for (i = kept / 2; cq->timed && i-- > 0;) {
		struct hca_completion c = cq->list[i];

		heap_sift(cq, i, &c);
	}
	return removed;
}

/*
 * Entries that wait in the mailbox, for an earlier one that is being written or because
 * the list is full, will match no queue pair when they are read: release their receives.
 */
static void release_waiting(struct hca_cq *cq, const struct hca_qp *qp)
{
	uint32_t n;

	for (n = 0; n <= cq->mailbox.mask; n++) {
		const uint32_t at = cq->head + n;
		const volatile struct hca_shm_cqe *e =
			&cq->mailbox.shm->slot[at & cq->mailbox.mask];
		uint64_t state = atomic_load_explicit(&e->state, memory_order_acquire), wr_id;
		uint32_t entry, room;

		if (state == cqe_state(cq, at, HCA_FREE))
			return;
		/* A claimer may be writing the words of any other. */
		if (state != cqe_state(cq, at, HCA_FULL) || e->qpn != hca_qpn(qp))
			continue;
		entry = e->entry;
		if (hca_shared_accept(qp->shared, e->position, entry, &wr_id, &room))
			hca_shared_release(qp->shared, entry);
	}
}

void hca_cq_purge(struct hca_cq *cq, const struct hca_qp *qp)
{
	hca_lock(&cq->lock);
	/* The mailbox has more entries if the list was full. */
	do
		hca_cq_drain_locked(cq);
	while (purge(cq, qp));
	if (qp->shared)
		release_waiting(cq, qp);
	hca_unlock(&cq->lock);
}

static int cq_make_queues(struct hca_cq *cq, uint32_t count)
{
	struct hca_fabric *f = cq->fabric;
	int rc;

	cq->size = cq->room = count;
	cq->list = calloc(count, sizeof(*cq->list));
	if (!cq->list)
		return -ENOMEM;
	pthread_mutex_lock(&f->slow);
	rc = hca_heap_alloc(&f->heap, hca_mailbox_bytes(count), &cq->line);
	pthread_mutex_unlock(&f->slow);
	if (rc)
		return rc;
	cq->mailbox.shm = (struct hca_shm_mailbox *)(void *)
			  (f->self->heap + (uint64_t)cq->line * HCA_LINE);
	cq->mailbox.mask = count - 1;
	cq->mailbox.shift = hca_log2(count);
	return 0;
}

/* An adapter keeps one entry more than can be used, of 64 bytes each, in locked pages. */
static uint64_t locked_bytes(uint32_t entries)
{
	return (uint64_t)hca_pow2(entries + 1) * HCA_LINE;
}

bool hca_cq_lock_memory(struct hca_cq *cq, uint32_t entries)
{
	const uint64_t most = hca_context_personality(cq->ibv.context)->cq_memory;
	const uint64_t bytes = locked_bytes(entries);

	if (atomic_fetch_add(&cq->fabric->cq_bytes, bytes) + bytes <= most) {
		cq->locked_bytes += bytes;
		return true;
	}
	atomic_fetch_sub(&cq->fabric->cq_bytes, bytes);
	return false;
}

void hca_cq_unlock_memory(struct hca_cq *cq, uint64_t bytes)
{
	atomic_fetch_sub(&cq->fabric->cq_bytes, bytes);
	cq->locked_bytes -= bytes;
}

struct ibv_cq *hca_cq_make(struct ibv_context *c, const struct hca_cq_config *config)
{
	struct hca_context *context = hca_context_of(c);
	struct hca_cq *cq;

	if (config->entries < 1 || 
	    (uint64_t)config->entries > hca_context_personality(c)->cqe_max || config->vector < 0 ||
	    config->vector >= c->num_comp_vectors ||
	    (config->channel && !hca_same_file(c, config->channel->context))) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->fabric = context->fabric;
	cq->stamped = config->stamped;
	cq->timed = config->stamped || context->fabric->spec.timed;
	cq->ibv.context = c;
	if (!hca_cq_lock_memory(cq, (uint32_t)config->entries) ||
	    cq_make_queues(cq, hca_pow2((uint32_t)config->entries))) {
		hca_cq_unlock_memory(cq, cq->locked_bytes);
		free(cq->list);
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	cq->mailbox.shm->stamped = config->stamped;
	cq->ibv.cq_context = config->cq_context;
	cq->ibv.cqe = (int)cq->size;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	if (config->channel)
		hca_channel_add(hca_channel_of(config->channel), cq);
	pthread_mutex_lock(&cq->fabric->slow);
	hca_list_add(&context->cqs, &cq->link);
	pthread_mutex_unlock(&cq->fabric->slow);
	return (struct ibv_cq *)&cq->ibv;
}

struct ibv_cq *hca_cq_create(struct ibv_context *c, int entries, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	return hca_cq_make(c, &(struct hca_cq_config){
		.entries = entries, .vector = vector, .cq_context = cq_context,
		.channel = channel });
}

int hca_cq_destroy(struct ibv_cq *ibv)
{
	struct hca_cq *cq = hca_cq_of(ibv);
	struct hca_fabric *f = cq->fabric;

	/* Without queue pairs, no process can write to the mailbox. */
	if (atomic_load(&cq->objects))
		return EBUSY;
	hca_event_forget_cq(cq);
	hca_channel_remove(cq);
	hca_cq_unlock_memory(cq, cq->locked_bytes);
	pthread_mutex_lock(&f->slow);
	if (!cq->unquiet)
		hca_heap_free(&f->heap, cq->line, hca_mailbox_bytes(cq->size));
	hca_list_remove(&cq->link);
	pthread_mutex_unlock(&f->slow);
	pthread_mutex_destroy(&cq->ibv.mutex);
	pthread_cond_destroy(&cq->ibv.cond);
	free(cq->list);
	free(cq);
	return 0;
}
