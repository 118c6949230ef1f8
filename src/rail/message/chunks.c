/*
 * chunks.c - chunks under way, at the end that moves them: the sender of a message writes, or
 * its receiver reads, or each does half.
 *
 * Chunks with a rail of their own are posted as the lanes have room, rails in turn.  Pulled
 * chunks wait in one queue.  A lane that has few chunks under way takes the next one, so a
 * rail that is twice as fast takes twice as many.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "rail/message/chunks.h"
#include "util/clock.h"
#include "rail/message/edges.h"
#include "rail/message/landing.h"
#include "rail/lane/lane.h"
#include "rail/message/op_queue.h"
#include "rail/message/parts.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/message/rate_estimate.h"
#include "rail/message/rndv.h"
#include "rail/message/rndv_receive.h"
#include "rail/message/stripe.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"
#include "util/compiler.h"

/*
 * Chunks under way on a lane: two keep it busy.  Where many wait, a lane takes more, or a long
 * wire would run dry between small chunks: a third of the lane's even part of the waiting
 * chunks, so that the excess of a slow rail is soon made up for (guided self-scheduling:
 * Polychronopoulos and Kuck, IEEE Trans. Computers C-36, 1987).  The slower of two rails then
 * has a sixth of all, and is done before the other unless the other is five times as fast.
 */
enum { PULL_OUT = 2, PULL_PART = 3 };

enum { BULK_BATCH = 8 };		/* chunks posted to one peer in one rail_progress */

/* NULL: the policy needs no rates, or the rails have none. */
static struct rail_estimate *estimate_of(const struct op *op)
{
	struct rail_estimate *e = op->rndv_flags & RNDV_READ ? &op->peer->reading : &op->peer->writing;

	return op_is_weighted(op) && !e->unlimited ? e : NULL;
}

/* ---- Posting ------------------------------------------------------------ */

static int request_post(struct op *op, struct rail_lane *lane, struct ibv_send_wr *wr,
			uint32_t bytes)
{
	struct ibv_send_wr *bad;
	int rc;

	wr->wr_id = wr_id(lane->id, WR_CHUNK, 0, 0);
	wr->send_flags = IBV_SEND_SIGNALED;
	rc = ibv_post_send(lane->qp.qp, wr, &bad);
	if (rc)
		return rail_lane_refused(lane, rc);
	lane->sent[lane->sq_posted++ % lane->sq_depth] = (struct rail_sent){ op, bytes };
	lane->ctx->cq_wanted++;
	op->chunks_out++;
	return 0;
}

static int chunk_post(struct op *op, struct rail_lane *lane, const struct rail_stripe *s,
		      uint32_t number, uint64_t now_ns)
{
	struct rail_chunk chunk = rndv_chunk(op, s, number);
	struct rail_estimate *estimate = estimate_of(op);
	bool read = op->rndv_flags & RNDV_READ;
	struct ibv_sge sge = {
		.addr = (uintptr_t)op_data(op) + chunk.offset,
		.length = (uint32_t)chunk.bytes,
		.lkey = op->mr->on[peer_adapter(op->peer, lane->k)]->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = chunk.bytes > 0,
		.opcode = read ? IBV_WR_RDMA_READ : op->rndv_flags & RNDV_CONTROL ? IBV_WR_RDMA_WRITE :
			  IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htonl(rndv_imm(op, number)),
		.wr.rdma = { .remote_addr = op->remote + chunk.offset, .rkey = op->rkey[lane->k] },
	};
	int rc = request_post(op, lane, &wr, sge.length);

	if (rc)
		return rc;
	if (estimate && sge.length) {
		if (lane->ctx->measured++ == 0)
			lane->ctx->looked_ns = now_ns;	/* no completion was missed before */
		rail_estimate_posted(estimate, lane->k, now_ns);
	}
	op->cursor[lane->k]++;
	if (read)
		return 0;
	lane_ledger(lane)->tx_chunks++;
	lane_ledger(lane)->tx_bytes += chunk.bytes;
	return 0;
}

/* A control message after all chunks of rail k: its arrival shows theirs. */
static int control_post(struct op *op, struct rail_lane *lane)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htonl(rndv_imm(op, IMM_CONTROL | (uint32_t)lane->k)),
	};
	int rc = request_post(op, lane, &wr, 0);

	if (!rc)
		op->cursor[lane->k]++;
	return rc;
}

