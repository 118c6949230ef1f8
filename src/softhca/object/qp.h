/*
 * qp.h - queue pairs.
 *
 * The process that posts a work request carries it out, immediately if possible
 * (qp->fast).  Otherwise the request waits in the send queue, in private memory,
 * and the engine carries it out later.  As on an adapter, a send queue slot is
 * freed when a later signaled completion has been polled.
 */
#ifndef HCA_QP_H
#define HCA_QP_H

#include <infiniband/verbs.h>

#include "softhca/model/model.h"
#include "softhca/object/atomics.h"
#include "softhca/object/cq.h"
#include "softhca/object/deferred.h"
#include "softhca/object/link.h"
#include "softhca/object/shared.h"

enum {
	HCA_INLINE_GRANT = 8192 + 256,	/* at least, whatever was requested */
	HCA_MESSAGE_MAX = 1 << 30,
	HCA_KEYS = 16,			/* cached registrations of the peer */
	HCA_CHANGES = 100,		/* tolerated in a registration during one lookup */
	/* Datagrams. */
	HCA_ANY_SENDER = 1 << 24,		/* in an accept token: no connection is needed */
	HCA_QKEY_PRIVILEGED = INT32_MIN,	/* in a request: the queue pair's own instead */
	HCA_QPN_MULTICAST = 0xffffff,
};

/* The peer's registration of a key, checked and mapped. */
struct hca_remote_mr {
	uint32_t key;			/* 0: none, or a window that its peer may invalidate */
	uint32_t access;
	const _Atomic uint64_t *live;	/* equals stamp while the registration is valid */
	uint64_t stamp;			/* the lower half is the key */
	uint64_t iova, length;
	uint64_t addr;			/* the peer's address of iova */
	/* Offsets of the part that is mapped locally, and the local address of its begin. */
	uint64_t mapped, mapped_end;
	unsigned char *base;
	const _Atomic uint64_t *invalidated;	/* a window: equals stamp once invalidated; NULL */
};

static inline bool hca_remote_is_valid(const _Atomic uint64_t *live,
				       const _Atomic uint64_t *invalidated, uint64_t stamp)
{
	return atomic_load_explicit(live, memory_order_acquire) == stamp &&
	       (!invalidated || atomic_load_explicit(invalidated, memory_order_acquire) != stamp);
}

/*
 * The path to one queue pair, with private copies of all sizes and offsets.
 * Resolved on first use, and again when the accept token has changed.
 */
struct hca_conn {
	struct hca_shm_qp *shm;		/* the peer's queue pair; NULL: not resolved */
	uint64_t accept;
	uint32_t address, qpn;		/* the peer's port on the fabric; its number */
	struct hca_peer *peer;
	uint32_t pd;
	unsigned char *rq;
	uint32_t rq_mask, rq_stride, rq_head;
	bool gave_up;			/* the receiver lagged too long; receives claimed then: */
	uint32_t gave_up_at;
	struct hca_shared_view shared;	/* the same ring, if it is shared */
	uint32_t rq_pd;
	struct hca_remote_mr *rq_mr;	/* rq_pd's cache: mr, if rq_pd is pd */
	struct hca_mailbox mailbox;
	uint64_t cq;			/* the mailbox's location, as last published by the peer */
	struct hca_remote_mr mr[HCA_KEYS];
	struct hca_path out, in;	/* timed fabrics: to the peer; from it, for RDMA reads */
};

/* Location of some bytes: in this process (local), or only in the peer (remote). */
struct hca_span {
	unsigned char *local;
	uint64_t remote;
	size_t bytes;
	uint32_t key;			/* remote: the peer's registration's */
};

/* The message being carried out: its two ends. */
struct hca_message {
	struct hca_conn *to;		/* a connected queue pair's: always &qp->conn */
	struct hca_span local[1 + HCA_SGE_MAX];
	struct hca_span remote[3 * HCA_SGE_MAX];	/* before, in and after the mapped part */
	unsigned local_count, remote_count;
	uint32_t bytes, done;
	bool lost;			/* the message is sent and does not arrive */
	bool claimed;			/* a receive is claimed */
	uint32_t position;
	struct hca_shm_recv *recv;
	struct hca_shared_claim claim;	/* if the queue is shared */
	uint16_t slid;			/* UD: further fields of the completion */
	uint8_t sl, flags;
	struct hca_atomic_wait wait;	/* an atomic operation's, for the lock */
};

struct hca_wqe {
	struct ibv_send_wr wr;		/* sg_list points into the queue's own memory */
	uint64_t posted_ns;
	uint32_t bytes;
	uint32_t inline_bytes;		/* held in the inline ring */
	bool over;			/* carried out while earlier ones are under way */
};

enum hca_wait { HCA_NOT_WAITING, HCA_WAITS_RECEIVE, HCA_WAITS_PEER };

struct hca_sq {
	uint32_t depth, mask;
	uint32_t posted;		/* position of the next to be posted */
	_Atomic uint32_t done;		/* position of the oldest whose slot is not free */
	uint32_t next;			/* position of the next to be carried out or handed over */
	uint32_t sge_max, inline_max;
	uint32_t short_max;		/* longest inline RDMA write of one piece; 0: none is allowed */
	struct hca_wqe *wqe;
	struct ibv_sge *sge;		/* sge_max per wqe */
	unsigned char *bytes;		/* ring of inline data */
	size_t bytes_size, bytes_head, bytes_used;

	enum hca_wait wait;
	int tries;			/* left */
	uint64_t deadline_ns;

	/* A wire's. */
	uint32_t under_way;		/* handed over, not ended: positions [next - under_way, next) */
	uint32_t answers;		/* READs and atomics among them */
	uint32_t begun;			/* position after the last one that was ever handed over */
	bool blocked;			/* HCA_LATER: until the link resumes */
	uint64_t again_ns;		/* a retry: nothing is handed over before; 0: no limit */
};

