/*
 * shared.h - a receive queue that many may take from: that of an SRQ or of a
 * UD queue pair.  layout.h says how it looks.
 *
 * An entry is in one of these hands:
 *	free		its index waits in `freed`, in private memory
 *	posted		`held` says at which position; anybody may claim it
 *	complete	its completion is in the list of a completion queue
 * What is in shared memory decides only between posted and claimed.
 */
#ifndef HCA_SHARED_H
#define HCA_SHARED_H

#include <infiniband/verbs.h>

#include "object/fabric.h"

/* ---- Those who take ------------------------------------------------------ */

/* A queue of another process (or of ours), with private copies of its shape. */
struct hca_shared_view {
	struct hca_shm_shared *shm;	/* NULL: the receive queue is not shared */
	unsigned char *ring;
	uint32_t mask, stride;
};

/* What was claimed. */
struct hca_shared_claim {
	struct hca_shm_recv *recv;
	uint32_t position, entry;
	bool alert;			/* the owner has to be told that few are left */
};

/* Take the oldest receive as the process `claimer` (hca_shm_claim); false: there is none. */
bool hca_shared_claim_oldest(const struct hca_shared_view *v, uint32_t claimer,
		     struct hca_shared_claim *claim);
/* The completion has been delivered. */
void hca_shared_done(const struct hca_shared_claim *claim, uint32_t claimer);
/* Nothing came of it: it is posted as before.  The owner has to be told. */
void hca_shared_unclaim(const struct hca_shared_view *v, const struct hca_shared_claim *claim,
		       uint32_t claimer);

static inline size_t hca_shared_bytes(uint32_t count)
{
	return sizeof(struct hca_shm_shared) + (size_t)count * sizeof(_Atomic uint64_t);
}

/* ---- The owner ----------------------------------------------------------- */

struct hca_shared_wr {
	uint64_t wr_id;
	uint32_t room;			/* bytes that it takes */
	_Atomic uint64_t held;		/* position << 32 | 1 while posted, else 0 */
};

struct hca_shared {
	struct hca_fabric *fabric;
	struct hca_shared_view view;
	uint32_t line, shm_line;	/* of the ring and of the rest, in the heap */
	uint32_t depth, sge_max, pd;
	bool unquiet;			/* a stopped peer may still write to it */
	struct hca_shared_wr *wr;

	struct hca_lock lock;		/* of those who post */
	uint32_t posted;		/* position of the next */
	uint32_t oldest;		/* nothing that was posted before is in the queue */
	uint32_t first;			/* position */
	uint32_t recovered;		/* how many have been posted again */
	uint32_t freed_head;
	/* Indices + 1 of free entries; those who poll add to it without a lock. */
	_Atomic uint32_t *freed;
	_Atomic uint32_t freed_tail;
};

/* At least so many requests with so many SGEs; 0 or ENOMEM. */
int hca_shared_make(struct hca_shared *s, struct hca_fabric *f, uint32_t pd, uint32_t wr,
		    uint32_t sge);
void hca_shared_free(struct hca_shared *s);

/* Post a list, as ibv_post_recv does: 0, EINVAL, ENOMEM. */
int hca_shared_post(struct hca_shared *s, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * A completion names an entry, as posted at `position`: true, its wr_id and the
 * bytes that it takes, if that is so.  It is free when the completion has been polled or forgotten.
 */
bool hca_shared_accept(struct hca_shared *s, uint32_t position, uint32_t entry, uint64_t *wr_id,
		       uint32_t *room);
void hca_shared_release(struct hca_shared *s, uint32_t entry);

/* Is somebody, who lives, at work on an entry? */
bool hca_shared_busy(struct hca_shared *s);
/*
 * Wait until nobody is at work on what he has claimed before this call.  The
 * queue may go meanwhile; its memory, the fabric's, stays readable.
 */
void hca_shared_quiesce(struct hca_fabric *f, const struct hca_shared_view *v,
			uint64_t deadline_ns);

/*
 * Post anew what is behind the head and will not be claimed; with `dead` also
 * what the dead had claimed, whose last completions must have been drained.
 */
void hca_shared_recover(struct hca_shared *s, bool dead);
/* Would there be anything to recover?  Looks at the processes behind claims. */
bool hca_shared_suspect(struct hca_shared *s);

/*
 * Withdraw the oldest that is posted: 1 and its entry, 0 if there is none, or
 * -EAGAIN while somebody works on it; `force`: take no notice of that.  s->lock
 * held.
 */
int hca_shared_withdraw(struct hca_shared *s, bool force, uint32_t *entry, uint64_t *wr_id);

/* Everything is free again; nobody must be able to reach it. */
void hca_shared_clear(struct hca_shared *s);

#endif
