/*
 * shared.h - a receive queue from which many senders claim: an SRQ's or a UD queue
 * pair's.  layout.h describes its memory.
 *
 * An entry is in one of these states:
 *	free		its index is in `freed`, in private memory
 *	posted		`held` has its position; any sender may claim it
 *	complete	its completion is in the list of a completion queue
 * Shared memory decides only between posted and claimed.
 */
#ifndef HCA_SHARED_H
#define HCA_SHARED_H

#include <infiniband/verbs.h>

#include "softhca/object/fabric.h"

/* ---- Senders ------------------------------------------------------------- */

/* A queue of any process, this one included, with private copies of its size. */
struct hca_shared_view {
	struct hca_shm_shared *shm;	/* NULL: the receive queue is not shared */
	unsigned char *ring;
	uint32_t mask, stride;
};

/* A claimed receive. */
struct hca_shared_claim {
	struct hca_shm_recv *recv;
	uint32_t position, entry;
	bool alert;			/* the owner must be notified: few receives are left */
};

/* Claim the oldest receive as the process `claimer` (hca_shm_claim); false: none. */
bool hca_shared_claim_oldest(const struct hca_shared_view *v, uint32_t claimer,
		     struct hca_shared_claim *claim);
/* The receive's completion has been delivered. */
void hca_shared_done(const struct hca_shared_claim *claim, uint32_t claimer);
/* The claim leads to nothing: the receive is posted again.  The caller notifies the owner. */
void hca_shared_unclaim(const struct hca_shared_view *v, const struct hca_shared_claim *claim,
		       uint32_t claimer);

static inline size_t hca_shared_bytes(uint32_t count)
{
	return sizeof(struct hca_shm_shared) + (size_t)count * sizeof(_Atomic uint64_t);
}

/* ---- The owner ----------------------------------------------------------- */

struct hca_shared_wr {
	uint64_t wr_id;
	uint32_t room;			/* bytes that it can receive */
	_Atomic uint64_t held;		/* position << 32 | 1 while posted, else 0 */
};

struct hca_shared {
	struct hca_fabric *fabric;
	struct hca_shared_view view;
	uint32_t line, shm_line;	/* the ring's and the rest's, in the heap */
	uint32_t depth, sge_max, pd;
	bool unquiet;			/* a stopped peer may still write to it */
	struct hca_shared_wr *wr;

	struct hca_lock lock;		/* for posting */
	uint32_t posted;		/* position of the next */
	uint32_t oldest;		/* nothing posted earlier is in the queue */
	uint32_t first;			/* first position since the last clear */
	uint32_t recovered;		/* receives posted again */
	uint32_t freed_head;
	/* Indices + 1 of free entries; polling adds to it without a lock. */
	_Atomic uint32_t *freed;
	_Atomic uint32_t freed_tail;
};

/* At least so many requests with so many SGEs: 0 or ENOMEM. */
int hca_shared_make(struct hca_shared *s, struct hca_fabric *f, uint32_t pd, uint32_t wr,
		    uint32_t sge);
void hca_shared_free(struct hca_shared *s);

/* Post a list, as ibv_post_recv does: 0, EINVAL, ENOMEM. */
int hca_shared_post(struct hca_shared *s, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * Check a completion for an entry posted at `position`: true, the entry's wr_id and the bytes that
 * it can receive, if valid.  hca_shared_release frees the entry when the completion has been polled
 * or removed.
 */
bool hca_shared_accept(struct hca_shared *s, uint32_t position, uint32_t entry, uint64_t *wr_id,
		       uint32_t *room);
void hca_shared_release(struct hca_shared *s, uint32_t entry);

/* Does a live process hold a claim on an entry? */
bool hca_shared_busy(struct hca_shared *s);
/*
 * Wait until no live process holds a claim from before this call, until deadline_ns at most.
 * The queue may be freed meanwhile: its memory is the fabric's and stays readable.
 */
void hca_shared_quiesce(struct hca_fabric *f, const struct hca_shared_view *v,
			uint64_t deadline_ns);

/*
 * Post again the entries before the head that no sender will claim; with `dead` also
 * the claims of dead processes, whose last completions must have been drained.
 */
void hca_shared_recover(struct hca_shared *s, bool dead);
/* May an entry need recovery?  Checks the processes that hold claims. */
bool hca_shared_suspect(struct hca_shared *s);

/*
 * Withdraw the oldest posted receive: 1 and its entry, 0 if none is posted, or
 * -EAGAIN while a live process holds a claim on it; `force` ignores the claim.
 * s->lock held.
 */
int hca_shared_withdraw(struct hca_shared *s, bool force, uint32_t *entry, uint64_t *wr_id);

/* Make every entry free; no process may be able to reach the queue. */
void hca_shared_clear(struct hca_shared *s);

#endif
