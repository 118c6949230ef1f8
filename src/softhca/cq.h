/*
 * cq.h - completions: the mailbox that peers fill, the list of our own.
 *
 * A receive completion comes from the peer's process: it is put into the
 * queue's mailbox, in shared memory.  Send completions and flushes are made in
 * this process and go to a private list.  poll_cq serves both.  On an untimed
 * fabric it hands out what it finds; on a timed one it moves the mailbox into
 * the list, which is then ordered by the time at which entries become visible.
 */
#ifndef HCA_CQ_H
#define HCA_CQ_H

#include <infiniband/verbs.h>

#include "fabric.h"

struct hca_qp;

/* An entry of the private list. */
struct hca_completion {
	uint64_t visible_ns;
	uint64_t order;			/* among entries of one time */
	uint64_t wr_id;
	struct hca_qp *qp;
	uint32_t position;		/* in its send or receive queue */
	uint32_t bytes;
	uint32_t imm;
	uint32_t src_qp;
	uint8_t status, opcode, flags;
	bool receive;
};

/* A mailbox as a producer sees it, with private copies of its shape. */
struct hca_mailbox {
	struct hca_shm_mailbox *shm;
	uint32_t mask;
	unsigned shift;
};

struct hca_cq {
	struct ibv_cq_ex ibv;		/* first */
	struct hca_fabric *fabric;
	struct hca_link link;
	struct hca_lock lock;
	bool timed;
	_Atomic bool overflowed;
	uint32_t polls, idle;		/* all; without success, in a row */
	_Atomic int objects;		/* queue pairs */

	struct hca_mailbox mailbox;
	uint32_t head;			/* next mailbox position to look at */
	uint64_t stuck_ns;		/* since when a claim at stuck_head is not published */
	uint32_t stuck_head;
	uint32_t line;			/* of the mailbox in the heap */

	/* Untimed: a ring, count from first.  Timed: a heap of count. */
	struct hca_completion *list;
	uint32_t first, count, size;
	uint64_t order;
};

static inline struct hca_cq *hca_cq_of(struct ibv_cq *cq)
{
	return (struct hca_cq *)(void *)cq;
}

enum { HCA_CQE_MAX = 1 << 22 };

struct ibv_cq *hca_cq_create(struct ibv_context *c, int entries, void *cq_context,
			     struct ibv_comp_channel *channel, int vector);
int hca_cq_destroy(struct ibv_cq *cq);
int hca_cq_poll(struct ibv_cq *cq, int max, struct ibv_wc *wc);

/*
 * Add an entry made by this process.  0, or -ENOSPC: the queue is full and in
 * error from now on.
 */
int hca_cq_add(struct hca_cq *cq, const struct hca_completion *c);

/* Move what the mailbox holds into the list, so that what is added next comes after it. */
void hca_cq_drain(struct hca_cq *cq);

/* Forget the entries of a queue pair (destroyed or reset). */
void hca_cq_purge(struct hca_cq *cq, const struct hca_qp *qp);

/* ---- The producer's side (mailbox.c) ------------------------------------- */

/*
 * Put an entry (its state is ignored) into a mailbox as the process in `slot`.
 * 0, or -ENOSPC: full.
 */
int hca_mailbox_put(struct hca_mailbox *m, uint32_t slot, const struct hca_shm_cqe *cqe);

static inline size_t hca_mailbox_bytes(uint32_t count)
{
	return sizeof(struct hca_shm_mailbox) + (size_t)count * sizeof(struct hca_shm_cqe);
}

#endif
