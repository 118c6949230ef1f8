/*
 * ud.h - datagrams: each message has a destination of its own.
 *
 * A UD queue pair keeps the destinations that it has sent to, at most
 * HCA_DESTINATIONS_MAX, with their connections; after the first message to one only
 * the destination is looked up.  A message that meets an obstacle is lost: no such
 * queue pair, another qkey, no receive, too short a receive (IBTA 9.8.3, class D),
 * a port that is down, a dead process, or more bytes than the MTU (C10-93.1.1).
 *
 * A receiver is a process that may be off its core, and on an untimed fabric no
 * wire limits the rate of a sender.  So a sender waits for a receiver that has been
 * receiving and lags: once, for a second; after that messages are lost until one gets
 * through.
 *
 * In front of the message the receiver finds 40 bytes: the GRH, or for IPv4 the
 * header in the last 20 (as RoCE v2 does); without a GRH they are zero.
 *
 * On a timed fabric a datagram is carried out when it has left, as a whole; a
 * multicast one occupies only the sender's part of the path.
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
/* Forget all destinations. */
void hca_ud_reset(struct hca_qp *qp);
/* Drop the connections to processes that are gone.  qp->lock held. */
void hca_ud_look(struct hca_qp *qp);

/*
 * A datagram on an untimed fabric; or in steps: begin does the work of the local end
 * alone and sets qp->message.to to the destination; end does the rest.  Success,
 * the status of the request, HCA_NO_RECEIVE or HCA_BUSY.  qp->lock held, inside an
 * access section.
 */
int hca_ud_send(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
int hca_ud_begin(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
int hca_ud_end(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns);

#endif
