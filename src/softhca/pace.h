/*
 * pace.h - work requests on a timed fabric: each quantum when it is due.
 */
#ifndef HCA_PACE_H
#define HCA_PACE_H

#include "held.h"
#include "model.h"

struct hca_qp;

struct hca_pace {
	struct hca_path out, in;	/* to the peer; from it, for RDMA reads */
	struct hca_window window;
	struct hca_times outstanding, reads;
	uint64_t end_ns;		/* of the last quantum sent; later ones end later */
	uint64_t arrival_ns;		/* of the last quantum, either way */
	uint64_t visible_ns;		/* of the last completion: later ones are not earlier */
	uint64_t read_ns;		/* completion of the last RDMA read, for fences */

	bool begun;			/* the oldest request: some of it is on its way */
	uint64_t earliest_ns;		/* it may not begin before */

	struct hca_held_list held;
};

int hca_pace_make(struct hca_qp *qp);		/* 0 or ENOMEM */
void hca_pace_free(struct hca_qp *qp);
/* The peer and the MTU are known: at RTR. */
void hca_pace_connect(struct hca_qp *qp);
/* Forget what was in flight. */
void hca_pace_reset(struct hca_qp *qp);

/*
 * Go on with the oldest requests as far as their time has come.  True when
 * anything has been sent.  The caller puts the queue pair on the engine's list
 * if it is due again (hca_pace_due).  qp->lock held.
 */
bool hca_pace_progress(struct hca_qp *qp);
bool hca_pace_due(const struct hca_qp *qp);

#endif
