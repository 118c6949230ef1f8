/*
 * landing.c - receives on the bulk lanes, and chunks that land.
 *
 * An immediate takes a posted receive.  The receiver cannot know which one: with `pull` the
 * sender alone knows the rail of a chunk.  So every bulk lane holds receives from the
 * beginning, and they are posted again in small batches.  Receives are promised, not assigned: a
 * message gets its CTS when each lane has as many unpromised receives as the message may take
 * there.  So a chunk always finds a receive.  A promise that has lost its use, because the chunk
 * came on another lane, is free at once.
 */
#include <errno.h>
#include <string.h>

#include "rail/lane/eager_lane.h"
#include "rail/message/edges.h"
#include "rail/message/foreign_writes.h"
#include "rail/message/landing.h"
#include "rail/lane/lane.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/parts.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/message/rndv.h"
#include "rail/message/rndv_receive.h"
#include "rail/message/stripe.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"

enum {
	RECEIVES_CHAIN = 32,		/* posted in one call */
	RECEIVES_BATCH = 8,		/* posted again when so many have been taken */
};

/* ---- Receives ----------------------------------------------------------- */

static int receives_post(struct rail_lane *lane, uint32_t count)
{
	struct ibv_recv_wr *bad, wr[RECEIVES_CHAIN];
	int rc;

	for (uint32_t i = 0; i < count; i++)
		wr[i] = (struct ibv_recv_wr){
			.wr_id = wr_id(lane->id, WR_LANDING, 0, 0),
			.next = i + 1 < count ? &wr[i + 1] : NULL,
		};
	rc = ibv_post_recv(lane->qp.qp, wr, &bad);
	if (!rc)
		lane->rq_free += count;
	return rc;
}

int rail_receives_start(struct rail_lane *lane)
{
	uint32_t left = lane->ctx->bulk_depth;
	int rc = 0;

	for (uint32_t n; left && !rc; left -= n) {
		n = left < RECEIVES_CHAIN ? left : RECEIVES_CHAIN;
		rc = receives_post(lane, n);
	}
	return rc > 0 ? -rc : rc;
}

static void receives_renew(struct rail_lane *lane)
{
	while (lane->rq_owed && !lane->peer->error) {
		uint32_t n = lane->rq_owed < RECEIVES_CHAIN ? lane->rq_owed : RECEIVES_CHAIN;
		int rc = receives_post(lane, n);

		lane->rq_owed -= n;
		if (rc)
			rail_lane_refused(lane, rc);
	}
}

/* ---- Landings ----------------------------------------------------------- */

/* The number of receives that op may take on lane q of rail k. */
static uint32_t receives_needed(const struct op *op, const struct rail_stripe *s, int k, int q)
{
	if (s->pull)
		return s->chunk_count;
	if (op->rndv_flags & RNDV_CONTROL)
		return s->piece[k].count && peer_bulk(op->peer, k, q) == op_lane(op, k, 0);
	return chunks_of_lane(op, q, s->piece[k].first, rndv_written(op, s, k));
}

static bool lane_can_promise(struct rail_lane *lane, uint32_t count)
{
	if (lane->rq_free < count)
		receives_renew(lane);
	return lane->rq_free >= count;
}

/* RNDV_BOTH: the chunks that the sender writes. */
static uint64_t written_chunks(const struct op *op, const struct rail_stripe *s)
{
	uint64_t chunks = 0;

	for (int k = 0; k < s->rail_count; k++)
		for (uint32_t n = 0; n < rndv_written(op, s, k); n++)
			chunks |= (uint64_t)1 << (s->piece[k].first + n);
	return chunks;
}

/* The completions that end a landing, one bit each. */
static uint64_t completions_of(const struct op *op, const struct rail_stripe *s)
{
	uint64_t rails = 0;

	if (op->rndv_flags & RNDV_BOTH)
		return written_chunks(op, s);
	if (!(op->rndv_flags & RNDV_CONTROL))
		return ~(uint64_t)0 >> (RAIL_CHUNKS_MAX - s->chunk_count);
	for (int k = 0; k < RAIL_MAX; k++)
		if (k < s->rail_count && s->piece[k].count)
			rails |= (uint64_t)1 << k;
	return rails;
}

