/*
 * engine.h - work that could not be done when it was posted.
 *
 * A queue pair whose oldest work request has to wait (no receive at the peer,
 * no peer, not yet its time) is on its fabric's list.  Every verb that moves
 * data looks at one word and, if anything waits, lets one thread go through
 * the list.  So a program makes progress whenever it polls or posts, whatever
 * it polls; while it does neither, the attendant sees to it (attend.h).
 */
#ifndef HCA_ENGINE_H
#define HCA_ENGINE_H

#include "object/qp.h"

/* Put a queue pair on the list, unless it is there. */
void hca_engine_add(struct hca_qp *qp);
/* Take it off for good, before it is destroyed.  engine.lock held. */
void hca_engine_remove(struct hca_qp *qp);

void hca_engine_run(struct hca_fabric *f);

/* Act upon what peers have told, now, if there is anything; waits for who is at it. */
void hca_engine_look(struct hca_fabric *f);

/* Go on with the oldest work requests of a queue pair.  qp->lock held. */
void hca_sq_progress(struct hca_qp *qp);

/*
 * The oldest request cannot be carried out, for a negative reason of
 * hca_transfer.  0: it waits; or the status with which it fails, its tries
 * being used up.
 */
int hca_engine_wait_or_fail(struct hca_qp *qp, int why);
/* The oldest request is over: its completion, and the error state if it failed. */
void hca_engine_finish(struct hca_qp *qp, int status);

/*
 * Raise COMM_EST if a first message has arrived; `last`: one that comes later is
 * none any more.  engine.lock held.
 */
void hca_qp_look_for_first(struct hca_qp *qp, bool last);

static inline bool hca_engine_due(struct hca_fabric *f)
{
	struct hca_engine *e = &f->engine;

	return hca_unlikely(atomic_load_explicit(&e->pending, memory_order_relaxed) ||
			    atomic_load_explicit(&e->faults, memory_order_relaxed) ||
			    atomic_load_explicit(&f->self->attention, memory_order_relaxed) !=
				atomic_load_explicit(&e->attention, memory_order_relaxed));
}

/* Has a peer, or another thread, told of something that was not looked at? */
static inline bool hca_engine_told(struct hca_fabric *f)
{
	return atomic_load(&f->engine.faults) ||
	       atomic_load(&f->self->attention) != atomic_load(&f->engine.attention);
}

/* Something of ours went wrong while a lock was held: see to it at the next verb. */
static inline void hca_engine_fault(struct hca_fabric *f)
{
	atomic_store_explicit(&f->engine.faults, 1, memory_order_relaxed);
}

/* Now and then: has a peer died?  Looks every 10 ms at most. */
void hca_engine_idle(struct hca_fabric *f);

#endif