/* The requests of this end in rail k's piece. */
static uint32_t piece_requests(const struct op *op, const struct rail_stripe *s, int k)
{
	uint32_t first;

	return rndv_own_chunks(op, s, k, &first) + (s->piece[k].count && op->rndv_flags & RNDV_CONTROL);
}

static int next_post(struct op *op, struct rail_lane *lane, const struct rail_stripe *s,
		     uint64_t now_ns)
{
	uint32_t first, n = op->cursor[lane->k];

	if (n == rndv_own_chunks(op, s, lane->k, &first))
		return control_post(op, lane);
	return chunk_post(op, lane, s, s->piece[lane->k].first + first + n, now_ns);
}

/*
 * Post as many requests as the lanes take, rails in turn, at most *budget.  True when all
 * requests of op are out.
 */
static bool chunks_post(struct op *op, const struct rail_stripe *s, int *budget)
{
	uint64_t now_ns = estimate_of(op) ? rg_now_ns() : 0;
	bool more, moved;

	do {
		more = moved = false;
		for (int k = 0; k < s->rail_count; k++) {
			struct rail_lane *lane;

			if (op->cursor[k] == piece_requests(op, s, k))
				continue;
			more = true;
			lane = op_lane(op, k, s->piece[k].first + op->cursor[k]);
			if (*budget == 0 || !lane_has_room(lane, 1))
				continue;
			if (next_post(op, lane, s, now_ns))
				return false;
			--*budget;
			moved = true;
		}
	} while (moved);
	return !more;
}

/* Is one request all that moves the message?  So it is with most. */
static bool is_one_chunk(const struct op *op, const struct rail_stripe *s)
{
	return s->chunk_count == 1 && !(op->rndv_flags & (RNDV_BOTH | RNDV_CONTROL));
}

static bool one_chunk_post(struct op *op, const struct rail_stripe *s)
{
	struct rail_lane *lane;
	int k = 0;

	while (!s->piece[k].count)
		k++;
	lane = op_lane(op, k, 0);
	return lane_has_room(lane, 1) && !chunk_post(op, lane, s, 0, estimate_of(op) ? rg_now_ns() : 0);
}

static bool requests_post(struct op *op, const struct rail_stripe *s, int *budget)
{
	return is_one_chunk(op, s) ? one_chunk_post(op, s) : chunks_post(op, s, budget);
}

/* ---- Pulling ------------------------------------------------------------ */

static bool may_pull(const struct rail_peer *peer, const struct rail_lane *lane)
{
	uint32_t lanes = (uint32_t)(peer->rail_count * peer->qps);

	return lane->pulled < PULL_OUT || lane->pulled * lanes * PULL_PART < peer->unpulled;
}

/* The next chunk of the first message that waits, on this lane. */
static bool pull_next(struct rail_peer *peer, struct rail_lane *lane)
{
	struct op *op = peer->pulling.head;
	struct rail_stripe s;

	if (!op || !may_pull(peer, lane) || !lane_has_room(lane, 1))
		return false;
	rndv_plan(op, &s);
	if (chunk_post(op, lane, &s, op->taken, 0))
		return false;
	lane->pulled++;
	peer->unpulled--;
	if (++op->taken == s.chunk_count) {
		queue_pop(&peer->pulling);
		op->stage = STAGE_POSTED;
	}
	return true;
}

/* Each lane gets a chunk in turn, so that all rails are at work before one gets a second. */
static void chunks_pull(struct rail_peer *peer, int *budget)
{
	bool moved;

	do {
		moved = false;
		for (int q = 0; q < peer->qps; q++)
			for (int k = 0; k < peer->rail_count && *budget && !peer->error; k++)
				if (pull_next(peer, peer_bulk(peer, k, q))) {
					--*budget;
					moved = true;
				}
	} while (moved);
}

/* ---- Beginning, going on, ending ---------------------------------------- */

