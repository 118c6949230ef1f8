/* qp_states.h - queue pairs: creation, state changes, destruction. */
#ifndef HCA_QP_STATES_H
#define HCA_QP_STATES_H

#include <infiniband/verbs.h>

struct ibv_qp *hca_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
struct ibv_qp *hca_qp_create_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *init);
int hca_qp_destroy(struct ibv_qp *qp);
int hca_qp_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int hca_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init);

#endif
