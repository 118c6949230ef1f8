/* transfer.h - work requests over shared memory; the contract is in object/link.h. */
#ifndef HCA_TRANSFER_H
#define HCA_TRANSFER_H

#include "softhca/object/qp.h"

bool hca_write_short(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
int hca_transfer_whole(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
int hca_transfer_begin(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
int hca_transfer_copy(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
		      uint32_t *deferred);
void hca_transfer_defer(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t deferred,
			uint64_t due_ns);
int hca_transfer_end(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns);
void hca_transfer_drop(struct hca_qp *qp);

#endif
