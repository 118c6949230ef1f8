/* post.h - posting work requests, and the bookkeeping of the send queue. */
#ifndef HCA_POST_H
#define HCA_POST_H

#include "softhca/object/qp.h"

/* ---- post.c, recv.c ------------------------------------------------------ */

int hca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * Post requests that were built one by one (wr.c): all, or none and an errno value.
 * qp->lock held.
 */
int hca_post_batch(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t count);

/* Post a request that is carried out locally (mw.h); takes qp->lock. */
int hca_post_local(struct hca_qp *qp, const struct ibv_send_wr *wr);
/* ibv_bind_mw of a type 1 window: posts the work request. */
int hca_mw_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* ---- post.c: the send queue's bookkeeping, for the engine and flush.c ---- */

/* The send completion of the work request at `position`. */
void hca_sq_complete(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t position,
		     uint32_t bytes, int status, uint64_t visible_ns);
/* Remove the oldest request, once it is over. */
void hca_sq_pop(struct hca_qp *qp);

#endif
