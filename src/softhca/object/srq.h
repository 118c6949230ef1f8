/*
 * srq.h - shared receive queues: receives for many queue pairs, of RC, UC and
 * UD.  A message to any of them claims the oldest receive; its completion goes
 * to that queue pair's completion queue.  Buffers belong to the protection
 * domain of the SRQ.
 *
 * The receive of a message that fails (its sender dies, its queue pair is reset)
 * returns to the queue, at the end if its place has been passed: none is lost.
 */
#ifndef HCA_SRQ_H
#define HCA_SRQ_H

#include <infiniband/verbs.h>

#include "softhca/object/shared.h"

struct hca_srq {
	struct ibv_srq ibv;		/* first */
	struct hca_list_node link;		/* the context's list */
	struct hca_shared shared;
	uint32_t number;
	_Atomic int objects;		/* queue pairs */
};

static inline struct hca_srq *hca_srq_of(struct ibv_srq *srq)
{
	return (struct hca_srq *)(void *)srq;
}

struct ibv_srq *hca_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *init);
struct ibv_srq *hca_srq_create_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *init);
int hca_srq_modify(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int hca_srq_query(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int hca_srq_number(struct ibv_srq *srq, uint32_t *number);
int hca_srq_destroy(struct ibv_srq *srq);
int hca_srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
