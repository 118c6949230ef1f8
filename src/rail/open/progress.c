/* progress.c - rail_progress: rings, completions and waiting operations, in a fixed order. */
#include <stdatomic.h>

#include "util/clock.h"
#include "rail/message/eager.h"
#include "rail/lane/eager_lane.h"
#include "rail/lane/lane_ring.h"
#include "rail/peer/on_demand.h"
#include "rail/message/op_end.h"
#include "rail/message/op_queue.h"
#include "rail/peer/peer_end.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "rail/lane/cq.h"
#include "rail/open/events.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/rail_op.h"
#include "rail/peer/peer.h"
#include "rail/message/rndv.h"
#include "rail/message/rndv_receive.h"
#include "rail/lane/lane.h"
#include "util/compiler.h"

enum {
	/*
	 * Calls between polls of a CQ without wanted completions, and of the clock.  The number
	 * is small: where processes outnumber cores and yield, a call takes a time slice.
	 */
	TICKS_SLOW = 64,
	/* Calls between polls for datagrams, while some may come, and looks at senders that owe data. */
	TICKS_CONNECT = 8,
	TICKS_IDLE = 1024,		/* calls without any event, after which latency is no concern */
};

#define PROBE_NS 1000000000u

/* True while work for the peer is left. */
static bool peer_advance(struct rail_peer *peer)
{
	bool more = false;

	if (unlikely(peer->error))
		return rail_peer_failure_advance(peer);
	if (unlikely(!peer->connected))
		rail_on_demand_drive(peer);
	for (int i = 0; i < peer->tx_count; i++)
		more |= rail_tx_advance(&peer->tx[i]);
	more |= rail_rndv_advance(peer);
	for (int i = 0; i < peer->rx_count; i++) {
		if (peer->rx[i].grant_owed && !peer->rx[i].grant_later)
			rail_rx_grant(&peer->rx[i]);
		peer->rx[i].grant_later = false;
		more |= peer->rx[i].grant_owed;
	}
	return more || peer->error;
}

static void progress_peers(struct rail_ctx *ctx)
{
	struct rail_peer *peer = ctx->working, *next;

	ctx->working = NULL;
	for (; peer; peer = next) {
		next = peer->next_working;
		peer->working = false;
		if (peer_advance(peer))
			peer_work(peer);
	}
}

static void progress_probes(struct rail_ctx *ctx)
{
	uint64_t now;

	rail_cq_poll_some(ctx);
	rail_on_demand_poll(ctx);
	now = rg_now_ns();
	if (!rg_reached(ctx->probed_ns + PROBE_NS, now))
		return;
	ctx->probed_ns = now;
	rail_events_read(ctx, now);
	rail_peers_probe(ctx);
	if (ctx->cfg.on_watch)
		ctx->cfg.on_watch(ctx->cfg.user);
}

/* Work of some calls only: wanted completions, the clock, connections, waiting operations. */
static __attribute__((noinline)) void progress_rare(struct rail_ctx *ctx)
{
	struct op *op;

	if (!ctx->polled || ctx->cq_wanted || ctx->idle > TICKS_IDLE)
		rail_cq_poll_some(ctx);
	if (ctx->tick % TICKS_SLOW == 0)
		progress_probes(ctx);
	else if (ctx->unlinked && ctx->tick % TICKS_CONNECT == 0)
		rail_on_demand_poll(ctx);
	if (unlikely(ctx->watched) && ctx->tick % TICKS_CONNECT == 0)
		rail_late_look_all(ctx);
	if (ctx->working)
		progress_peers(ctx);
	while ((op = queue_pop(&ctx->completed)) != NULL)
		op_end(op, op->status);
}

/* Has progress_rare anything to do in this call? */
static inline bool is_rare_due(const struct rail_ctx *ctx)
{
	return ctx->cq_wanted || ctx->working || ctx->completed.head ||
	       ctx->tick % TICKS_CONNECT == 0 || !ctx->polled || ctx->idle > TICKS_IDLE;
}

int rail_progress(struct rail_ctx *ctx)
{
	uint32_t before = ctx->events, events;

	/* An upcall may not call back: its caller is in the middle of a list. */
	if (unlikely(ctx->progressing))
		return 0;
	ctx->progressing = true;
	ctx->tick++;
	ctx->events += rail_rings_poll(ctx);
	if (unlikely(is_rare_due(ctx)))
		progress_rare(ctx);
	ctx->progressing = false;
	events = ctx->events - before;
	ctx->idle = events ? 0 : ctx->idle + 1;
	return (int)events;
}

int rail_progress_whole(struct rail_ctx *ctx)
{
	const uint32_t before = ctx->events;
	uint32_t came;

	if (ctx->progressing)
		return 0;
	ctx->progressing = true;
	ctx->events += rail_rings_poll_all(ctx);
	rail_cq_poll(ctx);
	ctx->progressing = false;
	came = ctx->events - before;
	ctx->tick |= TICKS_SLOW - 1;	/* the next call polls everything else */
	return (int)came + rail_progress(ctx);
}

bool rail_connects(const struct rail_ctx *ctx)
{
	for (const struct rail_peer *peer = ctx->working; peer; peer = peer->next_working)
		if (!peer->connected && !peer->error)
			return true;
	return false;
}

bool rail_busy(const struct rail_ctx *ctx)
{
	return ctx->ops || ctx->working;
}
