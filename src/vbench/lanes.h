/*
 * lanes.h - the internal interface of src/vbench.
 *
 *	options.c	values, choices, and what does not go together
 *	ends.c		adapters, queue pairs, registrations; connected to the peer's
 *	register.c	registrations through librail's cache
 *	messages.c	groups: posted, complete, arrived
 *	compute.c	computation while messages are under way
 *	host.c		time in calls, without waiting
 *	die.c		the end of a job that cannot go on
 *	batch.c		before and after a batch of runs: receives, lost messages, the ledger
 */
#ifndef VBENCH_LANES_H
#define VBENCH_LANES_H

#include "mpi/railmpi.h"
#include "vbench/vbench.h"
#include "verbs/vrb.h"

enum { GROUPS_OUT = 4 };		/* groups under way at most; a power of two */
#define LOSS_WAIT_NS UINT64_C(500000000)
#define REPLY_WAIT_NS (3 * LOSS_WAIT_NS)	/* for a receiver that waits */

#define VB_NO_LAST_BYTE "an adapter does not promise that the last byte of a write lands last"

/* A queue pair. */
struct vb_lane {
	struct vrb_qp qp;
	struct vrb_address theirs;
	int turn;			/* index among queue pairs to the peer */
	uint64_t peer_sbuf, peer_rbuf;	/* the peer's buffers */
	uint32_t their_skey, their_rkey;
	/* The current batch: this lane's part of the buffers on both sides, and its receives. */
	unsigned char *sbuf, *rbuf;
	uint64_t their_sbuf, their_rbuf;
	uint64_t posted, taken, total;
	/*
	 * A piece to post; wr[1]: the last of a group.  from, to: addresses of a message at place
	 * 0.
	 */
	struct ibv_sge piece;
	struct ibv_send_wr wr[2];
	uint64_t from, to;
};

struct vb_rail {
	const struct vrb_port *port;
	struct vrb_adapter adapter;
	struct vrb_cq send, recv;
	struct vb_lane *lane;		/* lanes to the first peer, then to the next */
	struct ibv_mr *smr, *rmr, *aside;
	struct rail_ledger ledger;
	/* The current batch: this rail's piece of each message. */
	size_t at, bytes;
	uint64_t arrived;
	/*
	 * Requests posted after each piece, and after the last piece of a group: NULL, or control.
	 */
	struct ibv_send_wr *after[2], control[2];
	struct ibv_sge word;
};

/* When a receive of the peer completes; NOTICE_CONTROL: by a separate message after each piece. */
enum vb_notice { NOTICE_NONE, NOTICE_LAST, NOTICE_EACH, NOTICE_CONTROL };

/* Memory that holds no data: headers of datagrams, a control message to send, one received. */
enum {
	CONTROL_BYTES = 8, ASIDE_OUT = VRB_GRH_BYTES, ASIDE_IN = ASIDE_OUT + CONTROL_BYTES,
	ASIDE_BYTES = ASIDE_IN + CONTROL_BYTES,
};

/* Rails first to last - 1. */
struct vb_span { int first, last; };

struct vb {
	int rails;
	struct vb_rail rail[RAILMPI_RAILS_MAX];
	int open_qps, window;		/* queue pairs on each rail to each peer */
	int open_lanes;			/* lanes on each rail to all peers */
	int qps;			/* queue pairs in use */
	uint32_t send_depth, recv_depth;	/* requests of each queue pair */
	bool ends_last;			/* everywhere: memory may be polled for the last byte */
	uint32_t inline_bytes;			/* messages up to this size are inline */
	/* If messages can be lost: the block of the group in the i-th place, -1: none. */
	int *place, places;

	/* The current batch. */
	struct vb_span out, in;		/* rails that this rank posts to, and receives from */
	int width;			/* rails of out or in: pieces of a message */
	enum vb_notice notice;
	unsigned last_flags;		/* flags of a group's last piece on a queue pair */
	/* Results of the options, computed once. */
	void (*run)(struct bench *b);
	bool active, target, replies_wanted, apart, one_sided, registers;
	bool in_memory, sleeps;		/* how arrivals are found */
	bool names_memory;		/* requests have the peer's addresses */
	int peers;
	/* For each peer: messages of a group; queue pairs that a group uses on each rail. */
	int group, lanes;
	int events;			/* events per group, at its sender or its receiver */
	uint64_t pieces;		/* pieces of a group to all peers */
	uint64_t groups;		/* groups that each active side posts */
	uint64_t posted, completed, arrived;	/* groups; arrived: whole, or with losses */
	int done[GROUPS_OUT], noticed[GROUPS_OUT];	/* events so far of each group */
	uint64_t messages;		/* pieces that have arrived */
	uint64_t replies, replies_out;	/* replies received; replies posted and incomplete */
	uint64_t reply;			/* group of the last reply, by GROUP_MASK */
	/*
	 * Atomics: the peer's value, as this side computes it; this side's value at the beginning.
	 */
	uint64_t word, own_word;
	/*
	 * Memory: the last byte of rbuf at the beginning; the last byte of the last message posted.
	 */
	unsigned char before, stamp;
};
extern struct vb vb;

static inline bool vb_may_lose(void)
{
	return vbench.transport != VBENCH_RC;
}

static inline struct vb_lane *vb_lane(const struct vb_rail *r, int peer, int turn)
{
	return &r->lane[peer * vb.open_qps + turn];
}

static inline bool vb_is_atomic(void)
{
	return vbench.op == VBENCH_FADD || vbench.op == VBENCH_CSWAP;
}

#endif
