/*
 * mcast.h - multicast groups: which UD queue pairs of the fabric are attached
 * to which GID.
 *
 * Their members stand in the fabric segment (hca_shm_member), each entry
 * written by who has claimed it; those of the dead are taken out by whoever
 * finds them.  A datagram to the group goes to every member, the sending queue
 * pair too if it is one, on whichever port and node.
 */
#ifndef HCA_MCAST_H
#define HCA_MCAST_H

#include <infiniband/verbs.h>

#include "object/fabric.h"

struct hca_qp;

/* 0, EINVAL, or ENOMEM: there are HCA_MEMBERS_MAX already.  Twice is once. */
int hca_mcast_attach(struct ibv_qp *qp, const union ibv_gid *gid);
int hca_mcast_detach(struct ibv_qp *qp, const union ibv_gid *gid);

/* Is it a member of any group? */
bool hca_mcast_attached(const struct hca_qp *qp);
/* Out of all groups. */
void hca_mcast_leave(struct hca_qp *qp);
/* Its port has changed. */
void hca_mcast_moved(struct hca_qp *qp);

/* A member as a sender sees it, checked. */
struct hca_member_address {
	uint32_t address, qpn;
};

/* Changes whenever a group does. */
static inline uint32_t hca_mcast_epoch(const struct hca_fabric *f)
{
	return atomic_load_explicit(&f->shm->member_epoch, memory_order_acquire);
}

/* The members of a group, at most HCA_MEMBERS_MAX; how many. */
uint32_t hca_mcast_members(struct hca_fabric *f, const union ibv_gid *gid,
			   struct hca_member_address *list);

#endif