/* Promise the receives of op's chunks, and find the completions that end it. */
static bool receives_promise(const struct op *op, uint64_t *completions)
{
	struct rail_peer *peer = op->peer;
	struct rail_stripe s;

	rndv_plan(op, &s);
	for (int k = 0; k < s.rail_count; k++)
		for (int q = 0; q < peer->qps; q++)
			if (!lane_can_promise(peer_bulk(peer, k, q), receives_needed(op, &s, k, q)))
				return false;
	for (int k = 0; k < s.rail_count; k++)
		for (int q = 0; q < peer->qps; q++)
			peer_bulk(peer, k, q)->rq_free -= receives_needed(op, &s, k, q);
	*completions = completions_of(op, &s);
	return true;
}

/* Slices take no receive. */
bool rndv_landing_take(struct op *op)
{
	struct rail_peer *peer = op->peer;
	struct rail_landing *landing;
	uint64_t missing = 0;

	if (peer->landings_used == LANDINGS)
		return false;
	if (!(op->rndv_flags & RNDV_RING) && !receives_promise(op, &missing))
		return false;
	op->slot = peer->landing_free;
	landing = &peer->landing[op->slot];
	peer->landing_free = landing->next_free;
	peer->landings_used++;
	landing->op = op;
	landing->missing = missing;
	op->generation = landing->generation;
	peer->ctx->cq_wanted += (uint32_t)__builtin_popcountll(missing);
	return true;
}

static void landing_end(struct rail_peer *peer, uint32_t slot)
{
	struct rail_landing *landing = &peer->landing[slot];

	landing->op = NULL;
	landing->generation++;
	landing->next_free = peer->landing_free;
	peer->landing_free = (uint8_t)slot;
	peer->landings_used--;
}

bool rndv_is_landing(const struct op *op)
{
	return rndv_reads_half(op) && op->peer->landing[op->slot].op == op;
}

void rndv_landings_peer_failed(struct rail_peer *peer)
{
	for (uint32_t i = 0; i < LANDINGS; i++) {
		struct op *op = peer->landing[i].op;

		if (!op)
			continue;
		peer->ctx->cq_wanted -= (uint32_t)__builtin_popcountll(peer->landing[i].missing);
		landing_end(peer, i);
		/* RNDV_BOTH: an operation that reads ends with its last chunk, or in the queue. */
		if (!(op->rndv_flags & RNDV_BOTH) || op->stage == STAGE_CTS ||
		    (op->stage == STAGE_POSTED && !op->chunks_out))
			rndv_finish(op, -ECONNRESET);
	}
}

/* ---- Chunks that land --------------------------------------------------- */

/* A piece of the landing has come.  End the landing if nothing is missing. */
static void landing_check(struct rail_peer *peer, uint32_t slot)
{
	struct op *op = peer->landing[slot].op;

	if (peer->landing[slot].missing || op->edges)
		return;
	landing_end(peer, slot);
	foreign_writes_tell(op->buf.addr, op->bytes);
	if (!(op->rndv_flags & RNDV_BOTH))
		rndv_written_done(op);
	else if (--op->chunks_left == 0)
		rndv_read_done(op);
}

/* A pulled chunk has taken a promised receive: every other lane gets one promise back. */
static void promises_return(struct rail_lane *taken)
{
	struct rail_peer *peer = taken->peer;

	for (int i = 0; i < peer->rail_count * peer->qps; i++)
		if (&peer->bulk[i] != taken)
			peer->bulk[i].rq_free++;
}

/* A control message shows that all chunks of its rail have come. */
static bool control_landed(struct rail_lane *lane, const struct rail_stripe *s, uint32_t rail,
			   uint32_t bytes)
{
	if (rail != (uint32_t)lane->k || bytes) {
		rail_peer_fail(lane->peer, -EPROTO, "a control message of rail %u comes on rail %d "
			       "with %u bytes", rail, lane->k, bytes);
		return false;
	}
	lane_ledger(lane)->rx_chunks += s->piece[rail].count;
	lane_ledger(lane)->rx_bytes += s->piece[rail].bytes;
	return true;
}

