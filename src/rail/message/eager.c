/* eager.c - the first step of a message at both ends: rail_send, and a record that arrives. */
#include <errno.h>

#include "rail/message/cancel.h"
#include "rail/message/eager.h"
#include "rail/message/eager_choice.h"
#include "rail/lane/eager_lane.h"
#include "util/clock.h"
#include "util/compiler.h"
#include "util/err.h"
#include "rail/lane/lane.h"
#include "rail/lane/lane_ring.h"
#include "rail/message/op_end.h"
#include "rail/message/op_queue.h"
#include "rail/peer/peer_failure.h"
#include "rail/policy.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/open/options.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/message/rndv.h"
#include "rail/message/landing.h"
#include "rail/message/rndv_send.h"
#include "rail/message/rndv_receive.h"

enum { WAIT_MAX = RING_SLOTS };	/* operations from which on RAIL_SEND_NOW is ignored */

static inline uint64_t eager_limit(const struct rail_ctx *ctx, const struct rail_way *way)
{
	uint64_t limit = way->eager < ctx->eager_max ? way->eager : ctx->eager_max;

	return rail_policies[way->policy].spreads && way->threshold < limit ? way->threshold : limit;
}

uint64_t rail_eager_limit(const struct rail_ctx *ctx, const struct rail_way *way)
{
	return eager_limit(ctx, way);
}

static int cuda_refused(void)
{
	rg_error("GPU memory (RAIL_MEM_CUDA) is not carried yet");
	return -EOPNOTSUPP;
}

/*
 * Over TCP a copy costs less than the round trip of an offer, but more than one that others overlap.
 * Within a host it costs more.
 */
static bool is_offered_in_row(const struct rail_peer *peer, const struct rail_way *way, uint64_t bytes)
{
	const struct rail_ctx *ctx = peer->ctx;

	return bytes > RAIL_EAGER_ROW_BYTES && way->eager_auto && ctx->rail[0].port->net &&
	       (peer->polled || ctx->staging.free_count < STAGING);
}

/* ---- A message above the limit that may go either way: eager_choice.h ----------------- */

/* Such a message is one that a larger ring takes.  A smaller one that a way offers stays an offer. */
static bool may_go_either_way(const struct rail_peer *peer, const struct rail_way *way,
			      const struct rail_buf *buf, unsigned flags)
{
	return buf->bytes <= peer->eager_most && buf->bytes > peer->ctx->eager_max &&
	       (peer->rail_count == 1 || !rail_policies[way->policy].spreads) &&
	       !(flags & RAIL_SEND_SYNC) && buf->kind != RAIL_MEM_PARTS;
}

/* May the sender choose for it? */
static bool may_choose(const struct rail_way *way)
{
	return way->eager_auto && way->rendezvous == RAIL_BY_AUTO && way->completion == RAIL_BY_IMMEDIATE;
}

/* A message joins the row of those that were sent since the peer was heard. */
static void row_step(struct rail_peer *peer, uint64_t bytes)
{
	uint64_t heard = 0;

	for (int i = 0; i < peer->rx_count; i++)
		heard += peer->rx[i].seq;
	heard -= peer->controls;
	rail_row_step(&peer->row, bytes, heard - peer->heard);
	peer->heard = heard;
}

/* A message that crosses the peer's. */
static bool is_sent_crossing(struct rail_peer *peer, struct rail_eager_cell *cell, uint64_t bytes)
{
	struct rail_ctx *ctx = peer->ctx;
	bool eager;

	if (!rndv_leads(peer) && rail_eager_obey(&peer->row, bytes, &eager))
		return eager;
	if (ctx->eager_sample.peer == peer)
		rail_eager_forget(&ctx->eager_choice);
	if (likely(cell->settled && !ctx->eager_choice.crossing))
		return cell->scheme == EAGER_SENT;
	return rail_eager_take_crossing(&ctx->eager_choice, cell, peer->row.place, rg_now_ns());
}

static struct rail_eager_step choose_measured(struct rail_peer *peer, uint64_t bytes)
{
	struct rail_ctx *ctx = peer->ctx;
	struct rail_eager_cell *cell;
	struct rail_eager_step step;

