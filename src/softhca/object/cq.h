/*
 * cq.h - completions: the mailbox that peers fill, the list of this process.
 *
 * The peer's process puts a receive completion into the queue's mailbox, in
 * shared memory.  Send completions and flushes are made in this process and go
 * to a private list.  poll_cq serves both.  On an untimed fabric it returns
 * entries as they are found.  On a timed one it moves the mailbox into the list,
 * which is ordered by the time at which entries become visible.
 */
#ifndef HCA_CQ_H
#define HCA_CQ_H

#include <infiniband/verbs.h>

#include "softhca/object/channel.h"
#include "softhca/object/fabric.h"

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
 * A mailbox as a producer sees it, with private copies of its size, and the
 * wake-up of its owner: a peer's (the number of its channel's wake-up is in the
 * mailbox) or this process's channel's.  Neither: the owner is not woken.
 */
struct hca_mailbox {
	struct hca_shm_mailbox *shm;
	uint32_t mask;
	unsigned shift;
	struct hca_peer *peer;
	int (*wake_peer)(struct hca_peer *peer, uint32_t wakeup);	/* if there is one */
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
	_Atomic bool error_told;	/* IBV_EVENT_CQ_ERR was raised */
	uint32_t polls, idle;		/* all polls; polls without success, in a row */
	_Atomic int objects;		/* queue pairs */

	/* channel.h */
	bool armed;			/* perhaps: the mailbox decides */
	bool armed_solicited;		/* mode of the last arming */
	uint32_t generation;		/* counts armings */
	_Atomic uint32_t fired;		/* events not yet delivered when it was armed again */
	struct hca_list_node channel_link;
	uint32_t comp_events;		/* delivered */
	uint32_t woken_polls;		/* polls at the last delivery */

	struct hca_mailbox mailbox;
	uint32_t head;			/* next mailbox position to read */
	uint64_t stuck_ns;		/* the claim at stuck_head is unpublished since then */
	uint32_t stuck_head;
	uint32_t line;			/* the mailbox's, in the heap */

	/*
	 * Not timed: a ring, count from first.  Timed: a heap of count.  room may
	 * exceed size, the number of entries that the program has requested.
	 */
	struct hca_completion *list;
	uint32_t first, count, size, room;
	uint64_t order;
	uint64_t locked_bytes;		/* counted in fabric.cq_bytes */

	/* Extended completion queues: cq_ex.c */
	struct hca_lock poll_lock;	/* from start_poll to end_poll; before all others */
	bool single_threaded, stamped;
	uint64_t stamp_ns;		/* the last entry's: time stamps never decrease */
	struct {
		struct ibv_wc wc;
		uint64_t stamp_ns;
	} current;
};

static inline struct hca_cq *hca_cq_of(struct ibv_cq *cq)
{
	return (struct hca_cq *)(void *)cq;
}

/* Number of its channel's wake-up, as published to peers (wakeup.h); 0: none. */
static inline uint32_t hca_cq_wakeup(const struct hca_cq *cq)
{
	return cq->mailbox.wakeup ? cq->mailbox.wakeup->number : 0;
}

struct hca_cq_config {
	int entries, vector;
	void *cq_context;
	struct ibv_comp_channel *channel;
	bool stamped;			/* entries carry the time of becoming visible */
};

struct ibv_cq *hca_cq_make(struct ibv_context *c, const struct hca_cq_config *config);
/* Count memory that an adapter would lock for so many entries; false: beyond the limit (cqmem). */
bool hca_cq_lock_memory(struct hca_cq *cq, uint32_t entries);
void hca_cq_unlock_memory(struct hca_cq *cq, uint64_t bytes);
struct ibv_cq *hca_cq_create(struct ibv_context *c, int entries, void *cq_context,
			     struct ibv_comp_channel *channel, int vector);
int hca_cq_destroy(struct ibv_cq *cq);
int hca_cq_resize(struct ibv_cq *cq, int entries);		/* cq_resize.c */

/* Add an entry made by this process.  0, or -ENOSPC: the queue is full and now in error. */
int hca_cq_add(struct hca_cq *cq, const struct hca_completion *c);

/* The queue has overflowed: raise its event, once. */
void hca_cq_tell_error(struct hca_cq *cq);

/*
 * Move the mailbox's entries into the list, so that entries added next come after them.
 * False when some may be left: no room, an entry is being written, or the mailbox moves.
 */
bool hca_cq_drain(struct hca_cq *cq);

/* Remove the entries of a queue pair (destroyed or reset). */
void hca_cq_purge(struct hca_cq *cq, const struct hca_qp *qp);

/* ---- Internal to completion queues; cq->lock held ------------------------ */

/* The next entry of the mailbox, checked; false: none. */
bool hca_cq_mailbox_take(struct hca_cq *cq, struct hca_completion *c);
/* A timed queue: remove the first of its list, which is not empty. */
void hca_cq_heap_pop(struct hca_cq *cq, struct hca_completion *out);
/*
 * Revoke a claim on the head entry that has not been published for too long, so that later
 * entries do not wait for ever.  Called when nothing has arrived for a while.
 */
void hca_cq_revoke_stale_claim(struct hca_cq *cq);
/* hca_cq_drain without the result. */
void hca_cq_drain_locked(struct hca_cq *cq);
/* hca_cq_drain_locked, up to room instead of size. */
void hca_cq_empty_mailbox(struct hca_cq *cq);
/*
 * A timed queue: the first time, not before `after`, at which an entry of the
 * list that fires an event becomes visible; UINT64_MAX: none.
 */
uint64_t hca_cq_next_ns(const struct hca_cq *cq, bool solicited, uint64_t after);
/*
 * If entries wait for a claimed, unpublished one before them: when to check again
 * (the claim is revoked then); 0: none wait.
 */
uint64_t hca_cq_stuck_ns(struct hca_cq *cq);

/* ---- The producer's side (mailbox.c) ------------------------------------- */

/*
 * Put an entry (its state is ignored) into a mailbox as the process in `slot`,
 * and wake the owner if the mailbox is armed.  0, or -ENOSPC: full.
 */
int hca_mailbox_put(struct hca_mailbox *m, uint32_t slot, const struct hca_shm_cqe *cqe);

/* Fire an armed mailbox and wake its owner; `special`: the entry is solicited or an error. */
void hca_mailbox_fire(struct hca_mailbox *m, bool special);

/* Call after an entry has been published with seq_cst order. */
static inline void hca_mailbox_wake(struct hca_mailbox *m, bool special)
{
	if (unlikely(hca_shm_wakes(atomic_load(&m->shm->armed))))
		hca_mailbox_fire(m, special);
}

static inline size_t hca_mailbox_bytes(uint32_t count)
{
	return sizeof(struct hca_shm_mailbox) + (size_t)count * sizeof(struct hca_shm_cqe);
}

#endif
