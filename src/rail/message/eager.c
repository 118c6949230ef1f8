/* eager.c - the first step of a message at both ends: rail_send, and a record that arrives. */
#include <errno.h>

#include "rail/message/cancel.h"
#include "rail/message/eager.h"
#include "rail/lane/eager_lane.h"
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

/* Send any message, with the results of rail_send. */
static __attribute__((noinline)) int send_any(struct rail_peer *peer, const struct rail_way *way,
					      const struct rail_header *header,
					      const struct rail_buf *buf, unsigned flags,
					      struct op *op)
{
	struct rail_tx *tx = peer->route[way->policy];
	int rc;

	if (unlikely(peer->error))
		return peer->error;
	if (unlikely(buf->kind == RAIL_MEM_CUDA))
		return cuda_refused();
	if (buf->bytes > eager_limit(peer->ctx, way) || flags & RAIL_SEND_SYNC)
		return rail_rndv_send(peer, way, header, buf, op);
	if (likely(!tx->waiting.head)) {
		rc = tx->eager(tx, header, buf->addr, buf->bytes);
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
		if (op->stage == STAGE_EAGER)
			rc = tx->eager(tx, &op->header, op->buf.addr, op->buf.bytes);
		else
			rc = rail_rndv_post(tx, op);
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

	if (!rail_peer_listens(peer) && kind != RECORD_BYE)
		return;
	switch (kind) {
	case RECORD_EAGER:
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
	case RECORD_BYE:
		peer->gone = true;
		break;
	default:
		rail_peer_fail(peer, -EPROTO, "record %llu makes no sense",
			       (unsigned long long)(rx->seq - 1));
	}
}
