/*
 * rndv.c - rendezvous: RTS, CTS, chunks.
 *
 * sender                                  receiver
 *   rail_send: registers, RTS  -------->  on_message with a handle
 *                                         rail_accept: registers, takes a landing,
 *   chunks as the table says   <--------  posts a receive per chunk, CTS
 *   RDMA_WRITE_WITH_IMM on each rail -->  each completion clears its bit
 *   all completions here: done            no bit left: done
 *
 * The RTS carries what decides the cut (policy, threshold, bound rail), the CTS
 * how much is wanted; both ends compute the same table (stripe.h).  Every chunk
 * has an immediate of its own, since rails are not ordered among each other.  An
 * immediate takes a posted receive: the receiver posts them before its CTS, so
 * none is ever missing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "err.h"
#include "rail_int.h"

/* From the top bit down, CTS word: generation:8 landing:8 bytes:48. */
static uint64_t cts_word(uint64_t bytes, uint8_t landing, uint8_t generation)
{
	return (uint64_t)generation << 56 | (uint64_t)landing << 48 | bytes;
}

/* Immediate: landing:8 generation:8 chunk:16. */
static uint32_t chunk_imm(uint8_t landing, uint8_t generation, uint32_t chunk)
{
	return (uint32_t)landing << 24 | (uint32_t)generation << 16 | chunk;
}

static void op_plan(const struct rail_op *op, struct rail_stripe *s)
{
	struct rail_cut cut = {
		.rail_count = op->peer->ctx->rail_count,
		.chunk_bytes = RAIL_CHUNK_BYTES,
	};

	rail_stripe_weights(&cut, op->policy, op->threshold, op->bytes, op->bound);
	rail_stripe_plan(s, op->bytes, &cut);
}

static void op_release(struct rail_op *op)
{
	if (op->mr)
		rail_mr_put(&op->peer->ctx->mr, op->mr);
	op->mr = NULL;
}

/* Upcall from within rail_progress, buffer given back first. */
static void op_finish(struct rail_op *op, int status)
{
	op_release(op);
	op_end(op, status);
}

/* ---- Sender: RTS -------------------------------------------------------- */

int rail_rndv_post_rts(struct rail_tx *tx, struct rail_op *op)
{
	const struct rail_rts_wire rts = {
		.handle = op->handle,
		.threshold = op->threshold,
		.policy = op->policy,
		.bound = op->bound,
	};

	return tx->control(tx, RECORD_RTS, &op->header, op->buf.bytes, &rts);
}

int rail_rndv_send(struct rail_peer *peer, const struct rail_way *way,
		   const struct rail_header *header, const struct rail_buf *buf,
		   struct rail_op *op)
{
	struct rail_ctx *ctx = peer->ctx;
	struct rail_tx *tx = peer->route[way->policy];
	int rc;

	if (buf->bytes > RAIL_STRIPE_MAX_BYTES) {
		rg_error("a message of %zu bytes is too long (accepted: up to %llu)", buf->bytes,
			 (unsigned long long)RAIL_STRIPE_MAX_BYTES);
		return -EMSGSIZE;
	}
	op->peer = peer;
	op->buf = *buf;
	op->header = *header;
	op->policy = (uint8_t)way->policy;
	op->threshold = way->threshold;
	op->bound = (uint8_t)tx->lane->rail;
	op->mr = NULL;
	if (buf->bytes) {
		rc = rail_mr_get(&ctx->mr, buf->addr, buf->bytes, &op->mr);
		if (rc)
			return rc;
	}
	rc = rail_table_add(&ctx->table, peer, &op->handle);
	if (rc) {
		op_release(op);
		return rc;
	}
	rail_table_find(&ctx->table, peer, op->handle)->op = op;
	op->stage = STAGE_RTS;
	rc = tx->waiting.head ? 0 : rail_rndv_post_rts(tx, op);
	if (rc < 0) {
		rail_table_remove(&ctx->table, op->handle);
		op_release(op);
		return rc;
	}
	op_begin(op);
	if (rc > 0)
		op->stage = STAGE_OFFERED;
	else
		rail_tx_wait(tx, op);
	return 0;
}

/* ---- Receiver: landing, CTS --------------------------------------------- */