static bool chunk_landed(struct rail_lane *lane, const struct op *op,
			 const struct rail_stripe *s, uint32_t number, uint32_t bytes)
{
	struct rail_chunk chunk = rndv_chunk(op, s, number);

	if ((chunk.rail != lane->k && chunk.rail != RAIL_ANY) || chunk.bytes != bytes) {
		rail_peer_fail(lane->peer, -EPROTO,
			       "chunk %u has %u bytes on rail %d, should be %llu on %d", number,
			       bytes, lane->k, (unsigned long long)chunk.bytes, chunk.rail);
		return false;
	}
	lane_ledger(lane)->rx_chunks++;
	lane_ledger(lane)->rx_bytes += bytes;
	if (s->pull)
		promises_return(lane);
	return true;
}

void rail_chunk_landed(struct rail_lane *lane, uint32_t imm, uint32_t bytes, bool written)
{
	struct rail_peer *peer = lane->peer;
	bool control = imm & IMM_CONTROL;
	uint32_t slot = imm >> 24, number = imm & (IMM_CONTROL - 1);
	struct rail_landing *landing = &peer->landing[slot];	/* 8 bits: all exist */
	struct op *op = landing->op;
	struct rail_stripe s;

	lane->landed = true;
	peer->late.answers++;
	if (++lane->rq_owed >= RECEIVES_BATCH)
		receives_renew(lane);
	if (!op || landing->generation != (imm >> 16 & 0xff) || number >= RAIL_CHUNKS_MAX ||
	    !(landing->missing >> number & 1) || control != !!(op->rndv_flags & RNDV_CONTROL) ||
	    written == control) {
		rail_peer_fail(peer, -EPROTO, "chunk %u of landing %u is a stranger or came twice",
			       number, slot);
		return;
	}
	rndv_plan(op, &s);
	if (!(control ? control_landed(lane, &s, number, bytes) :
			chunk_landed(lane, op, &s, number, bytes)))
		return;
	peer->ctx->cq_wanted--;
	landing->missing &= ~((uint64_t)1 << number);
	landing_check(peer, slot);
}

void rail_edges_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload,
			size_t bytes)
{
	struct rail_peer *peer = rx->lane->peer;
	uint32_t slot = (uint8_t)record->header.word[0];
	struct rail_landing *landing = &peer->landing[slot];
	struct op *op = landing->op;

	if (!op || landing->generation != record->header.word[1] || !op->edges ||
	    bytes != (size_t)op->head + op->tail) {
		rail_peer_fail(peer, -EPROTO, "edges of landing %u are a stranger's", slot);
		return;
	}
	memcpy(op->buf.addr, payload, op->head);
	memcpy((unsigned char *)op->buf.addr + op->bytes - op->tail,
	       (const unsigned char *)payload + op->head, op->tail);
	lane_ledger(rx->lane)->rx_bytes += bytes;
	op->edges = false;
	landing_check(peer, slot);
}

void rail_slice_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload,
			size_t bytes)
{
	struct rail_peer *peer = rx->lane->peer;
	const struct rail_config *cfg = &peer->ctx->cfg;
	const uint32_t slot = (uint8_t)record->header.word[0];
	struct op *op = peer->landing[slot].op;

	if (!op || peer->landing[slot].generation != record->header.word[1] ||
	    !(op->rndv_flags & RNDV_RING) || !bytes || bytes > op->bytes - op->sliced) {
		rail_peer_fail(peer, -EPROTO, "a slice of landing %u is a stranger's", slot);
		return;
	}
	peer->late.answers++;
	if (unlikely(op->buf.in_slices))
		cfg->on_part(cfg->user, op_outer(op), op->sliced, (void *)payload, bytes, false);
	else
		memcpy(op_data(op) + op->sliced, payload, bytes);
	op->sliced += bytes;
	lane_ledger(rx->lane)->rx_chunks++;
	lane_ledger(rx->lane)->rx_bytes += bytes;
	if (op->sliced < op->bytes)
		return;
	landing_end(peer, slot);
	rndv_written_done(op);
}
