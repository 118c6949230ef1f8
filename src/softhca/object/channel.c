/* channel.c - see channel.h. */
#include "softhca/object/channel.h"

#include <stdlib.h>

#include "util/clock.h"
#include "softhca/object/cq.h"
#include "softhca/object/device.h"

/* Sending a wake-up takes less, unless it is interrupted. */
enum { WAKEUP_NS = 20000 };

/* ---- Creation and destruction -------------------------------------------- */

struct ibv_comp_channel *hca_channel_create(struct ibv_context *ibv)
{
	struct hca_context *c = hca_context_of(ibv);
	struct hca_fabric *f = c->fabric;
	struct hca_channel *ch = calloc(1, sizeof(*ch));
	int rc;

	if (!ch)
		return NULL;
	rc = hca_wakeup_make(f, HCA_WAKEUP_CHANNEL, &ch->wakeup);
	if (rc) {
		free(ch);
		errno = -rc;
		return NULL;
	}
	ch->fabric = f;
	ch->ibv.context = ibv;
	ch->ibv.fd = ch->wakeup.fd;
	pthread_mutex_lock(&f->slow);
	hca_list_add(&c->channels, &ch->link);
	hca_list_add(&f->channels, &ch->fabric_link);
	pthread_mutex_unlock(&f->slow);
	return &ch->ibv;
}

int hca_channel_destroy(struct ibv_comp_channel *ibv)
{
	struct hca_channel *ch = hca_channel_of(ibv);
	struct hca_fabric *f = ch->fabric;
	bool used;

	hca_lock(&ch->lock);
	used = ch->cqs != NULL;
	hca_unlock(&ch->lock);
	if (used)
		return EBUSY;
	pthread_mutex_lock(&f->slow);
	hca_list_remove(&ch->link);
	hca_list_remove(&ch->fabric_link);
	pthread_mutex_unlock(&f->slow);
	hca_wakeup_free(f, &ch->wakeup);
	free(ch);
	return 0;
}

void hca_channel_add(struct hca_channel *ch, struct hca_cq *cq)
{
	cq->ibv.channel = &ch->ibv;
	cq->mailbox.wakeup = &ch->wakeup;
	cq->mailbox.shm->wakeup = ch->wakeup.number;
	hca_lock(&ch->lock);
	hca_list_add(&ch->cqs, &cq->channel_link);
	ch->ibv.refcnt++;
	hca_unlock(&ch->lock);
}

/* Wait until all delivered events have been acknowledged. */
static void wait_for_acks(struct hca_cq *cq, uint32_t reported)
{
	pthread_mutex_lock(&cq->ibv.mutex);
	while (cq->ibv.comp_events_completed != reported)
		pthread_cond_wait(&cq->ibv.cond, &cq->ibv.mutex);
	pthread_mutex_unlock(&cq->ibv.mutex);
}

void hca_channel_remove(struct hca_cq *cq)
{
	struct hca_channel *ch;

	if (!cq->ibv.channel)
		return;
	ch = hca_channel_of(cq->ibv.channel);
	hca_lock(&ch->lock);
	if (ch->last == &cq->channel_link)
		ch->last = NULL;
	hca_list_remove(&cq->channel_link);
	ch->ibv.refcnt--;
	hca_unlock(&ch->lock);
	if (!hca_context_of(cq->ibv.context)->events.closing)
		wait_for_acks(cq, cq->comp_events);
}

/* ---- Arming -------------------------------------------------------------- */

static bool has_fired(uint64_t armed)
{
	return hca_shm_armed(armed) == HCA_FIRED || hca_shm_armed(armed) == HCA_RUNG;
}

/*
 * Arm in a new generation, unless the present arming covers the request.  True if
 * the last generation has fired and its event is still to be delivered.
 */
static bool arm(struct hca_cq *cq, bool solicited_only)
{
	_Atomic uint64_t *word = &cq->mailbox.shm->armed;
	uint64_t armed = atomic_load(word), mode;

	mode = solicited_only ? HCA_ARMED_SOLICITED : HCA_ARMED_ANY;
	do {
		if (hca_shm_armed(armed) == HCA_ARMED_ANY || hca_shm_armed(armed) == mode)
			return false;
	} while (!atomic_compare_exchange_weak(word, &armed,
					       (uint64_t)(cq->generation + 1) << 3 | mode));
	/* A poll that follows finds the entry, or its producer finds the queue armed. */
	atomic_thread_fence(memory_order_seq_cst);
	cq->generation++;
	cq->armed = true;
	cq->armed_solicited = solicited_only;
	return has_fired(armed);
}

