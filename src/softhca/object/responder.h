/*
 * responder.h - the responder's half of messages that arrive for queue pairs of this process.
 *
 * A link whose peers are no memory (a stream) carries out here, on the objects of its own process
 * alone, what a peer of link/memory does to them by itself: claim and complete a receive, find the
 * memory that a message names, change a word, report an error.  No peer and no shared memory of
 * another process is involved; keys, work request identifiers and positions are those of private
 * tables.
 *
 * qp->lock is held in all functions, and the queue pair is in a state that receives: RTR, RTS, SQD,
 * SQE.
 *
 * Landings.  Between hca_landing_begin and hca_landing_end a thread accesses memory of the program
 * for a peer: one recv, send or memcpy of bounded length, without locks, allocation and sleep
 * (pages/landing.h).  Addresses are found after the begin, are valid until the end, and are
 * found anew in the next landing: meanwhile a key may have become invalid.
 */
#ifndef HCA_RESPONDER_H
#define HCA_RESPONDER_H

#include <sys/uio.h>

#include "softhca/object/qp.h"
#include "softhca/pages/landing.h"

/* Around every access to memory of the program on behalf of a peer.  May be nested. */
static inline void hca_landing_begin(struct hca_fabric *f)
{
	(void)f;
	hca_landing_enter();
}

static inline void hca_landing_end(struct hca_fabric *f)
{
	(void)f;
	hca_landing_leave();
}

/* Wait until no landing of another thread that began before is in progress. */
static inline void hca_landings_quiesce(struct hca_fabric *f)
{
	(void)f;
	hca_landings_wait();
}

/* ---- Receives ------------------------------------------------------------ */

/* A receive that is claimed for an arriving message.  Zero before the first claim. */
struct hca_arrival {
	uint32_t position;
	struct hca_shm_recv *recv;
	struct hca_shared_claim claim;		/* if the queue is shared */
	bool claimed;
	struct iovec to[HCA_SGE_MAX];		/* hca_arrival_buffers */
	unsigned count;
};

/*
 * Claim the oldest receive: IBV_WC_SUCCESS or HCA_NO_RECEIVE.  A queue pair with a receive queue of
 * its own has one claim at a time; the claim ends by hca_arrival_complete or hca_arrival_release,
 * before the queue pair enters the error state.
 */
int hca_arrival_claim(struct hca_qp *qp, struct hca_arrival *a);

/*
 * Set a->to and a->count to the local addresses of `bytes` of the receive: IBV_WC_SUCCESS, or the
 * requester's status (IBV_WC_REM_OP_ERR, IBV_WC_REM_INV_REQ_ERR) and *theirs, the receive's own.
 * In a landing.
 */
int hca_arrival_buffers(struct hca_qp *qp, struct hca_arrival *a, uint32_t bytes, int *theirs);

/* The claim leads to nothing: the receive is posted again, as the oldest. */
void hca_arrival_release(struct hca_qp *qp, struct hca_arrival *a);

/* Fields of a receive's completion (struct ibv_wc). */
struct hca_arrival_wc {
	int status;			/* enum ibv_wc_status */
	enum ibv_wc_opcode opcode;
	uint32_t bytes, imm, src_qp;	/* imm: or the invalidated key */
	unsigned flags;			/* enum ibv_wc_flags */
	uint16_t slid;
	uint8_t sl;
	bool solicited;
};

/*
 * Complete the claimed receive: 0; -ENOSPC: the completion queue is full, which is reported, and the
 * receive is posted again; -ESTALE: a member of the fabric has overwritten the shared receive queue.
 */
int hca_arrival_complete(struct hca_qp *qp, struct hca_arrival *a, const struct hca_arrival_wc *wc);

/* ---- Memory that the peer names ------------------------------------------ */

/*
 * The local address of a range that a remote request names, if the queue pair, the key and its
 * registration or window allow `need`, one of IBV_ACCESS_REMOTE_*; else NULL and *status
 * (IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR).  bytes == 0: the key is not checked, and the
 * address is any.  In a landing.
 */
unsigned char *hca_remote_address(struct hca_qp *qp, uint32_t rkey, uint64_t addr, uint32_t bytes,
				  unsigned need, int *status);

/*
 * An atomic operation on 8 bytes, atomic with those of requesters on this host; *old: the word
 * before, in this machine's byte order.  IBV_WC_SUCCESS, the requester's status, or HCA_BUSY: once
 * more, later (0.2 ms have passed).  A landing by itself.
 */
int hca_remote_atomic(struct hca_qp *qp, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
		      uint64_t compare_add, uint64_t swap, uint64_t *old);

/* SEND with invalidate: may the peer invalidate this window?  Invalidate it. */
bool hca_window_is_peers(const struct hca_qp *qp, uint32_t rkey);
void hca_window_invalidate(struct hca_qp *qp, uint32_t rkey);

/* ---- Reports ------------------------------------------------------------- */

/* The fault of a request that a responder ends with a completion's status: enum ibv_event_type + 1. */
static inline uint32_t hca_fault_of(int status)
{
	switch (status) {
	case IBV_WC_REM_ACCESS_ERR:
		return IBV_EVENT_QP_ACCESS_ERR + 1;
	case IBV_WC_REM_INV_REQ_ERR:
		return IBV_EVENT_QP_REQ_ERR + 1;
	default:
		return IBV_EVENT_QP_FATAL + 1;
	}
}

/*
 * The queue pair must enter the error state: enum ibv_event_type + 1, or HCA_FAULT_TOLD.  The next
 * turn of the engine does it; threads that wait for an event are woken, except for HCA_FAULT_TOLD.
 */
void hca_qp_report(struct hca_qp *qp, uint32_t why);

/* A message has arrived: the first one in RTR raises IBV_EVENT_COMM_EST. */
void hca_qp_first_arrived(struct hca_qp *qp);

#endif
