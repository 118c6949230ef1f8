/* wr.h - posting by ibv_wr_*: batches of requests. */
#ifndef HCA_WR_H
#define HCA_WR_H

#include "softhca/object/qp.h"

/* Operations that a queue pair of this type may be created with: ibv_qp_create_send_ops_flags. */
uint64_t hca_batch_ops(enum ibv_qp_type type);
int hca_batch_make(struct hca_qp *qp);	/* 0 or ENOMEM */
void hca_batch_free(struct hca_qp *qp);
struct ibv_qp_ex *hca_qp_to_ex(struct ibv_qp *qp);

#endif
