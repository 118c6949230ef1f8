/*
 * peer_end.c - how a peer ends: the operations of a failed one, signs of life, leaving.
 *
 * A process that only waits for a peer has no request that could fail.  So every peer is
 * probed once a second, by an empty write on each lane that has carried anything.  A single
 * lane would not do: lanes are on several rails, and each rail fails by itself.  Over TCP the kernels
 * ask each other, and a probe would wake the peer: it asks only where no answer has come.
 */
#include <errno.h>

#include "util/clock.h"
#include "rail/lane/eager_lane.h"
#include "util/err.h"
#include "rail/lane/lane.h"
#include "rail/lane/lane_ring.h"
#include "rail/peer/on_demand.h"
#include "rail/message/op_end.h"
#include "rail/message/op_queue.h"
#include "rail/peer/peer_end.h"
#include "rail/rail.h"
#include "rail/lane/cq.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/message/rndv.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"

#define DRAIN_NS 2000000000u
#define DEAD_NS 1000000000u

/* An adapter that has failed may complete nothing more; its memory is safe once it had some time. */
static void dead_abandon(struct rail_peer *peer)
{
	struct rail_ctx *ctx = peer->ctx;

	for (int a = 0; a < ctx->adapter_count; a++)
		if (ctx->dead_ns[a] && rg_reached(ctx->dead_ns[a] + DEAD_NS, rg_now_ns()))
			rail_cq_abandon(peer, a);
}

bool rail_peer_failure_advance(struct rail_peer *peer)
{
	struct rail_ctx *ctx = peer->ctx;
	struct op *op, *next;

	for (int i = 0; i < peer->tx_count; i++) {
		op = peer->tx[i].waiting.head;
		queue_init(&peer->tx[i].waiting);
		for (; op; op = next) {
			next = op->next;
			/* rail_rndv_peer_failed finds the others, in the table and landings. */
			if (op->stage == STAGE_EAGER || op->stage > STAGE_FIN)
				op_end(op, -ECONNRESET);
			else if (op->stage == STAGE_EDGES || op->stage == STAGE_FIN)
				rndv_finish(op, -ECONNRESET);
		}
	}
	rail_rndv_peer_failed(peer);
	for (int i = 0; i < peer->rx_count; i++)
		peer->rx[i].grant_owed = false;
	if (peer->ops)
		dead_abandon(peer);
	if (peer->ops)
		return true;
	if (!peer->reported) {
		peer->reported = true;
		peer->told = true;
		if (ctx->cfg.on_peer_error)
			ctx->cfg.on_peer_error(ctx->cfg.user, peer->index, peer->cause);
	}
	return false;
}

/* Is a signalled request of the lane under way, which serves as a probe? */
static bool lane_is_probed(const struct rail_lane *lane)
{
	return (lane->sent ? lane->sq_posted : lane->sq_signalled) != lane->sq_done;
}

static void lane_probe(struct rail_peer *peer, struct rail_lane *lane)
{
	/* No CQ: there is no such lane. */
	if (!peer->error && lane->cq && !lane_is_probed(lane) &&
	    (lane == peer_bound_tx(peer)->lane || rail_lane_is_used(lane)) &&
	    !vrb_qp_hears_peer(peer->ctx->rail[lane->rail].port, &lane->qp))
		rail_lane_probe(lane);
}

static void peer_probe(struct rail_peer *peer)
{
	for (int k = 0; k < peer->rail_count; k++) {
		lane_probe(peer, &peer->eager[k]);
		for (int q = 0; q < peer->qps; q++)
			lane_probe(peer, peer_bulk(peer, k, q));
	}
}

void rail_peers_probe(struct rail_ctx *ctx)
{
	for (unsigned i = 0; i < ctx->cfg.peer_count; i++) {
		struct rail_peer *peer = ctx->peer[i];

		if (peer && peer->connected && !peer->error && (!peer->gone || peer->ops))
			peer_probe(peer);
	}
}

/* ---- Leaving ------------------------------------------------------------ */

/* Has everything left for the peer, or does the peer need no more? */
static bool peer_flushed(const struct rail_peer *peer)
{
	if (!peer || !peer->connected || peer->error || peer->gone)
		return true;
	for (int i = 0; i < peer->tx_count; i++)
		if (peer->tx[i].lane->sq_posted != peer->tx[i].lane->sq_done)
			return false;
	return true;
}

static bool all_flushed(const struct rail_ctx *ctx)
{
	for (unsigned i = 0; i < ctx->cfg.peer_count; i++)
		if (!peer_flushed(ctx->peer[i]))
			return false;
	return true;
}

static void bye_send(struct rail_peer *peer)
{
	static const struct rail_header none;
	static const unsigned char nothing[RAIL_SLOT_PAYLOAD];
	struct rail_tx *tx = peer_bound_tx(peer);

	tx->control(tx, RECORD_BYE, &none, 0, nothing);
	for (int k = 0; k < peer->tx_count && !peer->error; k++)
		rail_lane_probe(peer->tx[k].lane);
}

/* Flushed requests come batch by batch: the process gives way only when none comes. */
static void drain_turn(struct rail_ctx *ctx)
{
	const uint32_t before = ctx->events;

	rail_cq_poll(ctx);
	if (ctx->events == before)
		rg_yield();
}

/* Wait until sent messages have left: rail_send returns before. */
static void flush(struct rail_ctx *ctx, uint64_t until_ns)
{
	for (unsigned i = 0; i < ctx->cfg.peer_count; i++) {
		struct rail_peer *peer = ctx->peer[i];

		if (peer && peer->connected && !peer->error)
			bye_send(peer);
	}
	while (!all_flushed(ctx) && !rg_reached(until_ns, rg_now_ns())) {
		rail_rings_poll_all(ctx);
		drain_turn(ctx);
	}
}

void rail_drain(struct rail_ctx *ctx)
{
	uint64_t until_ns = rg_now_ns() + DRAIN_NS;

	rail_on_demand_settle(ctx);
	ctx->closing = true;
	flush(ctx, until_ns);
	for (uint32_t i = 0; i < ctx->lane_count; i++) {
		struct rail_lane *lane = ctx->lane[i];

		if (!lane)
			continue;
		lane->peer->error = -ECONNRESET;
		lane->peer->reported = true;
		ctx->marks_out += vrb_qp_stop_marked(&lane->qp, wr_id(i, WR_MARK, 0, 0));
	}
	while (ctx->marks_out > 0 && !rg_reached(until_ns, rg_now_ns()))
		drain_turn(ctx);
	if (ctx->marks_out > 0)
		rg_warn("%d queues were not empty when they were destroyed", ctx->marks_out);
}
