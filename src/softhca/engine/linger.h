/* linger.h - when the ends of RDMA writes that are held back are written (object/deferred.h). */
#ifndef HCA_LINGER_H
#define HCA_LINGER_H

#include "object/qp.h"

/* Write what is due; the progress thread sees to the rest if the program does not poll.  qp->lock held. */
void hca_release_due(struct hca_qp *qp, uint64_t now_ns);
/* The end of ibv_post_send: wait for what is due very soon.  qp->lock held. */
void hca_linger(struct hca_qp *qp);

#endif