	row_step(peer, bytes);
	cell = rail_eager_cell(&ctx->eager_choice, bytes, &peer->row);
	if (rail_row_is_crossed(&peer->row))
		return (struct rail_eager_step){ .eager = is_sent_crossing(peer, cell, bytes) };
	if (unlikely(ctx->eager_choice.crossing))
		rail_eager_uncross(&ctx->eager_choice);
	step = (struct rail_eager_step){ .eager = cell->scheme == EAGER_SENT };
	if (likely(rail_eager_is_settled(&ctx->eager_choice, cell)))
		return step;
	if (ctx->eager_sample.peer != peer && rail_eager_waits(&ctx->eager_choice))
		return step;
	step = rail_eager_take(&ctx->eager_choice, cell, peer->row.place, rg_now_ns());
	if (step.last || !ctx->eager_choice.measured)
		ctx->eager_sample = (struct rail_eager_sample){ 0 };
	ctx->eager_sample.peer = peer;
	return step;
}

/* A message above the limit, or one that is to be offered. */
static struct rail_eager_step choose(struct rail_peer *peer, const struct rail_way *way,
				     const struct rail_buf *buf, unsigned flags)
{
	if (!may_go_either_way(peer, way, buf, flags))
		return (struct rail_eager_step){ .eager = false };
	if (may_choose(way))
		return choose_measured(peer, buf->bytes);
	return (struct rail_eager_step){ .eager = !way->eager_auto && buf->bytes <= way->eager };
}

/*
 * A sender that copies learns of the end late, so the time is the peer's, by the clock of the host;
 * unless that of a container is another.
 */
static void told_arrived(struct rail_peer *peer, const struct rail_header *header)
{
	struct rail_eager_choice *choice = &peer->ctx->eager_choice;
	const struct rail_eager_sample *s = &peer->ctx->eager_sample;
	const uint64_t end_ns = header->word[1], now_ns = rg_now_ns();

	if (s->told && s->peer == peer && s->end == header->word[0])
		rail_eager_ended(choice, end_ns - choice->begun_ns < now_ns - choice->begun_ns ?
						end_ns : now_ns);
}

void rail_eager_offer_ended(struct op *op, int status)
{
	struct rail_ctx *ctx = op->peer->ctx;

	ctx->eager_sample.op = NULL;
	if (status)
		rail_eager_forget(&ctx->eager_choice);
	else
		rail_eager_ended(&ctx->eager_choice, rg_now_ns());
}

static int send_offer(struct rail_peer *peer, const struct rail_way *way,
		      const struct rail_header *header, const struct rail_buf *buf, struct op *op,
		      bool last)
{
	int rc;

	if (unlikely(last))
		peer->ctx->eager_sample.op = op;
	rc = rail_rndv_send(peer, way, header, buf, op);
	if (unlikely(rc && last))
		rail_eager_offer_ended(op, rc);
	return rc;
}

/* Send any message, with the results of rail_send. */
static __attribute__((noinline)) int send_any(struct rail_peer *peer, const struct rail_way *way,
					      const struct rail_header *header,
					      const struct rail_buf *buf, unsigned flags,
					      struct op *op)
{
	struct rail_eager_step step = { .eager = true };
	struct rail_tx *tx = peer->route[way->policy];
	int rc;

	if (unlikely(peer->error))
		return peer->error;
	if (unlikely(buf->kind == RAIL_MEM_CUDA))
		return cuda_refused();
	if (buf->bytes > eager_limit(peer->ctx, way) || flags & RAIL_SEND_SYNC ||
	    unlikely(is_offered_in_row(peer, way, buf->bytes))) {
		step = choose(peer, way, buf, flags);
		if (!step.eager)
			return send_offer(peer, way, header, buf, op, step.last);
	}
	if (likely(!tx->waiting.head)) {
		tx->tell = step.last;
		rc = tx->eager(tx, header, buf->addr, buf->bytes);
		tx->tell = false;
		if (likely(rc))
			return rc;
	}
	if (unlikely(!peer->connected && flags & RAIL_SEND_NOW && peer->ops < WAIT_MAX))
		return -EAGAIN;
	op->peer = peer;
	op->buf = *buf;
	op->header = *header;
	op->policy = (uint8_t)way->policy;	/* the route, should a connection come first */
	op->stage = STAGE_EAGER;
	op->rndv_flags = step.last ? RNDV_TELL : 0;
	rail_tx_enqueue(tx, op);
	op_begin(op);
	return 0;
}

