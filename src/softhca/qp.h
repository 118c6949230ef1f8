/*
 * qp.h - queue pairs.
 *
 * A work request is carried out by the process that posts it, at once if it
 * can be (qp->fast); otherwise it waits in the send queue, in private memory,
 * and the engine comes back to it.  Slots of the send queue are freed as on an
 * adapter: when a later signaled completion has been polled.
 */
#ifndef HCA_QP_H
#define HCA_QP_H

#include <infiniband/verbs.h>

#include "cq.h"
#include "peer.h"

enum {
	HCA_WR_MAX = 1 << 15,		/* per queue */
	HCA_INLINE_GRANT = 8192 + 256,	/* at least, whatever was asked for */
	HCA_INLINE_MAX = 65536,
	HCA_MESSAGE_MAX = 1 << 30,
	HCA_KEYS = 16,			/* registrations of the peer that are remembered */
};

/* The peer's registration behind a key, checked and mapped. */
struct hca_remote_mr {
	uint32_t key;			/* 0: none */
	uint32_t access;
	const _Atomic uint32_t *live;	/* equals key as long as the registration stands */
	uint64_t iova, length;
	uint64_t addr;			/* the peer's address of iova */
	/* Offsets of the part that is mapped here, and our address of its begin. */
	uint64_t mapped, mapped_end;
	unsigned char *base;
};

/*
 * What a queue pair is connected to, with private copies of all shapes.
 * Resolved on first use; again whenever the gate has changed.
 */
struct hca_conn {
	struct hca_shm_qp *shm;		/* the peer's queue pair; NULL: not resolved */
	uint64_t gate;
	struct hca_peer *peer;
	uint32_t pd;
	uint32_t reads;
	unsigned char *rq;
	uint32_t rq_mask, rq_stride, rq_head;
	struct hca_mailbox mailbox;
	struct hca_remote_mr mr[HCA_KEYS];
};

/* Where some bytes are: in this process (here), or only in the peer (there). */
struct hca_span {
	unsigned char *here;
	uint64_t there;
	size_t bytes;
};

/* The message being carried out: its two ends. */
struct hca_message {
	struct hca_span local[HCA_SGE_MAX];
	struct hca_span remote[3 * HCA_SGE_MAX];	/* before, in and behind what is mapped */
	unsigned local_count, remote_count;
	uint32_t bytes, done;
	bool claimed;			/* a receive, at position */
	uint32_t position;
};

struct hca_wqe {
	struct ibv_send_wr wr;		/* its sg_list points into the queue's own memory */
	uint64_t posted_ns;
	uint32_t bytes;
	uint32_t inline_bytes;		/* held in the inline ring */
};

enum hca_wait { HCA_NOT_WAITING, HCA_WAITS_RECEIVE, HCA_WAITS_PEER };

struct hca_sq {
	uint32_t depth, mask;
	uint32_t posted;		/* position of the next to be posted */
	uint32_t next;			/* of the next to be carried out */
	_Atomic uint32_t done;		/* of the oldest whose slot is not free */
	uint32_t sge_max, inline_max;
	struct hca_wqe *wqe;
	struct ibv_sge *sge;		/* sge_max per wqe */
	unsigned char *bytes;		/* ring of inline data */
	size_t bytes_size, bytes_head, bytes_used;

	enum hca_wait wait;
	int tries;			/* left */
	uint64_t deadline_ns;
};

struct hca_rq {
	uint32_t depth, mask, stride, sge_max;
	_Atomic uint32_t posted;
	_Atomic uint32_t done;		/* of the oldest that has not been polled */
	_Atomic uint32_t next;		/* of the oldest not complete; under recv_cq's lock */
	uint64_t *wr_id;
	unsigned char *ring;		/* in the segment */
	uint32_t line;
	uint64_t visible_ns;		/* of the last completion; under recv_cq's lock */
	uint64_t flush_deadline_ns;	/* how long to respect a claim in the error state */
};

struct hca_batch;
struct hca_pace;

struct hca_qp {
	struct ibv_qp_ex ibv;		/* first */
	struct hca_fabric *fabric;
	struct hca_shm_qp *shm;		/* ours */
	struct hca_lock lock;
	bool fast;			/* RTS, untimed, nothing waiting */
	bool signal_all;
	_Atomic int state;		/* enum ibv_qp_state; changes under lock */
	uint32_t index, pd, address, dest_qpn, dest_address;
	struct hca_sq sq;
	struct hca_conn conn;

	struct hca_lock rq_lock;
	struct hca_rq rq;

	struct hca_qp *next;		/* engine's list */
	struct hca_qp *served;		/* while the engine runs: the next it served */
	bool queued;

