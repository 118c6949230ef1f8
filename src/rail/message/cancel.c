/*
 * cancel.c - sends that are cancelled.
 *
 *   rail_cancel: CANCEL, after its RTS   -------->  not accepted yet: on_cancel agrees,
 *   done: -ECANCELED                     <--------  entry removed, CANCELLED
 *
 * A send that has not left waits in a queue, and is taken out of it.  An RTS that has left
 * belongs to the receiver.  The receiver alone decides, and answers with exactly one of CTS,
 * FIN and CANCELLED.  A CANCEL that arrives when the message is accepted finds no entry; the
 * answer to the RTS is already under way, so the receiver ignores the CANCEL.
 *
 * Both records may have to wait for room.  A cancelled send must not wait for that, and a
 * receiver has no operation that could wait.  A record that has to wait is therefore an
 * operation by itself.
 */
#include <errno.h>
#include <stdlib.h>

#include "rail/message/cancel.h"
#include "rail/message/eager.h"
#include "util/compiler.h"
#include "rail/lane/eager_lane.h"
#include "util/err.h"
#include "rail/message/op_end.h"
#include "rail/message/op_queue.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/message/rndv.h"
#include "rail/message/table.h"

/* ---- The records -------------------------------------------------------- */

static int record_post(struct rail_tx *tx, unsigned stage, uint64_t handle)
{
	static const unsigned char nothing[RAIL_SLOT_PAYLOAD];
	const struct rail_header header = { { handle, 0 } };

	return tx->control(tx, stage == STAGE_CANCEL ? RECORD_CANCEL : RECORD_CANCELLED, &header,
			   0, nothing);
}

int rail_cancel_post(struct rail_tx *tx, const struct op *op)
{
	return record_post(tx, op->stage, op->handle);
}

static void record_done(struct rail_op *op, int status)
{
	(void)status;
	free(op_of(op));
}

/* Send now, or as soon as the lane has room.  0 or -ENOMEM; a failed peer needs none. */
static int record_send(struct rail_peer *peer, unsigned policy, unsigned stage, uint64_t handle)
{
	struct rail_tx *tx = peer->route[policy];
	struct op *op;

	if (!tx->waiting.head && record_post(tx, stage, handle))
		return 0;
	op = calloc(1, sizeof(*op));
	if (!op)
		return -ENOMEM;
	op->done = record_done;
	op->peer = peer;
	op->handle = handle;
	op->policy = (uint8_t)policy;
	op->stage = (uint8_t)stage;
	op_begin(op);
	rail_tx_enqueue(tx, op);
	return 0;
}

/* ---- Sender ------------------------------------------------------------- */

static void queue_remove(struct rail_op_queue *q, const struct op *op)
{
	struct op **at = &q->head;

	while (*at != op)
		at = &(*at)->next;
	queue_unlink(q, at);
}

/* The message has not left. KEYS that have left mean nothing without the RTS. */
static void op_withdraw(struct op *op)
{
	struct rail_peer *peer = op->peer;

	queue_remove(&peer->route[op->policy]->waiting, op);
	if (op->stage != STAGE_EAGER) {
		peer->offers--;
		rail_table_remove(&peer->ctx->table, op->handle);
		rndv_release(op);
	}
	if (unlikely(peer->ctx->eager_sample.op == op))
		rail_eager_offer_ended(op, -ECANCELED);
	op->stage = STAGE_OVER;
	op_end_later(op, -ECANCELED);
}

static int cancel_request(struct op *op)
{
	int rc;

	if (op->rndv_state & RNDV_CANCELLING)
		return 0;
	rc = record_send(op->peer, op->policy, STAGE_CANCEL, op->handle);
	if (rc)
		rg_error("no memory to cancel a message");
	else
		op->rndv_state |= RNDV_CANCELLING;
	return rc;
}

int rail_cancel(struct rail_op *outer)
{
	struct op *op = op_of(outer);

	if (op->peer->error)
		return 0;
	switch (op->stage) {
	case STAGE_EAGER:
	case STAGE_KEYS:
	case STAGE_RTS:
		op_withdraw(op);
		return 0;
	case STAGE_RTS_SENT:
		return cancel_request(op);
	default:
		return 0;
	}
}

void rail_cancelled_arrived(struct rail_peer *peer, const struct rail_record *record)
{
	struct rail_entry *entry = rail_table_find(&peer->ctx->table, peer,
						   record->header.word[0]);
	struct op *op = entry ? entry->op : NULL;

	if (!op || op->stage != STAGE_RTS_SENT || !(op->rndv_state & RNDV_CANCELLING)) {
		rail_peer_fail(peer, -EPROTO, "a CANCELLED for no message of ours");
		return;
	}
	peer->offers--;
	rail_table_remove(&peer->ctx->table, op->handle);
	rndv_finish(op, -ECANCELED);
}

/* ---- Receiver ----------------------------------------------------------- */

void rail_cancel_arrived(struct rail_peer *peer, const struct rail_record *record)
{
	const struct rail_config *cfg = &peer->ctx->cfg;
	struct rail_table *table = &peer->ctx->table;
	uint64_t theirs = record->header.word[0];
	uint64_t handle = rail_table_find_rts(table, peer, theirs);
	unsigned policy;

	/* RTSs of a failed peer stay: rail_accept returns the error. */
	if (!handle || peer->error || !cfg->on_cancel || !cfg->on_cancel(cfg->user, handle))
		return;
	policy = rail_table_find(table, peer, handle)->rts.policy;
	rail_table_remove(table, handle);
	if (record_send(peer, policy, STAGE_CANCELLED, theirs))
		rail_peer_fail(peer, -ENOMEM, "no memory to answer a CANCEL");
}