void rail_rts_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload)
{
	struct rail_ctx *ctx = peer->ctx;
	const struct rail_rts_wire *rts = payload;
	struct rail_message msg = {
		.peer = peer,
		.index = peer->index,
		.header = &record->header,
		.bytes = record->word,
	};
	int rc;

	if (record->word > RAIL_STRIPE_MAX_BYTES || rts->policy > RAIL_STRIPE ||
	    rts->bound >= ctx->rail_count) {
		rail_peer_fail(peer, -EPROTO, "an RTS makes no sense");
		return;
	}
	rc = rail_table_add(&ctx->table, peer, &msg.rendezvous);
	if (rc) {
		rail_peer_fail(peer, rc, "no memory for one more incoming message");
		return;
	}
	rail_table_find(&ctx->table, peer, msg.rendezvous)->rts = (struct rail_rts){
		.handle = rts->handle,
		.bytes = record->word,
		.threshold = rts->threshold,
		.policy = rts->policy,
		.bound = rts->bound,
	};
	ctx->cfg.on_message(ctx->cfg.user, &msg);
}

int rail_rndv_post_cts(struct rail_tx *tx, struct rail_op *op)
{
	const struct rail_header header = { { op->handle, (uintptr_t)op->buf.addr } };
	uint32_t rkey[RAIL_MAX] = { 0 };

	_Static_assert(sizeof(rkey) == RAIL_SLOT_PAYLOAD, "a CTS fits a slot");
	for (int a = 0; op->mr && a < op->peer->ctx->adapter_count; a++)
		rkey[a] = op->mr->on[a]->rkey;
	return tx->control(tx, RECORD_CTS, &header,
			   cts_word(op->bytes, op->slot, op->generation), rkey);
}

/* A queued RTS or CTS is out. */
void rail_rndv_control_sent(struct rail_op *op)
{
	if (op->stage == STAGE_RTS)
		op->stage = STAGE_OFFERED;
	else if (op->bytes)
		op->stage = STAGE_LANDING;
	else
		op_finish(op, 0);
}

/* No upcall from here: rail_accept may be the caller. */
static void cts_send(struct rail_op *op)
{
	struct rail_tx *tx = op->peer->route[op->policy];

	op->stage = STAGE_CTS;
	if (tx->waiting.head || rail_rndv_post_cts(tx, op) <= 0)
		rail_tx_wait(tx, op);
	else if (op->bytes)
		op->stage = STAGE_LANDING;
	else
		op_end_later(op, 0);
}

static int landing_receives_post(struct rail_lane *lane, uint32_t count)
{
	struct ibv_recv_wr *bad, wr[RAIL_CHUNKS_MAX];
	int rc;

	for (uint32_t i = 0; i < count; i++) {
		wr[i].wr_id = wr_id(lane->id, WR_LANDING, 0, 0);
		wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
		wr[i].sg_list = NULL;
		wr[i].num_sge = 0;
	}
	rc = ibv_post_recv(lane->qp.qp, wr, &bad);
	if (rc)
		return rail_lane_refused(lane, rc);
	lane->rq_free -= count;
	lane->ctx->cq_wanted += count;
	return 0;
}

/* Is there everything that the chunks of op need at once?  Then its table is in *s. */
static bool landing_possible(const struct rail_op *op, struct rail_stripe *s)
{
	const struct rail_peer *peer = op->peer;

	if (peer->landings_used == LANDINGS)
		return false;
	op_plan(op, s);
	for (int r = 0; r < s->rail_count; r++)
		if (peer->bulk[r].rq_free < s->piece[r].count)
			return false;
	return true;
}