/* Does the message fit in a slot, with no other message to overtake? */
static inline bool goes_short(const struct rail_peer *peer, const struct rail_tx *tx,
			      const struct rail_way *way, const struct rail_buf *buf,
			      unsigned flags)
{
	return buf->bytes <= RAIL_SLOT_PAYLOAD && buf->bytes <= eager_limit(peer->ctx, way) &&
	       !(flags & RAIL_SEND_SYNC) && buf->kind != RAIL_MEM_CUDA && tx->eager_slot &&
	       !tx->waiting.head;
}

int rail_send(struct rail_peer *peer, const struct rail_way *way,
	      const struct rail_header *header, const struct rail_buf *buf,
	      unsigned flags, struct rail_op *op)
{
	struct rail_tx *tx = peer->route[way->policy];

	if (likely(goes_short(peer, tx, way, buf, flags) && rail_ring_ready(tx)))
		return tx->eager_slot(tx, header, buf->addr, buf->bytes);
	return send_any(peer, way, header, buf, flags, op_of(op));
}

void rail_tx_enqueue(struct rail_tx *tx, struct op *op)
{
	queue_push(&tx->waiting, op);
	if (likely(tx->lane))
		lane_ledger(tx->lane)->stalls++;
	peer_work(op->peer);
}

bool rail_tx_advance(struct rail_tx *tx)
{
	struct op *op;
	int rc;

	while ((op = tx->waiting.head)) {
		if (op->stage == STAGE_EAGER) {
			tx->tell = op->rndv_flags & RNDV_TELL;
			rc = tx->eager(tx, &op->header, op->buf.addr, op->buf.bytes);
			tx->tell = false;
		} else {
			rc = rail_rndv_post(tx, op);
		}
		if (rc <= 0)
			return true;
		queue_pop(&tx->waiting);
		if (op->stage == STAGE_EAGER)
			op_end(op, 0);
		else
			rail_rndv_control_sent(op);
	}
	return false;
}

void rail_record_arrived(struct rail_rx *rx, unsigned kind, const struct rail_record *record,
			 const void *payload, size_t bytes)
{
	struct rail_peer *peer = rx->lane->peer;

	peer->controls += kind != RECORD_EAGER && kind != RECORD_RTS;
	if (!rail_peer_listens(peer) && kind != RECORD_BYE)
		return;
	switch (kind) {
	case RECORD_EAGER:
		if (unlikely(bytes > peer->ctx->eager_max))
			rail_row_told(&peer->row, bytes, EAGER_SENT);
		rail_message_arrived(rx, record, payload, bytes);
		break;
	case RECORD_KEYS:
		rail_keys_arrived(rx, record, payload);
		break;
	case RECORD_RTS:
		rail_rts_arrived(rx, record, payload);
		break;
	case RECORD_CTS:
		rail_cts_arrived(peer, record, payload);
		break;
	case RECORD_ASK:
		rail_ask_arrived(peer, record);
		break;
	case RECORD_SLICE:
		rail_slice_arrived(rx, record, payload, bytes);
		break;
	case RECORD_FIN:
		rail_fin_arrived(peer, record, payload);
		break;
	case RECORD_EDGES:
		rail_edges_arrived(rx, record, payload, bytes);
		break;
	case RECORD_CANCEL:
		rail_cancel_arrived(peer, record);
		break;
	case RECORD_CANCELLED:
		rail_cancelled_arrived(peer, record);
		break;
	case RECORD_TOLD:
		told_arrived(peer, &record->header);
		break;
	case RECORD_BYE:
		peer->gone = true;
		break;
	default:
		rail_peer_fail(peer, -EPROTO, "record %llu makes no sense",
			       (unsigned long long)(rx->seq - 1));
	}
}