	struct hca_pace *pace;		/* NULL: untimed */
	struct hca_batch *batch;	/* NULL: created without send_ops_flags */
	uint32_t epoch;
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	struct hca_message message;
};

static inline struct hca_qp *hca_qp_of(struct ibv_qp *qp)
{
	return (struct hca_qp *)(void *)qp;
}

static inline struct hca_cq *hca_send_cq(const struct hca_qp *qp)
{
	return hca_cq_of(qp->ibv.qp_base.send_cq);
}

static inline struct hca_cq *hca_recv_cq(const struct hca_qp *qp)
{
	return hca_cq_of(qp->ibv.qp_base.recv_cq);
}

static inline int hca_qp_state(const struct hca_qp *qp)
{
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline uint32_t hca_qpn(const struct hca_qp *qp)
{
	return qp->ibv.qp_base.qp_num;
}

static inline struct hca_shm_recv *hca_rq_entry(unsigned char *ring, uint32_t position,
						uint32_t mask, uint32_t stride)
{
	return (struct hca_shm_recv *)(void *)(ring + (size_t)(position & mask) * stride);
}

/* ---- qp.c ---------------------------------------------------------------- */

struct ibv_qp *hca_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
struct ibv_qp *hca_qp_create_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *init);
int hca_qp_destroy(struct ibv_qp *qp);
int hca_qp_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int hca_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init);
int hca_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

/* ---- qp_state.c ---------------------------------------------------------- */

/* Is this transition, with these attributes, allowed for this type?  0 or EINVAL. */
int hca_qp_state_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		       int mask);

/* ---- flush.c: the error state -------------------------------------------- */

/* Enter it: nothing comes in any more, everything outstanding is flushed.  qp->lock held. */
void hca_qp_fail(struct hca_qp *qp);
/* The peer has died: its oldest waiting request fails, if there is one.  qp->lock held. */
void hca_sq_died(struct hca_qp *qp);
/* Flush the send queue.  qp->lock held. */
void hca_sq_flush(struct hca_qp *qp);
/*
 * Flush the receive queue.  qp->rq_lock held.  True when receives remain that
 * a peer is just filling: come back later.
 */
bool hca_rq_flush(struct hca_qp *qp);

/* ---- connect.c ----------------------------------------------------------- */

/*
 * Find the peer and open a way to it.  0; -ENOTCONN: not there or not ready
 * for us; -ECONNRESET: its process has died.  qp->lock held.
 */
int hca_conn_resolve(struct hca_qp *qp);
void hca_conn_drop(struct hca_conn *c);

/* The peer's registration behind a key, from its table; NULL: there is none, or another PD's. */
const struct hca_remote_mr *hca_conn_mr(struct hca_conn *c, uint32_t key);

/* ---- post.c, recv.c ------------------------------------------------------ */

int hca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * Post requests that were built one by one (wr.c): all, or none and an errno.
 * qp->lock held.
 */
int hca_post_batch(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t count);

/* ---- wr.c: ibv_wr_* ------------------------------------------------------ */

extern const uint64_t hca_batch_ops;	/* enum ibv_qp_create_send_ops_flags */
int hca_batch_make(struct hca_qp *qp);	/* 0 or ENOMEM */
void hca_batch_free(struct hca_qp *qp);
struct ibv_qp_ex *hca_qp_to_ex(struct ibv_qp *qp);

/* ---- transfer.c ---------------------------------------------------------- */

/*
 * Carry out a work request as far as it goes now.  IBV_WC_SUCCESS; another
 * enum ibv_wc_status: it failed for good; or one of these.  The peer's
 * completion, if any, has been delivered; ours is the caller's business.
 * qp->lock held, qp in a state that sends.
 */
enum {
	HCA_NO_RECEIVE = -1,		/* the peer has posted none */
	HCA_NO_PEER = -2,		/* nobody answers */
	HCA_PEER_DIED = -3,
};
int hca_transfer(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);

/* The same in steps, for messages that take their time (engine.c). */
int hca_transfer_begin(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
/* `held` (may be NULL): the end is held back (held.h); how many of the bytes. */
int hca_transfer_copy(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
		      uint32_t *held);
void hca_transfer_hold(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t held,
		       uint64_t due_ns);
int hca_transfer_end(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns);

/* ---- post.c: the send queue's bookkeeping, for the engine and error.c ---- */

/* Our own completion of a work request at `position`. */
void hca_sq_complete(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t position,
		     uint32_t bytes, int status, uint64_t visible_ns);
/* The request at the head of the queue is over. */
void hca_sq_pop(struct hca_qp *qp);

#endif
