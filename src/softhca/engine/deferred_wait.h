/* deferred_wait.h - when the deferred ends of RDMA writes are written (object/deferred.h). */
#ifndef HCA_DEFERRED_WAIT_H
#define HCA_DEFERRED_WAIT_H

#include "softhca/object/qp.h"

/*
 * Write the due ends; arm the progress thread's timer for the others if the program does not
 * poll.  True: some are left.  On a timed fabric only; qp->lock held.
 */
bool hca_release_due(struct hca_qp *qp, uint64_t now_ns);
/*
 * At the end of ibv_post_send, whose requests begin at `first`: wait for ends that are due very
 * soon.  qp->lock held.
 */
void hca_wait_for_deferred(struct hca_qp *qp, uint32_t first);

#endif
