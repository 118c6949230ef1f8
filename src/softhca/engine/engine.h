/*
 * engine.h - work that could not be done when it was posted.
 *
 * A queue pair whose oldest work request has to wait (no receive at the peer,
 * no peer, not yet due) is on its fabric's list.  Every verb that moves data
 * checks one word and, if anything waits, one thread goes through the list.
 * So a program makes progress whenever it posts or polls any queue; while it
 * does neither, the progress thread goes through the list (progress_thread.h).
 */
#ifndef HCA_ENGINE_H
#define HCA_ENGINE_H

#include "softhca/engine/progress_thread.h"
#include "softhca/object/qp.h"

/* A fabric, and queue pairs with work that could not be done when it was posted. */
struct hca_engine {
	struct hca_fabric fabric;	/* first */
	struct hca_lock list_lock;
	struct hca_qp *first, *last;
	_Atomic uint32_t pending;	/* length of the list, and 1 for a wire; every verb reads it */
	_Atomic bool turning;		/* queue pairs taken off the list are having their turns */
	_Atomic uint32_t runs;		/* passes over the list so far */
	_Atomic bool sharing;		/* several queue pairs have their turns now */
	_Atomic uint64_t looked_ns;	/* when the peers were last checked */
	_Atomic uint64_t polled_ns;	/* timed: when a queue was last polled */
	_Atomic uint64_t waited_ns;	/* timed: when a queue was last polled in vain */
	/* A fabric with a wire: the next times at which the list and the wire need a turn. */
	_Atomic uint64_t list_ns, wire_ns;
	_Atomic uint64_t ran_ns;	/* the wire was last served */
	struct hca_progress_thread progress_thread;
};

static inline struct hca_engine *hca_engine_of(const struct hca_fabric *f)
{
	return (struct hca_engine *)(uintptr_t)f;
}

/*
 * The fabric has a wire now: every verb that polls or posts serves it from here on, and the
 * progress thread does while there is none: 0 or -errno.  Before the first queue pair;
 * hca_progress_thread_stop ends it.
 */
int hca_engine_serve_wire(struct hca_fabric *f);

/* Put a queue pair on the list, unless it is on it. */
void hca_engine_add(struct hca_qp *qp);
/* Remove it from the list, before it is reset or destroyed.  fabric.life held. */
void hca_engine_remove(struct hca_qp *qp);

void hca_engine_run(struct hca_fabric *f);
/* The same for a verb that posts, which polls follow. */
void hca_engine_run_for_post(struct hca_fabric *f);

/* Act now on events that peers have signalled; waits for another thread that does so. */
void hca_engine_handle_events(struct hca_fabric *f);

/* Continue the oldest work requests of a queue pair.  qp->lock held. */
void hca_sq_progress(struct hca_qp *qp);

/*
 * The oldest request cannot be carried out: a transfer had the negative result
 * `why`.  0: it waits; or the status with which it fails, once its tries are
 * used up.
 */
int hca_engine_wait_or_fail(struct hca_qp *qp, int why);
/* The time after an RNR answer until the next try. */
uint64_t hca_engine_rnr_ns(const struct hca_qp *qp);
/* The oldest request is over: its completion, and the error state if it failed. */
void hca_engine_finish(struct hca_qp *qp, int status);

/*
 * Raise COMM_EST if a first message has arrived; `last`: a later one no longer
 * raises it.  fabric.life held.
 */
void hca_qp_check_first(struct hca_qp *qp, bool last);

static inline bool hca_engine_due(struct hca_fabric *f)
{
	return unlikely(
	    atomic_load_explicit(&hca_engine_of(f)->pending, memory_order_acquire) ||
	    atomic_load_explicit(&f->faults, memory_order_relaxed) ||
	    atomic_load_explicit(&f->self->attention, memory_order_relaxed) !=
		atomic_load_explicit(&f->attention, memory_order_relaxed));
}

/*
 * Timed: may due work be undone?  A queue pair that has its turn, in another thread, is not on the
 * list.
 */
static inline bool hca_engine_behind(struct hca_fabric *f)
{
	return hca_engine_due(f) ||
	       atomic_load_explicit(&hca_engine_of(f)->turning, memory_order_acquire);
}

/* Is any queue pair on the list? */
static inline bool hca_engine_waits(const struct hca_fabric *f)
{
	return atomic_load(&hca_engine_of(f)->pending) != (f->wire != NULL);
}

/*
 * When the list and the wire need a turn, at the latest; 0: as soon as possible, UINT64_MAX: not
 * before something happens.
 */
uint64_t hca_engine_next_ns(const struct hca_fabric *f);

/* Check for dead peers and receives that they claimed, once in 10 ms at most. */
void hca_engine_idle(struct hca_fabric *f);

#endif