static void landing_start(struct rail_op *op, const struct rail_stripe *s)
{
	struct rail_peer *peer = op->peer;
	struct rail_landing *landing;

	op->slot = peer->landing_free;
	landing = &peer->landing[op->slot];
	peer->landing_free = landing->next_free;
	peer->landings_used++;
	landing->op = op;
	landing->missing = ~(uint64_t)0 >> (RAIL_CHUNKS_MAX - s->chunk_count);
	op->generation = landing->generation;
	op->stage = STAGE_LANDING;
	for (int r = 0; r < s->rail_count; r++)
		if (s->piece[r].count && landing_receives_post(&peer->bulk[r], s->piece[r].count))
			return;		/* the peer is lost; the landing is buried with it */
	cts_send(op);
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

int rail_accept(struct rail_peer *peer, uint64_t rendezvous, const struct rail_buf *buf,
		struct rail_op *op)
{
	struct rail_ctx *ctx = peer->ctx;
	struct rail_entry *entry = rail_table_find(&ctx->table, peer, rendezvous);
	struct rail_stripe s;
	int rc;

	if (!entry || entry->op) {
		rg_error("rail_accept: no message waits under this handle");
		return -EINVAL;
	}
	if (peer->error) {
		rail_table_remove(&ctx->table, rendezvous);
		return peer->error;
	}
	if (buf->kind == RAIL_MEM_CUDA) {
		rg_error("GPU memory (RAIL_MEM_CUDA) is not carried yet");
		return -EOPNOTSUPP;
	}
	op->peer = peer;
	op->buf = *buf;
	op->handle = entry->rts.handle;
	op->policy = entry->rts.policy;
	op->threshold = entry->rts.threshold;
	op->bound = entry->rts.bound;
	op->bytes = buf->bytes < entry->rts.bytes ? buf->bytes : entry->rts.bytes;
	op->slot = op->generation = 0;
	op->mr = NULL;
	if (op->bytes) {
		rc = rail_mr_get(&ctx->mr, buf->addr, op->bytes, &op->mr);
		if (rc)
			return rc;
	}
	rail_table_remove(&ctx->table, rendezvous);
	op_begin(op);
	if (!op->bytes) {
		cts_send(op);
	} else if (!peer->accepting.head && landing_possible(op, &s)) {
		landing_start(op, &s);
	} else {
		op->stage = STAGE_ACCEPTED;
		queue_push(&peer->accepting, op);
		peer_work(peer);
	}
	return 0;
}

/* ---- Sender: chunks ----------------------------------------------------- */

static int chunk_post(struct rail_op *op, const struct rail_stripe *s, int r)
{
	struct rail_peer *peer = op->peer;
	struct rail_lane *lane = &peer->bulk[r];
	uint32_t number = s->piece[r].first + op->cursor[r];
	struct rail_chunk chunk = rail_stripe_chunk(s, number);
	int mine = lane->ctx->rail[r].adapter;
	struct ibv_sge sge = {
		.addr = (uintptr_t)op->buf.addr + chunk.offset,
		.length = (uint32_t)chunk.bytes,
		.lkey = op->mr->on[mine]->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id(lane->id, WR_CHUNK, 0, 0),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(chunk_imm(op->slot, op->generation, number)),
		.wr.rdma = {
			.remote_addr = op->remote + chunk.offset,
			.rkey = op->rkey[peer->adapter_of[r]],
		},
	};
	int rc = ibv_post_send(lane->qp.qp, &wr, &bad);

	if (rc)
		return rail_lane_refused(lane, rc);
	lane->sq_op[lane->sq_posted++ % lane->sq_depth] = op;
	lane->ctx->cq_wanted++;
	op->cursor[r]++;
	op->chunks_out++;
	lane_ledger(lane)->tx_chunks++;
	lane_ledger(lane)->tx_bytes += chunk.bytes;
	return 0;
}

/*
 * Post what the lanes take, rails in turn, at most *budget chunks.  True when
 * every chunk of op is out.
 */
static bool chunks_post(struct rail_op *op, int *budget)
{
	struct rail_stripe s;
	bool more, moved;

	op_plan(op, &s);
	do {
		more = moved = false;
		for (int r = 0; r < s.rail_count; r++) {
			if (op->cursor[r] == s.piece[r].count)
				continue;
			more = true;
			if (*budget == 0 || !lane_has_room(&op->peer->bulk[r], 1))
				continue;
			if (chunk_post(op, &s, r))
				return false;
			--*budget;
			moved = true;
		}
	} while (moved);
	return !more;
}

void rail_cts_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload)
{
	struct rail_ctx *ctx = peer->ctx;
	struct rail_entry *entry = rail_table_find(&ctx->table, peer, record->header.word[0]);
	struct rail_op *op = entry ? entry->op : NULL;
	uint64_t bytes = record->word & (((uint64_t)1 << 48) - 1);
	struct rail_stripe s;
	int budget = BULK_BATCH;

	if (!op || op->stage != STAGE_OFFERED || bytes > op->buf.bytes) {
		rail_peer_fail(peer, -EPROTO, "a CTS for no message of ours");
		return;
	}
	rail_table_remove(&ctx->table, op->handle);
	op->bytes = bytes;
	if (!bytes) {
		op_finish(op, 0);
		return;
	}
	op->remote = record->header.word[1];
	op->slot = (uint8_t)(record->word >> 48);
	op->generation = (uint8_t)(record->word >> 56);
	memcpy(op->rkey, payload, sizeof(op->rkey));
	memset(op->cursor, 0, sizeof(op->cursor));
	op_plan(op, &s);
	op->chunks_left = (uint8_t)s.chunk_count;
	op->chunks_out = 0;
	op->stage = STAGE_CUTTING;
	if (!peer->cutting.head && chunks_post(op, &budget)) {
		op->stage = STAGE_POSTED;
		return;
	}
	queue_push(&peer->cutting, op);
	peer_work(peer);
}