int hca_cq_req_notify(struct ibv_cq *ibv, int solicited_only)
{
	struct hca_cq *cq = hca_cq_of(ibv);
	bool news;

	if (!cq->ibv.channel)
		return 0;		/* no channel: allowed, without effect */
	hca_lock(&cq->lock);
	if (arm(cq, solicited_only)) {
		atomic_fetch_add(&cq->fired, 1);
		hca_wakeup_send(cq->mailbox.wakeup);
	}
	/* Entries that are present but cannot be polled yet raise an event later. */
	news = hca_cq_stuck_ns(cq) != 0;
	if (cq->timed) {
		hca_cq_drain_locked(cq);
		news |= hca_cq_next_ns(cq, solicited_only, rg_now_ns() + 1) != UINT64_MAX;
	}
	if (news)
		hca_mailbox_wake(&cq->mailbox, true);
	hca_unlock(&cq->lock);
	return 0;
}

void hca_cq_fire(struct hca_cq *cq, const struct hca_completion *c)
{
	hca_mailbox_wake(&cq->mailbox, c->solicited || c->status);
	cq->armed = hca_shm_wakes(atomic_load(&cq->mailbox.shm->armed));
}

/* ---- Delivery ------------------------------------------------------------ */

/*
 * Has the queue an event to deliver?  A process that has fired the queue then sends
 * a wake-up and marks the word HCA_RUNG.  The event is left to that wake-up, lest
 * the program be woken for nothing later.  If a wake-up was sent (`rung`), it may be
 * that wake-up.
 */
static bool pending(struct hca_cq *cq, bool rung)
{
	_Atomic uint64_t *word = &cq->mailbox.shm->armed;
	uint64_t armed = atomic_load(word), begin;

	if (atomic_load(&cq->fired))
		return true;
	if (hca_shm_armed(armed) == HCA_FIRED && rung) {
		begin = rg_now_ns();
		do {
			rg_relax(begin + WAKEUP_NS);
			armed = atomic_load(word);
		} while (hca_shm_armed(armed) == HCA_FIRED && rg_now_ns() - begin < WAKEUP_NS);
		if (hca_shm_armed(armed) == HCA_FIRED)
			atomic_compare_exchange_strong(word, &armed, (armed & ~7ull) | HCA_RUNG);
		return true;
	}
	return hca_shm_armed(armed) == HCA_RUNG;
}

/* The time at which the program can poll the entry of its event; 0: now. */
static uint64_t ready_ns(struct hca_cq *cq)
{
	uint64_t ready = 0;

	hca_lock(&cq->lock);
	if (cq->timed) {
		hca_cq_drain_locked(cq);
		ready = hca_cq_next_ns(cq, cq->armed_solicited, 0);
	}
	if (!cq->count || ready == UINT64_MAX)
		ready = hca_cq_stuck_ns(cq);
	hca_unlock(&cq->lock);
	return ready;
}

static void channel_take(struct hca_cq *cq)
{
	_Atomic uint64_t *word = &cq->mailbox.shm->armed;
	uint64_t armed = atomic_load(word);

	hca_lock(&cq->lock);
	cq->comp_events++;
	cq->woken_polls = cq->polls;
	if (atomic_load(&cq->fired))
		atomic_fetch_sub(&cq->fired, 1);
	else
		while (has_fired(armed) &&
		       !atomic_compare_exchange_weak(word, &armed, (armed & ~7ull) | HCA_IDLE))
			;
	hca_unlock(&cq->lock);
}

/*
 * A queue that has fired and is ready, or NULL; *due is then the time at which the
 * first will be ready (UINT64_MAX: none has fired).  ch->lock held.
 */
static struct hca_cq *find_event(struct hca_channel *ch, bool rung, uint64_t *due)
{
	struct hca_list_node *begin = ch->last && ch->last->next ? ch->last->next : ch->cqs,
			     *l = begin;
	uint64_t now = rg_now_ns();

	*due = UINT64_MAX;
	if (!l)
		return NULL;
	do {
		struct hca_cq *cq = hca_container(l, struct hca_cq, channel_link);
		uint64_t ready = pending(cq, rung) ? ready_ns(cq) : UINT64_MAX;

		if (rg_reached(ready, now))
			return cq;
		if (ready < *due)
			*due = ready;
		l = l->next ? l->next : ch->cqs;
	} while (l != begin);
	return NULL;
}

