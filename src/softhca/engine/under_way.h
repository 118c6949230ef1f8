/* under_way.h - requests that a link has accepted and not ended: order, fences, retries. */
#ifndef HCA_UNDER_WAY_H
#define HCA_UNDER_WAY_H

#include "softhca/object/qp.h"

/* Calls by which a link tells of them; fabric->upcalls. */
extern const struct hca_link_upcalls hca_engine_upcalls;

/*
 * Hand over queued requests as far as order allows.  True: the queue pair needs a turn at
 * sq.again_ns; false: when the link tells of it.  On a wire only; qp->lock held, in RTS or SQD.
 */
bool hca_under_way_progress(struct hca_qp *qp);
/* SQD: requests remain that were handed over before. */
bool hca_under_way_remains(const struct hca_qp *qp);

#endif
