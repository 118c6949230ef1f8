/*
 * channel.h - completion channels: sleeping until a completion queue has an entry.
 *
 * ibv_req_notify_cq arms a queue (hca_shm_mailbox.armed).  The producer of the next
 * entry fires it and sends the channel's wake-up, on whose descriptor the program
 * waits.  The armed words, not the wake-up, say which queues have fired, so a dying
 * process or a false wake-up cannot lose an event.
 *
 * An event is delivered when the entry is visible, which on a timed fabric is
 * later than the firing.  A blocking ibv_get_cq_event waits until then; for a
 * non-blocking one the progress thread sends another wake-up at that time.
 *
 * A program asleep in poll notices a peer's death only if a message to it waits;
 * one asleep in ibv_get_cq_event checks its peers ten times a second.
 */
#ifndef HCA_CHANNEL_H
#define HCA_CHANNEL_H

#include <infiniband/verbs.h>

#include "softhca/base/base.h"
#include "softhca/object/wakeup.h"

struct hca_cq;
struct hca_completion;
struct hca_shm_mailbox;

struct hca_channel {
	struct ibv_comp_channel ibv;	/* first */
	struct hca_fabric *fabric;
	struct hca_list_node link;		/* the context's list */
	struct hca_list_node fabric_link;
	struct hca_wakeup wakeup;
	_Atomic bool postponed;		/* wake-up due at the progress thread's alarm */

	struct hca_lock lock;		/* before hca_cq.lock */
	struct hca_list_node *cqs;
	struct hca_list_node *last;		/* last with an event: the others come first */
};

static inline struct hca_channel *hca_channel_of(struct ibv_comp_channel *c)
{
	return (struct hca_channel *)(void *)c;
}

struct ibv_comp_channel *hca_channel_create(struct ibv_context *c);
int hca_channel_destroy(struct ibv_comp_channel *c);

/* Add a queue before it is published; remove it once no process fills it. */
void hca_channel_add(struct hca_channel *ch, struct hca_cq *cq);
void hca_channel_remove(struct hca_cq *cq);

/* The verbs. */
int hca_cq_req_notify(struct ibv_cq *cq, int solicited_only);
void hca_cq_events_ack(struct ibv_cq *cq, unsigned n);

/*
 * Deliver an event of a queue that has one.  NULL: none has; *due is then the time when the first
 * fired queue will be ready (UINT64_MAX: none has fired).  `rung`: a wake-up had been sent.
 */
struct hca_cq *hca_channel_take(struct hca_channel *ch, bool rung, uint64_t *due);
/*
 * The program is about to sleep: fire each queue that it armed before polling and that still has
 * entries.  True if any has been fired.
 */
bool hca_channel_left(struct hca_channel *ch);

/* This process has added an entry to an armed queue.  cq->lock held. */
void hca_cq_fire(struct hca_cq *cq, const struct hca_completion *c);

/*
 * The mailbox moves (cq_resize.c).  hca_channel_copy_armed arms the new one as the old one is.
 * hca_channel_move_armed, called when the new one is the queue's, with the channel locked, collects
 * events that have fired in the meantime.  cq->lock held.
 */
void hca_channel_lock(struct hca_cq *cq);
void hca_channel_unlock(struct hca_cq *cq);
void hca_channel_copy_armed(struct hca_cq *cq, struct hca_shm_mailbox *to);
void hca_channel_move_armed(struct hca_cq *cq, struct hca_shm_mailbox *from);

/* The progress thread's alarm has expired: send the postponed wake-ups. */
void hca_channels_wake(struct hca_fabric *f);

#endif
