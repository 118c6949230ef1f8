/*
 * cq.h - completions: the mailbox that peers fill, the list of our own.
 *
 * A receive completion comes from the peer's process: it is put into the
 * queue's mailbox, in shared memory.  Send completions and flushes are made in
 * this process and go to a private list.  poll_cq serves both.  On an untimed
 * fabric it hands out what it finds; on a timed one it moves the mailbox into
 * the list, which is then ordered by the time at which entries become visible.
 */
#ifndef HCA_CQ_H
#define HCA_CQ_H

#include <infiniband/verbs.h>

#include "object/channel.h"
#include "object/fabric.h"

struct hca_qp;

/* An entry of the private list. */
struct hca_completion {
	uint64_t visible_ns;
	uint64_t order;			/* among entries of one time */
	uint64_t wr_id;
	struct hca_qp *qp;
	uint32_t position;		/* in its send or receive queue; shared: the entry */
	uint32_t bytes;
	uint32_t imm;
	uint32_t src_qp;
	uint16_t slid;
	uint8_t sl;
	uint8_t status, opcode, flags;
	bool receive;
	bool solicited;
};

/*
 * A mailbox as a producer sees it, with private copies of its shape, and how
 * its owner is woken: a peer (its channel's bell is in the mailbox), or this
 * process's own channel.  Neither: it is not.
 */
struct hca_mailbox {
	struct hca_shm_mailbox *shm;
	uint32_t mask;
	unsigned shift;
	struct hca_peer *peer;
	int (*ring_peer)(struct hca_peer *peer, uint32_t bell);	/* if there is one */
	const struct hca_wakeup *wakeup;
};

struct hca_cq {
	struct ibv_cq_ex ibv;		/* first */
	struct hca_fabric *fabric;
	struct hca_list_node link;
	struct hca_lock lock;
	bool timed;			/* entries are ordered by time */
	bool unquiet;			/* a stopped peer may still write to the mailbox */
	bool moving;			/* peers may fill another one already: cq_resize.c */
	_Atomic bool overflowed;
	_Atomic bool error_told;	/* its IBV_EVENT_CQ_ERR */
	uint32_t polls, idle;		/* all; without success, in a row */
	_Atomic int objects;		/* queue pairs */

	/* channel.h */
	bool armed;			/* perhaps: look at the mailbox */
	bool armed_solicited;		/* as it was armed last */
	uint32_t generation;		/* of arming */
	_Atomic uint32_t fired;		/* events not handed out when it was armed again */
	struct hca_list_node channel_link;
	uint32_t comp_events;		/* handed out */
	uint32_t woken_polls;		/* polls when the last was */

	struct hca_mailbox mailbox;
	uint32_t head;			/* next mailbox position to look at */
	uint64_t stuck_ns;		/* since when a claim at stuck_head is not published */
	uint32_t stuck_head;
	uint32_t line;			/* of the mailbox in the heap */

	/*
	 * Unordered: a ring, count from first.  Timed: a heap of count.  It has
	 * room for more than the size, which is what the program asked for.
	 */
	struct hca_completion *list;
	uint32_t first, count, size, room;
	uint64_t order;

	/* Extended ones: cq_ex.c */
	struct hca_lock poll_lock;	/* from start_poll to end_poll; before all others */
	bool single_threaded, stamped;
	uint64_t stamp_ns;		/* of the last entry: time does not go back */
	struct {
		struct ibv_wc wc;
		uint64_t stamp_ns;
	} current;
};

static inline struct hca_cq *hca_cq_of(struct ibv_cq *cq)
{
	return (struct hca_cq *)(void *)cq;
}

/* Of its channel, as peers are told (bell.h). */
static inline uint32_t hca_cq_wakeup(const struct hca_cq *cq)
{
	return cq->mailbox.wakeup ? cq->mailbox.wakeup->number : 0;
}

enum { HCA_CQE_MAX = 1 << 22 };

struct hca_cq_config {
	int entries, vector;
	void *cq_context;
	struct ibv_comp_channel *channel;
	bool stamped;			/* entries bear the time at which they became visible */
};

struct ibv_cq *hca_cq_make(struct ibv_context *c, const struct hca_cq_config *config);
struct ibv_cq *hca_cq_create(struct ibv_context *c, int entries, void *cq_context,
			     struct ibv_comp_channel *channel, int vector);
int hca_cq_destroy(struct ibv_cq *cq);
int hca_cq_resize(struct ibv_cq *cq, int entries);		/* cq_resize.c */

/*
 * Add an entry made by this process.  0, or -ENOSPC: the queue is full and in
 * error from now on.
 */
int hca_cq_add(struct hca_cq *cq, const struct hca_completion *c);

/* It has overflowed: its event, once. */
void hca_cq_tell_error(struct hca_cq *cq);

/*
 * Move what the mailbox holds into the list, so that what is added next comes after it.
 * False when something may be left there: no room, somebody is just writing, or it moves.
 */
bool hca_cq_drain(struct hca_cq *cq);

/* Forget the entries of a queue pair (destroyed or reset). */
void hca_cq_purge(struct hca_cq *cq, const struct hca_qp *qp);

/* ---- For the other files of completion queues; cq->lock held ------------- */

/* The next entry of the mailbox, checked; false: there is none. */
bool hca_cq_mailbox_take(struct hca_cq *cq, struct hca_completion *c);
/* A timed queue: the first of its list, which is not empty. */
void hca_cq_heap_pop(struct hca_cq *cq, struct hca_completion *out);
/*
 * Nothing came for a while: a claim on the entry at the head that is not published for too long is
 * taken back, so that others behind it do not wait for ever.
 */
void hca_cq_unstick(struct hca_cq *cq);
/* As hca_cq_drain. */
void hca_cq_drain_locked(struct hca_cq *cq);
/* The same, for room instead of size. */
void hca_cq_empty_mailbox(struct hca_cq *cq);
/*
 * A timed queue: the first time, not before `after`, at which an entry of the
 * list that fires becomes visible; UINT64_MAX: there is none.
 */
uint64_t hca_cq_next_ns(const struct hca_cq *cq, bool solicited, uint64_t after);
/*
 * Entries wait behind one that somebody has claimed and does not publish: when
 * to look again (the claim is taken back then); 0: there are none.
 */
uint64_t hca_cq_stuck_ns(struct hca_cq *cq);

/* ---- The producer's side (mailbox.c) ------------------------------------- */

/*
 * Put an entry (its state is ignored) into a mailbox as the process in `slot`,
 * and wake the owner if it wants that.  0, or -ENOSPC: full.
 */
int hca_mailbox_put(struct hca_mailbox *m, uint32_t slot, const struct hca_shm_cqe *cqe);

/* The second half of waking; `special`: an entry that is solicited or an error. */
void hca_mailbox_fire(struct hca_mailbox *m, bool special);

/* An entry has been published, by something that is ordered as seq_cst. */
static inline void hca_mailbox_wake(struct hca_mailbox *m, bool special)
{
	if (hca_unlikely(hca_shm_wakes(atomic_load(&m->shm->armed))))
		hca_mailbox_fire(m, special);
}

static inline size_t hca_mailbox_bytes(uint32_t count)
{
	return sizeof(struct hca_shm_mailbox) + (size_t)count * sizeof(struct hca_shm_cqe);
}

#endif
