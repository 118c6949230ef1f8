/*
 * mcast.h - multicast groups: which UD queue pairs of the fabric are attached
 * to which GID.
 *
 * Members are in the fabric segment (hca_shm_member).  Only the process that has
 * claimed an entry writes it; any process that finds entries of dead processes
 * frees them.  A datagram to the group goes to every member on every port
 * and node, the sending queue pair included if it is a member.
 */
#ifndef HCA_MCAST_H
#define HCA_MCAST_H

#include <infiniband/verbs.h>

#include "softhca/object/fabric.h"

struct hca_qp;

/* 0, EINVAL, EOPNOTSUPP, or ENOMEM: HCA_MEMBERS_MAX members exist.  Attaching twice is attaching once. */
int hca_mcast_attach(struct ibv_qp *qp, const union ibv_gid *gid);
int hca_mcast_detach(struct ibv_qp *qp, const union ibv_gid *gid);

/* 0; EOPNOTSUPP, and the first time a line on stderr, on a fabric of network interfaces. */
int hca_mcast_check(const struct hca_fabric *f);

/* Is the queue pair a member of any group? */
bool hca_mcast_attached(const struct hca_qp *qp);
/* Detach from all groups. */
void hca_mcast_leave(struct hca_qp *qp);
/* The port of the queue pair has changed. */
void hca_mcast_moved(struct hca_qp *qp);

/* A member as a sender sees it, checked. */
struct hca_member_address {
	uint32_t address, qpn;
};

/* Changes whenever a group changes. */
static inline uint32_t hca_mcast_epoch(const struct hca_fabric *f)
{
	return atomic_load_explicit(&f->shm->member_epoch, memory_order_acquire);
}

/* The members of a group, at most HCA_MEMBERS_MAX; returns their number. */
uint32_t hca_mcast_members(struct hca_fabric *f, const union ibv_gid *gid,
			   struct hca_member_address *list);

#endif
