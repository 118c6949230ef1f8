/* poll.h - polling completion queues, plain and extended ones. */
#ifndef HCA_POLL_H
#define HCA_POLL_H

#include <infiniband/verbs.h>

struct hca_cq;

int hca_cq_poll(struct ibv_cq *cq, int max, struct ibv_wc *wc);
/* Poll one entry of any queue; *stamp_ns is set if it is timed: a queue with timestamps is. */
int hca_cq_poll_stamped(struct hca_cq *cq, struct ibv_wc *wc, uint64_t *stamp_ns);

/* cq_ex.c */
struct ibv_cq_ex *hca_cq_create_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *init);
int hca_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values);

#endif
