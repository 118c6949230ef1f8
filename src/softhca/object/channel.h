/*
 * channel.h - completion channels: to sleep until a completion queue has something.
 *
 * ibv_req_notify_cq arms a queue (hca_shm_mailbox.armed); whoever then adds an
 * entry fires it and rings the channel's bell, whose descriptor the program
 * waits on.  The bell only says "look": which queues have fired, their words
 * tell, so that nobody who dies or lies can take an event away.
 *
 * An event is handed out when the entry is visible.  On a timed fabric that is
 * later than it fires: who blocks in ibv_get_cq_event is kept until then; for
 * who does not, the attendant rings again at that time.
 *
 * A program asleep in poll sees that a peer has died only if it has sent it
 * something that waits; one that sleeps in ibv_get_cq_event looks ten times a
 * second.
 */
#ifndef HCA_CHANNEL_H
#define HCA_CHANNEL_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "object/wakeup.h"

struct hca_cq;
struct hca_completion;
struct hca_shm_mailbox;

struct hca_channel {
	struct ibv_comp_channel ibv;	/* first */
	struct hca_fabric *fabric;
	struct hca_list_node link;		/* of its context's */
	struct hca_list_node fabric_link;
	struct hca_wakeup wakeup;
	_Atomic bool postponed;		/* to be rung at the attendant's alarm */

	struct hca_lock lock;		/* before hca_cq.lock */
	struct hca_list_node *cqs;
	struct hca_list_node *last;		/* that had an event: the others come first */
};

static inline struct hca_channel *hca_channel_of(struct ibv_comp_channel *c)
{
	return (struct hca_channel *)(void *)c;
}

struct ibv_comp_channel *hca_channel_create(struct ibv_context *c);
int hca_channel_destroy(struct ibv_comp_channel *c);

/* A queue comes, before anybody knows it, and goes, when nobody fills it any more. */
void hca_channel_add(struct hca_channel *ch, struct hca_cq *cq);
void hca_channel_remove(struct hca_cq *cq);

/* The verbs. */
int hca_cq_req_notify(struct ibv_cq *cq, int solicited_only);
void hca_cq_events_ack(struct ibv_cq *cq, unsigned n);

/*
 * A queue that has an event to hand out, which it does; NULL: there is none, and *due tells when
 * the first that has fired will be ready (UINT64_MAX: none has).  `rung`: the channel's bell had.
 */
struct hca_cq *hca_channel_take(struct hca_channel *ch, bool rung, uint64_t *due);
/*
 * The program is about to sleep: has it left entries in a queue that it armed before it polled?
 * Then that queue has fired now.
 */
bool hca_channel_left(struct hca_channel *ch);

/* This process has added an entry itself, to an armed queue.  cq->lock held. */
void hca_cq_fire(struct hca_cq *cq, const struct hca_completion *c);

/*
 * The mailbox moves (cq_resize.c): the new one is armed as the old is; when it
 * is the queue's, with the channel locked, what has fired in the meantime is
 * gathered.  cq->lock held.
 */
void hca_channel_lock(struct hca_cq *cq);
void hca_channel_unlock(struct hca_cq *cq);
void hca_channel_copy_armed(struct hca_cq *cq, struct hca_shm_mailbox *to);
void hca_channel_move_armed(struct hca_cq *cq, struct hca_shm_mailbox *from);

/* The attendant's alarm has gone off: ring the channels that were put off. */
void hca_channels_ring(struct hca_fabric *f);

#endif
