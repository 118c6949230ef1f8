/*
 * pace.h - work requests on a timed fabric: each quantum is sent when it is due.
 *
 * Loss, for RC.  If packet k of a quantum is lost, the packets before k arrive.
 * The sender goes back to k (go-back-N)
 *
 *	one round trip after the next packet left, which arrives out of order at
 *	the receiver and is answered with a NAK; or, if no packet follows,
 *	4.096 us * 2^timeout after it left
 *
 * and sends nothing of this queue pair in between (an adapter would continue, in
 * vain).  A packet that is lost more than retry_cnt times in a row ends the
 * queue pair: IBV_WC_RETRY_EXC_ERR.  A path that is down loses every packet, and
 * then only timeouts detect the loss.
 *
 * Jitter: every message and every acknowledgement takes between 0 and `jitter`
 * longer than the latency, but never overtakes within its queue pair.
 */
#ifndef HCA_PACE_H
#define HCA_PACE_H

#include "softhca/model/model.h"

struct hca_qp;

struct hca_pace {
	struct hca_window window;
	struct hca_times outstanding, reads;
	uint64_t end_ns;		/* the last quantum's; later ones end later */
	uint64_t arrival_ns;		/* the last quantum's, in either direction */
	uint64_t ack_ns;		/* the last sent quantum's */
	uint64_t visible_ns;		/* the last completion's: later ones are not earlier */
	uint64_t read_ns;		/* completion of the last RDMA read, for fences */

	bool begun;			/* a part of the oldest request is in flight */
	bool sent;			/* all of it is sent; a datagram waits for a receiver that lags */
	uint64_t earliest_ns;		/* the oldest request begins no earlier */
	uint64_t late_ns, ack_late_ns;	/* added by jitter */

	/* Recovery: the lost packet is sent again at resume_ns. */
	uint64_t resume_ns;		/* 0: nothing was lost */
	uint64_t after_ns;		/* nothing leaves before: the last resume_ns */
	unsigned losses;		/* losses of the next packet in a row */
	bool silent;			/* no packet followed: a timeout or a post detects it */
};

int hca_pace_make(struct hca_qp *qp);		/* 0 or ENOMEM */
void hca_pace_free(struct hca_qp *qp);
/* The peer and the MTU are known: at RTR. */
void hca_pace_connect(struct hca_qp *qp);
/* Forget messages in flight; keep the ends of writes whose completions say that they are done. */
void hca_pace_stop(struct hca_qp *qp);
/* Forget messages in flight and all deferred ends. */
void hca_pace_reset(struct hca_qp *qp);

/*
 * Continue the oldest requests as far as they are due.  True when a step or a
 * local request has been carried out.  The caller puts the queue pair on the
 * engine's list if it is due again (hca_pace_due).  qp->lock held.
 */
bool hca_pace_progress(struct hca_qp *qp);
bool hca_pace_due(const struct hca_qp *qp);

#endif