/* The oldest chunk of a lane has left, or its lane has failed. */
void rail_chunk_sent(struct rail_lane *lane)
{
	struct rail_op *op = lane->sq_op[lane->sq_done++ % lane->sq_depth];

	op->chunks_out--;
	op->chunks_left--;
	if (unlikely(lane->peer->error)) {
		/* One that is still being cut is buried with the peer. */
		if (!op->chunks_out && op->stage != STAGE_CUTTING)
			op_finish(op, -ECONNRESET);
	} else if (!op->chunks_left) {
		op_finish(op, 0);
	}
}

/* ---- Receiver: chunks --------------------------------------------------- */

void rail_chunk_landed(struct rail_lane *lane, uint32_t imm, uint32_t bytes)
{
	struct rail_peer *peer = lane->peer;
	uint32_t slot = imm >> 24, number = imm & 0xffff;
	struct rail_landing *landing = &peer->landing[slot];	/* 8 bits: all exist */
	struct rail_op *op = landing->op;
	struct rail_stripe s;
	struct rail_chunk chunk;

	if (!op || landing->generation != (imm >> 16 & 0xff) || number >= RAIL_CHUNKS_MAX ||
	    !(landing->missing >> number & 1)) {
		rail_peer_fail(peer, -EPROTO, "chunk %u of landing %u is a stranger or came twice",
			       number, slot);
		return;
	}
	op_plan(op, &s);
	chunk = rail_stripe_chunk(&s, number);
	if (chunk.rail != lane->rail || chunk.bytes != bytes) {
		rail_peer_fail(peer, -EPROTO,
			       "chunk %u has %u bytes on rail %d, should be %llu on %d", number,
			       bytes, lane->rail, (unsigned long long)chunk.bytes, chunk.rail);
		return;
	}
	lane_ledger(lane)->rx_chunks++;
	lane_ledger(lane)->rx_bytes += bytes;
	landing->missing &= ~((uint64_t)1 << number);
	if (landing->missing)
		return;
	landing_end(peer, slot);
	op_finish(op, 0);
}

/* ---- What waits --------------------------------------------------------- */

bool rail_rndv_advance(struct rail_peer *peer)
{
	struct rail_op **link = &peer->cutting.head, *op;
	struct rail_stripe s;
	int budget = BULK_BATCH;

	while ((op = peer->accepting.head) && !peer->error && landing_possible(op, &s)) {
		queue_pop(&peer->accepting);
		landing_start(op, &s);
	}
	/* Not only the first: its rail may be full while those of the next are idle. */
	while ((op = *link) && budget && !peer->error) {
		if (!chunks_post(op, &budget)) {
			link = &op->next;
			continue;
		}
		*link = op->next;
		if (peer->cutting.tail == &op->next)
			peer->cutting.tail = link;
		op->stage = STAGE_POSTED;
	}
	return peer->accepting.head || peer->cutting.head;
}

/* A peer is lost: end all that will not be ended by flushed completions. */
void rail_rndv_bury(struct rail_peer *peer)
{
	struct rail_table *table = &peer->ctx->table;
	struct rail_op *op;

	while ((op = queue_pop(&peer->accepting)))
		op_finish(op, -ECONNRESET);
	for (uint32_t i = 0; i < LANDINGS; i++) {
		op = peer->landing[i].op;
		if (!op)
			continue;
		landing_end(peer, i);
		op_finish(op, -ECONNRESET);
	}
	while ((op = queue_pop(&peer->cutting))) {
		op->stage = STAGE_POSTED;
		if (!op->chunks_out)
			op_finish(op, -ECONNRESET);
	}
	/* RTSs that have not been accepted stay: rail_accept answers for them. */
	for (uint32_t i = 0; i < table->count; i++) {
		op = table->entry[i].peer == peer ? table->entry[i].op : NULL;
		if (!op)
			continue;
		rail_table_remove(table, op->handle);
		op_finish(op, -ECONNRESET);
	}
}
