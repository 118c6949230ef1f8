/*
 * ud.h - datagrams: each message has a destination of its own.
 *
 * A UD queue pair keeps the ways to the destinations that it has sent to, at
 * most HCA_DESTINATIONS_MAX; after the first message to one nothing is looked up but
 * the way itself.  What meets an obstacle is lost: no such queue pair, another
 * qkey, no receive, one that is too short (IBTA 9.8.3, class D), a port that is
 * down, a process that has died; and what is longer than the MTU (C10-93.1.1).
 *
 * A receiver here is a process that may be off its core, and on an untimed
 * fabric no wire keeps a sender from being faster than any.  So a sender waits
 * for one that has been receiving and lags behind: once, for a second;
 * after that messages are lost until one gets through.
 *
 * In front of the message the receiver finds 40 bytes: the GRH, or of IPv4 the
 * header in the last 20 (as RoCE v2 does); without a GRH they are zero.
 *
 * On a timed fabric a datagram is carried out when it has left, as a whole; a
 * multicast one takes only the sender's part of the way.
 */
#ifndef HCA_UD_H
#define HCA_UD_H

#include <infiniband/verbs.h>

struct hca_qp;

enum {
	HCA_DESTINATIONS_MAX = 1024,
};

int hca_ud_make(struct hca_qp *qp);	/* 0 or ENOMEM */
void hca_ud_free(struct hca_qp *qp);
/* Forget all ways. */
void hca_ud_reset(struct hca_qp *qp);
/* Forget those to processes that have gone.  qp->lock held. */
void hca_ud_look(struct hca_qp *qp);

/*
 * A datagram on an untimed fabric; or in steps: what concerns our end alone,
 * after which qp->message.to is the way; and the rest.  Success, or the status
 * of the request, or HCA_NO_RECEIVE.  qp->lock held, inside a section.
 */
int hca_ud_send(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
int hca_ud_begin(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
int hca_ud_end(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns);

#endif
