/* cq.h - completion queues. */
#ifndef RAIL_CQ_H
#define RAIL_CQ_H

#include <stdint.h>

struct ibv_cq;
struct rail_ctx;
struct rail_peer;

/* A completion queue of some queue pairs; a peer that does not fit gets another one. */
struct rail_cq {
	struct ibv_cq *cq;
	int adapter;
	uint32_t entries, room;		/* room: those without a queue pair */
};

/* Handle a batch from every completion queue. */
void rail_cq_poll(struct rail_ctx *ctx);
/*
 * Many peers have many queues: handle a batch from one of each adapter and one more, in turn, so that
 * a call costs no more than twice what it does with few peers.
 */
void rail_cq_poll_some(struct rail_ctx *ctx);
/* Take `entries` of a completion queue of that adapter.  0 or -errno after a line. */
int rail_cq_take(struct rail_ctx *ctx, int adapter, uint32_t entries, struct rail_cq **out);
void rail_cq_give(struct rail_cq *cq, uint32_t entries);
void rail_cq_free(struct rail_ctx *ctx);
/* An adapter has failed: requests to the peer over it, without a completion, count as flushed. */
void rail_cq_abandon(struct rail_peer *peer, int adapter);

#endif
