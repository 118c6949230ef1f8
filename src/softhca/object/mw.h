/*
 * mw.h - memory windows: a row of the registration table that opens a part of
 * a registration, bound and invalidated by work requests, in their order.
 *
 * Type 1 is valid for every queue pair of its protection domain and is bound by
 * ibv_bind_mw.  Type 2 (2B) is valid for the queue pair on which it was bound, and
 * is invalidated there or by its peer (SEND with invalidate).  A window that the
 * peer has invalidated becomes unbound when it is next examined.
 *
 * After a local invalidation, a new binding or hca_mw_dealloc no peer accesses
 * the window's memory any more.
 */
#ifndef HCA_MW_H
#define HCA_MW_H

#include "softhca/object/device.h"
#include "softhca/object/qp.h"

struct hca_mw {
	struct ibv_mw ibv;		/* first */
	struct hca_mr row;
	struct hca_mr *under;		/* NULL: not bound; under fabric.slow */
	struct hca_list_node link;
};

struct ibv_mw *hca_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int hca_mw_dealloc(struct ibv_mw *mw);

/* Number of windows bound to a registration now. */
int hca_mw_count(struct hca_mr *mr);

/* Requests that are carried out locally, without the peer. */
static inline bool hca_mw_is_local(enum ibv_wr_opcode op)
{
	return op == IBV_WR_BIND_MW || op == IBV_WR_LOCAL_INV;
}

/* Can the request be posted?  0 or EINVAL. */
int hca_mw_check(const struct ibv_send_wr *wr);
/* Carry out a request: enum ibv_wc_status.  qp->lock held, not in an access section. */
int hca_mw_carry_out(struct hca_qp *qp, const struct ibv_send_wr *wr);

/*
 * SEND with invalidate, by rows of the owner's table and its words `invalidated` (layout.h).  A
 * window of type 2 of queue pair `qpn`, which its peer may use and invalidate?
 */
bool hca_mw_is_open(const struct hca_shm_mr *row, const _Atomic uint64_t *invalidated,
		    uint32_t rkey, uint32_t qpn, uint32_t pd);
/* Invalidate such a window. */
void hca_mw_invalidate_open(const struct hca_shm_mr *row, _Atomic uint64_t *invalidated,
			    uint32_t rkey);

#endif
