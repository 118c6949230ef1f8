/* member.h - a process in a seat: its state, for member.c, traffic.c and tell.c. */
#ifndef MEMBER_H
#define MEMBER_H

#include "kill.h"

enum {
	SLOT = 8192,		/* bytes of a main message at most */
	WINDOW = 8,		/* main messages in flight per peer and direction */
	SMALL = 256,		/* bytes of the others at most */
	SHARED_DEPTH = 16,	/* receives of the shared queue: fewer than all could send */
	CHANNEL_DEPTH = 4, LOOSE_DEPTH = 8, UD_DEPTH = 32,
	CHURN = 4096,
	QKEY = 0x11111111,
	HISTORY = 128,		/* completions that are recorded */
};

struct counts {
	uint64_t sent, acked, received;
};

struct link {
	struct end e[KINDS];
	struct counts n[KINDS];
	struct address to;
	struct ibv_ah *ah;
	bool made, connected, alive, expected;
	uint64_t failed_ns;
	enum kind failed_kind;
	enum ibv_wc_status failed_status;
	/* A request at a time: add to this member's word at the peer, add to a shared one, read. */
	bool asked;
	uint64_t asks, adds, others_adds;
	uint64_t ud_seq;
	uint32_t churn_rkey;
	uint64_t churn_addr;
};

/* A completion, and the progress of its link at that time. */
struct note {
	struct ibv_wc wc;
	uint64_t at_ns, sent, received;
	unsigned round;
};

struct member {
	struct side side;
	int me, sock;
	uint32_t incarnation;
	unsigned access;
	struct ibv_cq *cq, *channel_cq;
	struct ibv_srq *srq;
	struct ibv_comp_channel *channel;
	struct ibv_qp *ud;
	struct buffer out, in, small, words, answers, churn;
	struct link link[SEATS];
	uint64_t ud_sent, ud_acked;
	unsigned rounds;
	bool atomics;
	struct note history[HISTORY];
	unsigned noted;
	bool broken;		/* a message was missing: completions are only recorded */

	/* The answer that the parent waits for. */
	enum word_type owed;
	int owed_seat;
	unsigned owed_mask;
	uint64_t deadline_ns;
	uint64_t mark[SEATS][KINDS];
};

/* Post receives that belong to no link: datagrams', the shared queue's. */
void member_receives(struct member *n);
/* Post receives of a link whose queue pairs are in INIT. */
void link_receives(struct member *n, int from);
/* A round: send to each peer that is alive, and check what has arrived. */
void traffic(struct member *n);
/* Print diagnostics to stderr (tell.c). */
void member_tell(const struct member *n);

#endif