void rndv_chunks_start(struct op *op)
{
	struct rail_peer *peer = op->peer;
	struct rail_stripe s;
	int budget = BULK_BATCH;

	rndv_plan(op, &s);
	/* RNDV_BOTH: the other end's half counts as one. */
	op->chunks_left = (uint8_t)(s.pull ? s.chunk_count : (op->rndv_flags & RNDV_BOTH) != 0);
	memset(op->cursor, 0, sizeof(op->cursor));
	memset(op->carried, 0, sizeof(op->carried));
	for (int k = 0; k < s.rail_count && !s.pull; k++)
		op->chunks_left += (uint8_t)piece_requests(op, &s, k);
	op->taken = op->chunks_out = op->remainder_rail = 0;
	op->stage = STAGE_CUTTING;
	if (s.pull) {
		peer->unpulled += s.chunk_count;
		queue_push(&peer->pulling, op);
		chunks_pull(peer, &budget);
	} else if (!peer->cutting.head && requests_post(op, &s, &budget)) {
		op->stage = STAGE_POSTED;
	} else {
		queue_push(&peer->cutting, op);
	}
	if (peer->pulling.head || peer->cutting.head)
		peer_work(peer);
}

bool rndv_chunks_advance(struct rail_peer *peer)
{
	struct op **at = &peer->cutting.head, *op;
	int budget = BULK_BATCH;
	struct rail_stripe s;

	/*
	 * All operations get a try: the rails of the first may be full, the rails of the next
	 * idle.
	 */
	while ((op = *at) && budget && !peer->error) {
		rndv_plan(op, &s);
		if (!chunks_post(op, &s, &budget)) {
			at = &op->next;
			continue;
		}
		queue_unlink(&peer->cutting, at);
		op->stage = STAGE_POSTED;
	}
	if (peer->pulling.head)
		chunks_pull(peer, &budget);
	return peer->cutting.head || peer->pulling.head;
}

static void queue_fail(struct rail_op_queue *queue)
{
	struct op *op;

	while ((op = queue_pop(queue))) {
		op->stage = STAGE_POSTED;
		if (!op->chunks_out)
			rndv_finish(op, -ECONNRESET);
	}
}

void rndv_chunks_peer_failed(struct rail_peer *peer)
{
	queue_fail(&peer->cutting);
	queue_fail(&peer->pulling);
	queue_fail(&peer->slicing);
}

/* Count the bytes that a read has brought; the FIN tells the sender. */
static void read_landed(struct op *op, const struct rail_lane *lane, uint32_t bytes)
{
	lane_ledger(lane)->rx_chunks++;
	lane_ledger(lane)->rx_bytes += bytes;
	op->carried[lane->k] += bytes / RAIL_STRIPE_ALIGN;
	if (bytes % RAIL_STRIPE_ALIGN)
		op->remainder_rail = (uint8_t)lane->k;
}

static void chunk_measure(struct rail_estimate *estimate, const struct rail_lane *lane,
			  uint32_t bytes)
{
	struct rail_ctx *ctx = lane->ctx;

	if (!ctx->completed_ns)
		ctx->completed_ns = rg_now_ns();
	ctx->measured--;
	rail_estimate_done(estimate, lane->k, ctx->completed_ns, ctx->completed_ns - ctx->looked_ns,
			   bytes);
}

/* The oldest request of a lane is done, or its lane has failed. */
void rail_chunk_sent(struct rail_lane *lane)
{
	const struct rail_sent *sent = &lane->sent[lane->sq_done++ % lane->sq_depth];
	struct op *op = sent->op;
	struct rail_estimate *estimate = estimate_of(op);

	if (estimate && sent->bytes)
		chunk_measure(estimate, lane, sent->bytes);
	if (op_is_pulled(op))
		lane->pulled--;
	op->chunks_out--;
	op->chunks_left--;
	if (unlikely(lane->peer->error)) {
		/* An operation still in a queue, or landing as well, ends with the peer's failure. */
		if (!op->chunks_out && op->stage != STAGE_CUTTING && !rndv_is_landing(op))
			rndv_finish(op, -ECONNRESET);
		return;
	}
	if (op->rndv_flags & RNDV_READ)
		read_landed(op, lane, sent->bytes);
	if (op->chunks_left)
		return;
	if (op->rndv_flags & RNDV_READ)
		rndv_read_done(op);
	else if (!op->parts || !rail_parts_sent(op))
		rndv_finish(op, 0);
}
