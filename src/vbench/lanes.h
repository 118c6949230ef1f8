/*
 * lanes.h - the internal interface of src/vbench.
 *
 *	options.c	values, choices, and what does not go together
 *	ends.c		adapters, queue pairs, registrations; connected to the peer's
 *	register.c	registrations through librail's cache
 *	messages.c	groups: posted, complete, arrived
 *	compute.c	computation while messages are under way
 *	host.c		time in calls, without waiting
 *	batch.c		before and behind some runs: receives, what was lost, the ledger
 */
#ifndef VBENCH_LANES_H
#define VBENCH_LANES_H

#include "mpi/railmpi.h"
#include "vbench/vbench.h"
#include "verbs/vrb.h"

enum { GROUPS_OUT = 4 };		/* groups under way at most; a power of two */
#define LOSS_WAIT_NS UINT64_C(500000000)
#define REPLY_WAIT_NS (3 * LOSS_WAIT_NS)	/* for a receiver that waits */

/* One queue pair. */
struct vb_lane {
	struct vrb_qp qp;
	struct vrb_address theirs;
	int turn;			/* among those to the same peer */
	uint64_t peer_sbuf, peer_rbuf;	/* its buffers */
	uint32_t their_skey, their_rkey;
	/* Of the current batch: its own part of the buffers on both sides, and its receives. */
	unsigned char *sbuf, *rbuf;
	uint64_t their_sbuf, their_rbuf;
	uint64_t posted, taken, total;
	/* A piece as it is posted; [1]: the last of a group.  from, to: of a message at place 0. */
	struct ibv_sge piece;
	struct ibv_send_wr wr[2];
	uint64_t from, to;
};

struct vb_rail {
	const struct vrb_port *port;
	struct vrb_adapter adapter;
	struct vrb_cq send, recv;
	struct vb_lane *lane;		/* those to the first peer, then to the next */
	struct ibv_mr *smr, *rmr, *aside;
	struct railmpi_ledger ledger;
	/* Of the current batch: this rail's piece of each message. */
	size_t at, bytes;
	uint64_t arrived;
	/* What is posted behind each piece, and behind the last of a group: NULL, or control. */
	struct ibv_send_wr *behind[2], control[2];
	struct ibv_sge word;
};

/* When a receive of the peer completes; NOTICE_CONTROL: by a message of its own behind each piece. */
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
	int open_qps, window;		/* queue pairs that there are, on each rail to each peer */
	int open_lanes;			/* on each rail, to all peers */
	int qps;			/* that are used */
	uint32_t send_depth, recv_depth;	/* of each queue pair */
	uint32_t inline_bytes;			/* messages up to this size are inline */
	/* Block of the group that the i-th place holds, -1: none; where messages can be lost. */
	int *place, places;

	/* The current batch. */
	struct vb_span out, in;		/* rails that this rank posts to, and receives from */
	int width;			/* of either: pieces of a message */
	enum vb_notice notice;
	unsigned last_flags;		/* of the last piece of a group on a queue pair */
	/* What the options come to, asked once. */
	void (*run)(struct bench *b);
	bool active, target, replies_wanted, apart, one_sided, registers;
	bool in_memory, sleeps;		/* how arrivals are found */
	bool names_memory;		/* requests have the peer's addresses */
	int peers;
	/* To each peer: messages of a group; queue pairs that it uses, on each rail. */
	int group, lanes;
	int events;			/* that tell of a group, at its sender or its receiver */
	uint64_t pieces;		/* of a group, to all peers */
	uint64_t groups;		/* that each active side posts */
	uint64_t posted, completed, arrived;	/* groups; arrived: whole, or as far as it will */
	int done[GROUPS_OUT], noticed[GROUPS_OUT];	/* of each: events that have come */
	uint64_t messages;		/* pieces that have arrived */
	uint64_t replies, replies_out;	/* that have come; that are posted and incomplete */
	uint64_t reply;			/* the group of the last one, of GROUP_MASK */
	/* Atomics: the peer's value, as this side knows it; its own at the beginning. */
	uint64_t word, own_word;
	/* Memory: the last byte of rbuf at the beginning; that of the last message posted. */
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
