/*
 * held.h - for programs that poll memory on a timed fabric: the end of an RDMA
 * write is held back until its time.
 *
 * Data is copied when it leaves, which is earlier than it arrives; whoever
 * waits for a completion does not notice.  Whoever polls the last bytes would:
 * so the last line of a write (without immediate) is kept by the sender and
 * written at the arrival time, by whatever verb the sender calls next, by the
 * attendant if it calls none, or at once by waiting in ibv_post_send if that is
 * short and the sender is not streaming.  Never early, except where later work of the same queue pair
 * depends on it: a message that completes at the receiver, or one that touches
 * the same bytes.
 */
#ifndef HCA_HELD_H
#define HCA_HELD_H

#include "base/layout.h"

struct hca_qp;

enum { HCA_HELD_MAX = 64 };

struct hca_held {
	uint64_t due_ns;
	uint64_t there;			/* the peer's address */
	unsigned char *here;		/* ours; NULL: not mapped */
	const _Atomic uint64_t *live, *taken;	/* of the registration: hca_remote_stands */
	uint64_t stamp;
	uint32_t bytes;
	unsigned char data[HCA_LINE];
};

struct hca_held_list {
	uint32_t first, count;
	uint64_t posted_ns;		/* end of the last post */
	struct hca_held entry[HCA_HELD_MAX];
};

/* How much of the end of the message that is being carried out to hold back; 0: nothing. */
uint32_t hca_held_bytes(const struct hca_qp *qp);

/* Hold back its last `bytes`, an RDMA write's under `key`, until `due_ns`.  Inside a section. */
void hca_held_add(struct hca_qp *qp, uint32_t key, uint32_t bytes, uint64_t due_ns);

/*
 * Must any of it wait, whoever depends on it: has it to go to memory that can be reached
 * in no way just now?  Inside a section.
 */
bool hca_held_waits(const struct hca_qp *qp);

/* Write what is due.  qp->lock held. */
void hca_held_release(struct hca_qp *qp, uint64_t now_ns);

/* Write everything, now.  Inside a section. */
void hca_held_settle(struct hca_qp *qp);

/* The same, if the message that is being carried out touches any of it. */
void hca_held_avoid(struct hca_qp *qp);

/* The end of ibv_post_send: wait for what is due very soon.  qp->lock held. */
void hca_held_linger(struct hca_qp *qp);

#endif
