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

#include "object/cq.h"
#include "model/model.h"
#include "link/memory/peer.h"
#include "object/shared.h"

enum {
	HCA_WR_MAX = 1 << 15,		/* per queue */
	HCA_INLINE_GRANT = 8192 + 256,	/* at least, whatever was asked for */
	HCA_INLINE_MAX = 65536,
	HCA_MESSAGE_MAX = 1 << 30,
	HCA_KEYS = 16,			/* registrations of the peer that are remembered */
	HCA_CHANGES = 100,		/* of one, that we let it have while we look */
};

/* The peer's registration behind a key, checked and mapped. */
struct hca_remote_mr {
	uint32_t key;			/* 0: none, or a window that its peer may take away */
	uint32_t access;
	const _Atomic uint64_t *live;	/* equals stamp as long as the registration stands */
	uint64_t stamp;			/* the lower half is the key */
	uint64_t iova, length;
	uint64_t addr;			/* the peer's address of iova */
	/* Offsets of the part that is mapped here, and our address of its begin. */
	uint64_t mapped, mapped_end;
	unsigned char *base;
	const _Atomic uint64_t *taken;	/* a window: equals stamp when it was taken away; NULL */
};

static inline bool hca_remote_stands(const _Atomic uint64_t *live, const _Atomic uint64_t *taken,
				     uint64_t stamp)
{
	return atomic_load_explicit(live, memory_order_acquire) == stamp &&
	       (!taken || atomic_load_explicit(taken, memory_order_acquire) != stamp);
}

/*
 * The way to one queue pair, with private copies of all shapes.  Resolved on
 * first use; again whenever the gate has changed.
 */
struct hca_conn {
	struct hca_shm_qp *shm;		/* the peer's queue pair; NULL: not resolved */
	uint64_t gate;
	uint32_t address, qpn;		/* of its port, on the fabric; its number */
	struct hca_peer *peer;
	uint32_t pd;
	unsigned char *rq;
	uint32_t rq_mask, rq_stride, rq_head;
	bool gave_up;			/* it lagged behind for too long, having taken so many: */
	uint32_t gave_up_at;
	struct hca_shared_view shared;	/* the same ring, if many take from it */
	uint32_t rq_pd;
	struct hca_remote_mr *rq_mr;	/* of rq_pd: mr, if that is pd */
	struct hca_mailbox mailbox;
	uint64_t cq;			/* where the peer said that it is */
	struct hca_remote_mr mr[HCA_KEYS];
	struct hca_path out, in;	/* timed fabrics: to the peer; from it, for RDMA reads */
};

/* Where some bytes are: in this process (here), or only in the peer (there). */
struct hca_span {
	unsigned char *here;
	uint64_t there;
	size_t bytes;
	uint32_t key;			/* there: of the peer's registration */
};

/* The message being carried out: its two ends. */
struct hca_message {
	struct hca_conn *to;		/* of a connected queue pair always &qp->conn */
	struct hca_span local[1 + HCA_SGE_MAX];
	struct hca_span remote[3 * HCA_SGE_MAX];	/* before, in and behind what is mapped */
	unsigned local_count, remote_count;
	uint32_t bytes, done;
	bool lost;			/* it goes on its way and arrives nowhere */
	bool claimed;			/* a receive */
	uint32_t position;
	struct hca_shm_recv *recv;
	struct hca_shared_claim claim;	/* if it is of a shared queue */
	uint16_t slid;			/* UD: what else the receiver is told */
	uint8_t sl, flags;
	uint64_t lock_holder, lock_since_ns;	/* of an atomic operation: whom it waits for */
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
	uint32_t *room;			/* bytes that each receive takes */
	unsigned char *ring;		/* in the segment */
	uint32_t line;
	uint64_t visible_ns;		/* of the last completion; under recv_cq's lock */
	uint64_t flush_deadline_ns;	/* how long to respect a claim in the error state */
};

struct hca_batch;
struct hca_ud;
struct hca_pace;

struct hca_qp {
	struct ibv_qp_ex ibv;		/* first */
	struct hca_fabric *fabric;
	struct hca_shm_qp *shm;		/* ours */
	struct hca_lock lock;
	bool fast;			/* RTS, untimed, nothing waiting, no fault in the way */
	bool signal_all;
	bool datagram;			/* UD */
	bool last_told;			/* in error, and IBV_EVENT_QP_LAST_WQE_REACHED said */
	bool reliable;			/* RC: acknowledged, tried again, or an error */
	bool listening;			/* RTR: a first message is an event; under engine.lock */
	bool draining;			/* SQD: something is on its way still */
	bool drain_told;		/* its end is an event */
	uint32_t operations;		/* 1 << enum ibv_wr_opcode, of its type */
	_Atomic int state;		/* enum ibv_qp_state; changes under lock */
	uint32_t index, pd, address;
	struct hca_sq sq;
	struct hca_conn conn;		/* whom a connected queue pair is connected to */

	struct hca_lock rq_lock;
	struct hca_rq rq;
	struct hca_shared *shared;	/* receives come from there: an SRQ's, or its own (UD) */

	struct hca_qp *next;		/* engine's list */
	struct hca_qp *served;		/* while the engine runs: the next it served */
	bool queued;
	bool unquiet;			/* a stopped peer may still write to its queues */

