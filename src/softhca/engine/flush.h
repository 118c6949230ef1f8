/* flush.h - the error state of a queue pair. */
#ifndef HCA_FLUSH_H
#define HCA_FLUSH_H

#include "softhca/object/qp.h"

/* Enter it: no message is accepted, everything outstanding is flushed.  qp->lock held. */
void hca_qp_fail(struct hca_qp *qp);
/*
 * A request has failed locally or been refused: the error state, or SQE for an
 * unreliable queue pair, whose receive side goes on.  qp->lock held.
 */
void hca_sq_fail(struct hca_qp *qp);
/*
 * The peer has died: the oldest request fails, or without one IBV_EVENT_QP_FATAL is raised; the
 * error state.  qp->lock held.
 */
void hca_qp_lose_peer(struct hca_qp *qp);
/* Flush the send queue.  qp->lock held. */
void hca_sq_flush(struct hca_qp *qp);
/*
 * Flush the receive queue.  qp->rq_lock held.  True when receives remain that
 * a peer is still filling: call it again later.
 */
bool hca_rq_flush(struct hca_qp *qp);

#endif
