/* connect.h - resolving a queue pair number to another process's memory. */
#ifndef HCA_CONNECT_H
#define HCA_CONNECT_H

#include "object/qp.h"

/*
 * Find the queue pair c->qpn at c->address and resolve c.  0; -ENOTCONN: absent, or
 * not ready for this queue pair; -ECONNRESET: its process has died.  qp->lock held.
 */
int hca_conn_resolve(struct hca_qp *qp, struct hca_conn *c);
/* Resolve the current place of the peer's mailbox: 0, or -ENOTCONN. */
int hca_conn_mailbox(struct hca_conn *c, const volatile struct hca_shm_qp *theirs);
void hca_conn_drop(struct hca_conn *c);

/* The peer's registration behind a key, from its table; NULL: none, or of another PD. */
const struct hca_remote_mr *hca_conn_mr(struct hca_conn *c, uint32_t key);
/* The same for the buffers of its receives. */
const struct hca_remote_mr *hca_conn_rq_mr(struct hca_conn *c, uint32_t key);

/* SEND with invalidate, at the sender: is `rkey` a window of the peer's queue pair? */
bool hca_mw_is_theirs(const struct hca_conn *c, uint32_t rkey);
/* Invalidate it. */
void hca_mw_invalidate_theirs(const struct hca_conn *c, uint32_t rkey);

#endif
