/*
 * mw.h - memory windows: a row of the registration table that opens a part of
 * a registration, made and unmade by work requests, in their order.
 *
 * Type 1 serves every queue pair of its protection domain and is bound by
 * ibv_bind_mw; type 2 (2B) serves the queue pair on which it was bound, and is
 * invalidated there or by its peer (SEND with invalidate).  A window that the
 * peer took away is found unbound when it is next looked at.
 *
 * After a local invalidation, a new binding or hca_mw_dealloc nobody is at the
 * window's memory any more.
 */
#ifndef HCA_MW_H
#define HCA_MW_H

#include "object/device.h"
#include "object/qp.h"

struct hca_mw {
	struct ibv_mw ibv;		/* first */
	struct hca_mr row;
	struct hca_mr *under;		/* NULL: not bound; under fabric.slow */
	struct hca_list_node link;
};

struct ibv_mw *hca_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int hca_mw_dealloc(struct ibv_mw *mw);

/* How many windows are bound to a registration now. */
int hca_mw_count(struct hca_mr *mr);

/* Requests that are carried out here, without the peer. */
static inline bool hca_mw_is_local(enum ibv_wr_opcode op)
{
	return op == IBV_WR_BIND_MW || op == IBV_WR_LOCAL_INV;
}

/* May this be posted?  0 or EINVAL. */
int hca_mw_check(const struct ibv_send_wr *wr);
/* Carry it out: enum ibv_wc_status.  qp->lock held, not in a section. */
int hca_mw_carry_out(struct hca_qp *qp, const struct ibv_send_wr *wr);

#endif