static bool any_pending(const struct hca_channel *ch)
{
	struct hca_list_node *l;

	for (l = ch->cqs; l; l = l->next)
		if (pending(hca_container(l, struct hca_cq, channel_link), true))
			return true;
	return false;
}

struct hca_cq *hca_channel_take(struct hca_channel *ch, bool rung, uint64_t *due)
{
	struct hca_cq *cq;

	hca_lock(&ch->lock);
	cq = find_event(ch, rung, due);
	if (cq) {
		channel_take(cq);
		ch->last = &cq->channel_link;
		if (any_pending(ch))
			hca_wakeup_send(&ch->wakeup);
	}
	hca_unlock(&ch->lock);
	return cq;
}

/* Was the queue polled since its last event, with entries left? */
static bool left_in(struct hca_cq *cq)
{
	const struct hca_mailbox *m = &cq->mailbox;
	bool yes;

	hca_lock(&cq->lock);
	if (cq->polls == cq->woken_polls) {
		yes = false;
	} else if (cq->timed) {
		hca_cq_drain_locked(cq);
		yes = rg_reached(hca_cq_next_ns(cq, false, 0), rg_now_ns());
	} else {
		yes = cq->count || atomic_load(&m->shm->slot[cq->head & m->mask].state) ==
					   hca_shm_state(cq->head >> m->shift, HCA_FULL);
	}
	hca_unlock(&cq->lock);
	return yes;
}

/*
 * An armed queue with entries left is fired because no further entry may follow.
 * An adapter completes messages one after the other, as they travel, and the next
 * message would wake the program; in software all can be present at once.
 */
bool hca_channel_left(struct hca_channel *ch)
{
	bool left = false;
	struct hca_list_node *l;

	hca_lock(&ch->lock);
	for (l = ch->cqs; l; l = l->next) {
		struct hca_cq *cq = hca_container(l, struct hca_cq, channel_link);

		if (hca_shm_armed(atomic_load(&cq->mailbox.shm->armed)) != HCA_ARMED_ANY ||
		    !left_in(cq))
			continue;
		hca_mailbox_fire(&cq->mailbox, true);
		left = true;
	}
	hca_unlock(&ch->lock);
	return left;
}

void hca_cq_events_ack(struct ibv_cq *cq, unsigned n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* ---- When the mailbox moves ---------------------------------------------- */

void hca_channel_lock(struct hca_cq *cq)
{
	if (cq->ibv.channel)
		hca_lock(&hca_channel_of(cq->ibv.channel)->lock);
}

void hca_channel_unlock(struct hca_cq *cq)
{
	if (cq->ibv.channel)
		hca_unlock(&hca_channel_of(cq->ibv.channel)->lock);
}

void hca_channel_copy_armed(struct hca_cq *cq, struct hca_shm_mailbox *to)
{
	uint64_t armed = atomic_load(&cq->mailbox.shm->armed);

	if (!has_fired(armed))
		atomic_store(&to->armed, armed);
}

void hca_channel_move_armed(struct hca_cq *cq, struct hca_shm_mailbox *from)
{
	struct hca_shm_mailbox *to = cq->mailbox.shm;
	uint64_t old = atomic_exchange(&from->armed, 0);
	uint64_t new = atomic_exchange(&to->armed, HCA_IDLE);

	if (!cq->mailbox.wakeup)
		return;
	if (has_fired(old) || has_fired(new)) {
		atomic_fetch_add(&cq->fired, 1);
		hca_wakeup_send(cq->mailbox.wakeup);
	}
	/* Armed as the old one was left, unless that very request has fired. */
	if (hca_shm_wakes(old) && !has_fired(old) && !(has_fired(new) && new >> 3 == old >> 3))
		atomic_store(&to->armed, old);
	/*
	 * An entry may have been added while it was not armed; a false event does no harm.  The first
	 * is in the first slot.  Its producer's words and these are seq_cst, so one sees the other's.
	 */
	if (atomic_load(&to->slot[0].state))
		hca_mailbox_wake(&cq->mailbox, true);
}

void hca_channels_wake(struct hca_fabric *f)
{
	struct hca_list_node *l;

	pthread_mutex_lock(&f->slow);
	for (l = f->channels; l; l = l->next) {
		struct hca_channel *ch = hca_container(l, struct hca_channel, fabric_link);

		if (atomic_exchange(&ch->postponed, false))
			hca_wakeup_send(&ch->wakeup);
	}
	pthread_mutex_unlock(&f->slow);
}
