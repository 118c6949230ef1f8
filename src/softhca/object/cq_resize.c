/*
 * cq_resize.c - resizing a completion queue that is in use.
 *
 * The mailbox of the queue moves.  A word in each queue pair has its location, and
 * peers read this word for each entry: the new mailbox is published there.  Once no
 * peer can be filling the old one (quiesce), its entries move to the list, before
 * entries of the new one.
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/object/cq.h"
#include "softhca/object/device.h"
#include "softhca/object/link.h"
#include "softhca/object/qp.h"

struct move {
	struct hca_completion *list;
	uint32_t room;
	uint32_t line, old_line;
	uint32_t count, old_count;	/* entries of the mailbox */
	struct hca_shm_mailbox *shm;	/* the new one */
};

/* Number of entries that wait in the mailbox when the list is full. */
static uint32_t mailbox_waiting(const struct hca_cq *cq)
{
	const struct hca_mailbox *m = &cq->mailbox;
	uint32_t n;

	for (n = 0; n <= m->mask; n++) {
		uint32_t at = cq->head + n;

		if (atomic_load(&m->shm->slot[at & m->mask].state) !=
		    hca_shm_state(at >> m->shift, HCA_FULL))
			break;
	}
	return n;
}

static int check_size(struct hca_cq *cq, uint32_t count)
{
	uint32_t held;

	hca_lock(&cq->lock);
	hca_cq_drain_locked(cq);
	held = cq->count + mailbox_waiting(cq);
	hca_unlock(&cq->lock);
	return held > count ? EINVAL : 0;
}

/* Allocate room for the entries of the list by then and all of the old mailbox. */
static int prepare(struct hca_cq *cq, uint32_t count, struct move *m)
{
	struct hca_fabric *f = cq->fabric;
	int rc;

	m->count = count;
	m->old_count = cq->mailbox.mask + 1;
	m->old_line = cq->line;
	m->room = hca_pow2((count > cq->size ? count : cq->size) + m->old_count);
	m->list = calloc(m->room, sizeof(*m->list));
	if (!m->list)
		return ENOMEM;
	pthread_mutex_lock(&f->slow);
	rc = hca_heap_alloc(&f->heap, hca_mailbox_bytes(count), &m->line);
	pthread_mutex_unlock(&f->slow);
	if (rc) {
		free(m->list);
		return ENOMEM;
	}
	m->shm = (struct hca_shm_mailbox *)(void *)(f->self->heap + (uint64_t)m->line * HCA_LINE);
	return 0;
}

/* Use the new list from now on, and set the new mailbox to be published. */
static void resize_begin(struct hca_cq *cq, const struct move *m)
{
	struct hca_completion *old = cq->list;
	uint32_t i;

	hca_lock(&cq->lock);
	for (i = 0; i < cq->count; i++)		/* a heap begins at 0, and stays one */
		m->list[i] = old[cq->timed ? i : (cq->first + i) & (cq->room - 1)];
	cq->list = m->list;
	cq->first = 0;
	cq->room = m->room;
	cq->size = m->count;
	cq->line = m->line;
	cq->moving = true;
	m->shm->wakeup = hca_cq_wakeup(cq);
	m->shm->stamped = cq->stamped;
	hca_channel_copy_armed(cq, m->shm);
	hca_unlock(&cq->lock);
	free(old);
}

static bool resize_publish(struct hca_cq *cq)
{
	struct hca_fabric *f = cq->fabric;
	uint32_t i, top = atomic_load(&f->qp_top);

	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (qp && hca_recv_cq(qp) == cq)
			hca_qp_tell_cq(qp);
	}
	return hca_links_quiesce(f, NULL);
}

static void finish(struct hca_cq *cq, const struct move *m)
{
	struct hca_shm_mailbox *old = cq->mailbox.shm;

	hca_channel_lock(cq);
	hca_lock(&cq->lock);
	hca_cq_empty_mailbox(cq);
	if (atomic_load(&old->overflow))
		atomic_store(&m->shm->overflow, 1);
	cq->mailbox.shm = m->shm;
	cq->mailbox.mask = m->count - 1;
	cq->mailbox.shift = hca_log2(m->count);
	cq->head = 0;
	cq->moving = false;
	cq->stuck_ns = 0;
	hca_channel_move_armed(cq, old);
	cq->ibv.cqe = (int)m->count;
	hca_unlock(&cq->lock);
	hca_channel_unlock(cq);
}

static int resize(struct hca_cq *cq, uint32_t count)
{
	struct hca_fabric *f = cq->fabric;
	struct move m;
	bool left;
	int rc = check_size(cq, count);

	if (rc || count == cq->size)
		return rc;
	rc = prepare(cq, count, &m);
	if (rc)
		return rc;
	resize_begin(cq, &m);
	left = resize_publish(cq);
	finish(cq, &m);
	/* A peer stopped in an access section may still write there: the memory is not reused. */
	if (!left)
		return 0;
	pthread_mutex_lock(&f->slow);
	hca_heap_free(&f->heap, m.old_line, hca_mailbox_bytes(m.old_count));
	pthread_mutex_unlock(&f->slow);
	return 0;
}

int hca_cq_resize(struct ibv_cq *ibv, int entries)
{
	struct hca_cq *cq = hca_cq_of(ibv);
	uint64_t before;
	int rc = ENOMEM;

	if (entries < 1 || (uint64_t)entries > hca_context_personality(ibv->context)->cqe_max)
		return EINVAL;
	hca_lock(&cq->fabric->life);
	before = cq->locked_bytes;
	if (hca_cq_lock_memory(cq, (uint32_t)entries)) {
		rc = resize(cq, hca_pow2((uint32_t)entries));
		hca_cq_unlock_memory(cq, rc ? cq->locked_bytes - before : before);
	}
	hca_unlock(&cq->fabric->life);
	return rc;
}