	struct hca_pace *pace;		/* NULL: untimed */
	struct hca_ud *ud;		/* NULL: not UD */
	struct hca_batch *batch;	/* NULL: created without send_ops_flags */
	uint64_t rng;			/* state of its random numbers; 0: none drawn yet */
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	struct hca_message message;
};

/* The peer sends something back: counted by max_rd_atomic, waited for by fences. */
static inline bool hca_is_answered(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

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

/* Bytes of a receive queue entry, and how many SGEs it then has room for. */
static inline uint32_t hca_rq_stride(uint32_t sge, uint32_t *sge_max)
{
	const uint32_t one = sizeof(struct hca_shm_sge), head = sizeof(struct hca_shm_recv);
	uint32_t stride = (uint32_t)hca_align_up(head + sge * one, HCA_LINE);

	*sge_max = (stride - head) / one;
	if (*sge_max > HCA_SGE_MAX)
		*sge_max = HCA_SGE_MAX;
	return stride;
}

static inline struct hca_shm_recv *hca_rq_entry(unsigned char *ring, uint32_t position,
						uint32_t mask, uint32_t stride)
{
	return (struct hca_shm_recv *)(void *)(ring + (size_t)(position & mask) * stride);
}

/* Something is sent again, or was refused and will be; qp->lock held. */
void hca_qp_retried(struct hca_qp *qp, uint32_t times);

/* ---- qp.c ---------------------------------------------------------------- */

struct ibv_qp *hca_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
struct ibv_qp *hca_qp_create_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *init);
int hca_qp_destroy(struct ibv_qp *qp);
int hca_qp_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int hca_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init);
int hca_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

/* The receive queue's completion queue has moved: tell peers. */
void hca_qp_tell_cq(struct hca_qp *qp);

/* ---- qp_state.c ---------------------------------------------------------- */

/* Is this transition, with these attributes, allowed for this type?  0 or EINVAL. */
int hca_qp_state_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		       int mask);

/* ---- flush.c: the error state -------------------------------------------- */

/* Enter it: nothing comes in any more, everything outstanding is flushed.  qp->lock held. */
void hca_qp_fail(struct hca_qp *qp);
/*
 * A request has failed on our side or been refused: the error state, or for
 * what is not acknowledged SQE, in which the receive side goes on.  qp->lock held.
 */
void hca_sq_fail(struct hca_qp *qp);
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
 * Find the queue pair c->qpn at c->address and open a way to it.  0; -ENOTCONN:
 * not there or not ready for us; -ECONNRESET: its process has died.  qp->lock held.
 */
int hca_conn_resolve(struct hca_qp *qp, struct hca_conn *c);
/* Where the peer's mailbox is now: 0, or -ENOTCONN. */
int hca_conn_mailbox(struct hca_conn *c, const volatile struct hca_shm_qp *theirs);
void hca_conn_drop(struct hca_conn *c);

/* The peer's registration behind a key, from its table; NULL: there is none, or another PD's. */
const struct hca_remote_mr *hca_conn_mr(struct hca_conn *c, uint32_t key);
/* The same for the buffers of its receives. */
const struct hca_remote_mr *hca_conn_rq_mr(struct hca_conn *c, uint32_t key);

/* ---- post.c, recv.c ------------------------------------------------------ */

int hca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * Post requests that were built one by one (wr.c): all, or none and an errno.
 * qp->lock held.
 */
int hca_post_batch(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t count);

/* A request that is carried out here (mw.h), however it came; qp->lock not held. */
int hca_post_local(struct hca_qp *qp, const struct ibv_send_wr *wr);

/* ---- wr.c: ibv_wr_* ------------------------------------------------------ */

/* What a queue pair of this type may be created with: enum ibv_qp_create_send_ops_flags. */
uint64_t hca_batch_ops(enum ibv_qp_type type);
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
	HCA_BUSY = -4,			/* somebody else is at it: no reason to give up */
};

/*
 * Of a queue pair that is not reliable, what meets an obstacle on its way is
 * lost, and the request a success: none of the negative results, and no remote
 * status.
 */
int hca_transfer(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
/* The same without the short cut for short writes, which knows no loss. */
int hca_transfer_whole(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);

/* The same in steps, for messages that take their time (engine.c). */
int hca_transfer_begin(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
/* `held` (may be NULL): the end is held back (held.h); how many of the bytes. */
int hca_transfer_copy(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
		      uint32_t *held);
void hca_transfer_hold(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t held,
		       uint64_t due_ns);
int hca_transfer_end(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns);
/* The message that was begun, if any, is not going to end: what it has claimed goes back. */
void hca_transfer_drop(struct hca_qp *qp);

/* What a queue pair of this type can be asked for: 1 << enum ibv_wr_opcode; 0: no such type. */
uint32_t hca_operations(enum ibv_qp_type type);

/* ---- post.c: the send queue's bookkeeping, for the engine and flush.c ---- */

/* Our own completion of a work request at `position`. */
void hca_sq_complete(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t position,
		     uint32_t bytes, int status, uint64_t visible_ns);
/* The request at the head of the queue is over. */
void hca_sq_pop(struct hca_qp *qp);

#endif
