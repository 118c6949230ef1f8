/*
 * steps.h - the steps of a message, for the code that carries out work requests
 * (transfer.c, ud.c).  The steps work on qp->message, whose `to` is set; qp->lock held, inside an
 * access section.
 */
#ifndef HCA_STEPS_H
#define HCA_STEPS_H

#include "softhca/object/qp.h"

/* Is the connection resolved, and the peer's accept token unchanged? */
static inline bool hca_conn_is_valid(const struct hca_conn *c)
{
	return likely(c->shm && atomic_load_explicit(&c->shm->accept, memory_order_acquire) ==
					    c->accept);
}

static inline bool hca_takes_receive(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM ||
	       op == IBV_WR_RDMA_WRITE_WITH_IMM || op == IBV_WR_SEND_WITH_INV;
}

/* May a program poll for its last bytes, because no completion reports it to the peer? */
static inline bool hca_is_polled_for(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_WRITE;
}

static inline bool hca_is_send(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV;
}

/* Check that the registration allows the range; *offset: its begin.  NULL: refused. */
static inline const struct hca_remote_mr *hca_remote_range(const struct hca_remote_mr *mr,
							   uint64_t addr, uint32_t bytes,
							   unsigned need, uint64_t *offset)
{
	if (!mr || (mr->access & need) != need)
		return NULL;
	*offset = addr - mr->iova;
	if (*offset > mr->length || bytes > mr->length - *offset)
		return NULL;
	return mr;
}

static inline bool hca_remote_mapped(const struct hca_remote_mr *mr, uint64_t offset,
				     uint32_t bytes)
{
	return offset >= mr->mapped && offset + bytes <= mr->mapped_end;
}

/* The local end, from local[first] on: success or IBV_WC_LOC_PROT_ERR. */
int hca_gather_local(struct hca_qp *qp, const struct ibv_send_wr *wr, unsigned first);

/*
 * RDMA: check the range that the request names: success, or the status of the
 * request.  An empty range is not checked.
 */
int hca_find_range(struct hca_qp *qp, const struct ibv_send_wr *wr);

/* Claim the peer's next receive: success or HCA_NO_RECEIVE. */
int hca_claim_receive(struct hca_qp *qp);
/*
 * An unreliable message that finds no receive is lost.  But a receiver is a process
 * that may be off its core: a sender waits, a second at most, for a receiver that has
 * been receiving and lags, or that has yet to copy by itself.
 * hca_receiver_may_catch_up: is a wait worthwhile after a failure for this reason?
 * hca_wait_for_receiver: begin or continue the wait; false: this message has waited long
 * enough.
 */
bool hca_receiver_may_catch_up(const struct hca_qp *qp, int why);
bool hca_wait_for_receiver(struct hca_qp *qp);
/* The message is dropped: release the receive that it has claimed. */
void hca_release_receive(struct hca_qp *qp);

/*
 * The buffers of the claimed receive, as far as message.bytes needs them: success,
 * or the status of the request; *their_status: the status of the receive.
 */
int hca_find_buffers(struct hca_qp *qp, int *their_status);

/* Complete the receive: 0; -ENOSPC: the peer's queue is full; -ENOTCONN: its mailbox is gone. */
int hca_complete_receive(struct hca_qp *qp, const struct ibv_send_wr *wr, int status,
			 uint64_t visible_ns);

/*
 * Report an error to the peer's queue pair, which must enter the error state.  `why`:
 * enum ibv_event_type + 1, or HCA_FAULT_TOLD.
 */
void hca_report_qp_error(struct hca_conn *c, uint32_t why);

#endif