/* Position of the oldest request that is not over. */
static inline uint32_t hca_sq_oldest(const struct hca_sq *sq)
{
	return sq->next - sq->under_way;
}

struct hca_rq {
	uint32_t depth, mask, stride, sge_max;
	_Atomic uint32_t posted;
	_Atomic uint32_t done;		/* position of the oldest that has not been polled */
	_Atomic uint32_t next;		/* position of the oldest not complete; under recv_cq's lock */
	uint64_t *wr_id;
	uint32_t *room;			/* bytes that each can receive */
	unsigned char *ring;		/* in the segment */
	uint32_t line;
	uint64_t visible_ns;		/* the last completion's; under recv_cq's lock */
	uint64_t flush_deadline_ns;	/* error state: claims are respected until then */
};

struct hca_batch;
struct hca_pace;
struct hca_peer;
struct hca_ud;
struct hca_wire_qp;

struct hca_qp {
	struct ibv_qp_ex ibv;		/* first */
	struct hca_fabric *fabric;
	const struct hca_link_operations *link;	/* chosen when it is connected (link.h) */
	struct hca_shm_qp *shm;		/* in this process's segment */
	struct hca_lock lock;
	bool fast;			/* RTS, untimed, nothing waiting, path clear */
	bool signal_all;
	bool late;			/* messages land at the peer from their end on */
	bool datagram;			/* UD */
	bool last_told;			/* in error, IBV_EVENT_QP_LAST_WQE_REACHED raised */
	bool reliable;			/* RC: acknowledged, retried, or an error */
	bool listening;			/* RTR: first message raises an event; under fabric.life */
	bool draining;			/* SQD: something is still in flight */
	bool drain_told;		/* the end of draining raises an event */
	uint32_t operations;		/* allowed for its type: 1 << enum ibv_wr_opcode */
	_Atomic int state;		/* enum ibv_qp_state; changes under lock */
	uint32_t index, pd, address;
	struct hca_sq sq;
	struct hca_conn conn;		/* a connected queue pair's, to its peer */

	struct hca_lock rq_lock;
	struct hca_rq rq;
	struct hca_shared *shared;	/* source of receives: an SRQ's, or its own (UD) */

	struct hca_qp *next;		/* engine's list */
	struct hca_qp *served;		/* while the engine runs: the next one that it has served */
	bool queued;
	bool unquiet;			/* a stopped peer may still write to its queues */

	struct hca_pace *pace;		/* NULL: untimed */
	struct hca_deferred_list *deferred;	/* NULL: untimed */
	struct hca_ud *ud;		/* NULL: not UD */
	struct hca_wire_qp *wire;	/* private to the wire; NULL: none */
	struct hca_batch *batch;	/* NULL: created without send_ops_flags */
	uint64_t rng;			/* state of its random numbers; 0: none drawn yet */
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	struct hca_message message;
	struct hca_atomic_wait peer_wait;	/* the peer's atomic operation's (responder.h) */
};

/* The peer sends data back: counted by max_rd_atomic, waited for by fences. */
static inline bool hca_is_answered(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static inline bool hca_is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static inline struct hca_qp *hca_qp_of(struct ibv_qp *qp)
{
	return (struct hca_qp *)(void *)qp;
}

/*
 * Does a completion tell of a write whose end cannot be written yet, or of a later one?  The
 * memory is being moved, which may take longer than the acknowledgement does.
 */
static inline bool hca_is_held(const struct hca_completion *c)
{
	const struct hca_deferred_list *l = c->qp->deferred;

	return l && !c->receive && atomic_load_explicit(&l->held, memory_order_acquire);
}

/* The link before it is connected. */
static inline const struct hca_link_operations *hca_qp_first_link(const struct hca_qp *qp)
{
	return qp->fabric->wire && qp->datagram ? qp->fabric->wire : qp->fabric->link;
}

/* No peer may begin a message from here on, or reads its description as valid. */
static inline void hca_qp_withdraw(struct hca_qp *qp)
{
	atomic_store_explicit(&qp->shm->accept, 0, memory_order_release);
}

/* Requests go by the wire: they end later than they are handed over. */
static inline bool hca_qp_on_wire(const struct hca_qp *qp)
{
	return qp->link != qp->fabric->link;
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

/* Bytes of a receive queue entry; *sge_max: SGEs that fit into it. */
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

/* ---- qp.c ---------------------------------------------------------------- */

/* Create a queue pair with its queues, in RESET, without a number: 0, or an errno value. */
int hca_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr *init, struct hca_qp **out);
/* Undo hca_qp_new; nothing refers to the queue pair now. */
void hca_qp_free(struct hca_qp *qp);
/* Claim an index in the process's table and a number on the fabric: 0 or ENOMEM. */
int hca_qp_claim_index(struct hca_qp *qp);
/* Publish the values that peers need.  fabric.life held. */
void hca_qp_publish(struct hca_qp *qp);
/* The mailbox of the receive completion queue has moved: publish its location. */
void hca_qp_tell_cq(struct hca_qp *qp);

/* Check attribute values: 0 or EINVAL; set them. */
int hca_qp_check_values(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask);
void hca_qp_apply(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask);

/* The P_Key of its index; 0: none yet. */
uint16_t hca_qp_pkey(const struct hca_qp *qp);

int hca_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

/* ---- qp_state.c ---------------------------------------------------------- */

/* Is the transition, with these attributes, allowed for this type?  0 or EINVAL. */
int hca_qp_state_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		       int mask);
/* Operations of a queue pair type: 1 << enum ibv_wr_opcode; 0: no such type. */
uint32_t hca_operations(enum ibv_qp_type type);

#endif
