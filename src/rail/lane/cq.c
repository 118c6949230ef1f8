/* cq.c - completions: each one finds its lane or adapter, and is handled there. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/message/chunks.h"
#include "util/clock.h"
#include "util/compiler.h"
#include "util/err.h"
#include "rail/message/landing.h"
#include "rail/lane/lane.h"
#include "rail/peer/on_demand.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "rail/lane/cq.h"
#include "rail/open/events.h"
#include "rail/open/peer_gids.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/peer/reach.h"
#include "rail/plan.h"
#include "rail/lane/pool.h"
#include "rail/lane/staging.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"

enum { CQ_BATCH = 32 };

static void wanted_came(struct rail_ctx *ctx)
{
	if (ctx->cq_wanted)
		ctx->cq_wanted--;
}

/* The peer's datagrams tell why it is lost or, on a wire, the connection itself. */
static int why_lost(const struct rail_lane *lane, const char **why)
{
	const struct rail *rail = &lane->ctx->rail[lane->rail];
	const int known = rail_on_demand_why(lane->peer, why);

	return known ? known : vrb_qp_lost(&lane->ctx->adapter[rail->adapter], rail->port, &lane->qp, why);
}

static void completion_failed(struct rail_lane *lane, const struct ibv_wc *wc)
{
	struct rail_peer *peer = lane->peer;
	const struct rail *rail = &lane->ctx->rail[lane->rail];
	const struct vrb_port *port = rail->port;
	bool receive = wr_kind(wc->wr_id) == WR_LANDING || wr_kind(wc->wr_id) == WR_RECEIVE;

	const char *why = "";
	char ends[REACH_ENDS_BYTES];
	struct vrb_port copy;
	bool cut;
	int known = 0;

	/* An event may tell why. */
	if (!peer->error)
		rail_events_read(lane->ctx, rg_now_ns());
	if (peer->error)
		return;
	/* The software HCA flushes the requests of a connection whose other end has died. */
	if (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR)
		known = why_lost(lane, &why);
	if (rail->down_ns) {
		known = -ENETUNREACH;
		why = "the port here is DOWN";
	}
	cut = !known || known == -ENETUNREACH;
	rail_reach_ends(rail_port_towards(lane->ctx, lane->rail, peer->index, &copy), &peer->there[lane->k], ends);
	if (known || wc->status == IBV_WC_RETRY_EXC_ERR)
		rail_peer_fail_together(peer, cut ? ends : NULL, known == -ECONNRESET ? -ESRCH : -ECONNRESET,
					"connection lost over %s (%s%s%s; %s)%s%s", port->name,
					ibv_wc_status_str(wc->status), known ? ": " : "", why, ends,
					cut ? "; " : "", !cut ? "" : known && !port->net ? RAIL_ADVICE : rail_link_advice(port));
	else
		rail_peer_fail(peer, -ECONNRESET, "%s: %s request: %s (vendor 0x%x)", port->name,
			       receive ? "receive" : "send", ibv_wc_status_str(wc->status),
			       wc->vendor_err);
}

/* Completions of a queue pair come in order, so the counter is the number of requests done. */
static void lane_reclaim(struct rail_lane *lane, const struct ibv_wc *wc)
{
	lane->sq_done += (uint16_t)(wr_count(wc->wr_id) - lane->sq_done);
}

static void completion_handle(struct rail_ctx *ctx, const struct ibv_wc *wc)
{
	uint32_t id = wr_lane(wc->wr_id);
	struct rail_lane *lane = id < ctx->lane_count ? ctx->lane[id] : NULL;
	bool ok = wc->status == IBV_WC_SUCCESS;

	if (wr_kind(wc->wr_id) == WR_MARK) {
		ctx->marks_out--;
		return;
	}
	if (wr_kind(wc->wr_id) == WR_RECEIVE) {
		lane = rail_pool_arrived(ctx, wc);
		if (unlikely(lane))
			completion_failed(lane, wc);
		return;
	}
	if (!lane)
		return;
	if (unlikely(!ok))
		completion_failed(lane, wc);
	switch (wr_kind(wc->wr_id)) {
	case WR_STAGED:
		rail_staging_put(&ctx->staging, wr_value(wc->wr_id));
		/* fall through */
	case WR_EAGER:
		if (ok) {
			wanted_came(ctx);
			lane_reclaim(lane, wc);
		}
		break;
	case WR_PROBE:
		/* Chunks are counted, flushed ones too. */
		wanted_came(ctx);
		lane->sq_done++;
		break;
	case WR_CHUNK:
		wanted_came(ctx);
		rail_chunk_sent(lane);
		break;
	case WR_LANDING:
		if (ok)
			rail_chunk_landed(lane, ntohl(wc->imm_data), wc->byte_len,
					  wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM);
		break;
	}
}

/* True: a full batch, which may have left some. */
static bool cq_poll(struct rail_ctx *ctx, struct ibv_cq *cq)
{
	struct ibv_wc wc[CQ_BATCH];
	int n = ibv_poll_cq(cq, CQ_BATCH, wc);

	ctx->completed_ns = 0;
	for (int i = 0; i < n; i++)
		completion_handle(ctx, &wc[i]);
	if (n > 0)
		ctx->events += (uint32_t)n;
	return n == CQ_BATCH;
}

void rail_cq_poll(struct rail_ctx *ctx)
{
	uint64_t look_ns = unlikely(ctx->measured) ? rg_now_ns() : 0;
	bool more = false;

	for (int c = 0; c < ctx->cq_count; c++)
		more |= cq_poll(ctx, ctx->cq[c]->cq);
	/* A full batch may have left some.  Chunks posted meanwhile set looked_ns themselves. */
	if (!more && look_ns > ctx->looked_ns)
		ctx->looked_ns = look_ns;
}

void rail_cq_poll_some(struct rail_ctx *ctx)
{
	const int some = ctx->adapter_count + 1;

	/* The times between polls count while rates are measured. */
	if (ctx->cq_count <= some || ctx->measured) {
		rail_cq_poll(ctx);
		return;
	}
	for (int i = 0; i < some; i++)
		cq_poll(ctx, ctx->cq[ctx->cq_turn++ % (uint32_t)ctx->cq_count]->cq);
}

/*
 * The requests of a lane on an adapter that has failed have no completions any more: they count as
 * flushed, and any that come all the same find no lane.
 */
static void lane_abandon(struct rail_lane *lane)
{
	struct rail_ctx *ctx = lane->ctx;

	if (!lane->numbered)
		return;
	ctx->lane[lane->id] = NULL;
	lane->numbered = false;
	while (lane->sent && lane->sq_done != lane->sq_posted) {
		wanted_came(ctx);
		if (lane->sent[lane->sq_done % lane->sq_depth].op)
			rail_chunk_sent(lane);
		else
			lane->sq_done++;
	}
}

void rail_cq_abandon(struct rail_peer *peer, int adapter)
{
	for (int k = 0; k < peer->rail_count && peer->bulk; k++) {
		if (peer_adapter(peer, k) != adapter)
			continue;
		lane_abandon(&peer->eager[k]);
		for (int q = 0; q < peer->qps; q++)
			lane_abandon(peer_bulk(peer, k, q));
	}
}

/* ---- Room --------------------------------------------------------------- */

/* Entries for all peers over an adapter's rails; the adapter of the local rail has the peers of the node. */
static uint64_t entries_of_peers(const struct rail_ctx *ctx, const struct rail_plan_peer *peer, int adapter)
{
	const struct rail_plan_node node = config_node(&ctx->cfg, ctx->local < 0);
	const uint32_t on = ctx_rails_on(ctx, adapter);
	struct rail_plan_peer local = *peer;

	local.rails = 1;
	return on ? rail_plan_entries(peer, &node, (int64_t)config_number(&ctx->cfg, ctx->cfg.index), on,
				      ctx->narrow) :
		    node.processes * rail_plan_most(&local).cq_entries;
}

/* Entries that the queues made so far lack, for lanes by SENDs, which take most. */
static uint64_t entries_missing(const struct rail_ctx *ctx, const struct rail_plan_peer *peer, int adapter)
{
	uint64_t entries = entries_of_peers(ctx, peer, adapter);
	const uint32_t lane = rail_plan_lane_entries(peer);

	for (int c = 0; c < ctx->cq_count; c++) {
		const uint32_t holds = rail_plan_cq_holds(ctx->cq[c]->entries, lane);

		if (ctx->cq[c]->adapter == adapter)
			entries -= entries < holds ? entries : holds;
	}
	return entries;
}

static uint32_t cq_size(const struct rail_ctx *ctx, int adapter, uint32_t entries)
{
	const struct rail_plan_peer peer = ctx_plan_peer(ctx);
	const uint32_t lane = rail_plan_lane_entries(&peer), most = (uint32_t)ctx->adapter[adapter].attr.max_cqe;

	return rail_plan_cq_size(entries_missing(ctx, &peer, adapter), entries > lane ? entries : lane, most);
}

/* A device has a limit, and each entry may be locked memory: smaller queues may fit where one does not. */
static struct ibv_cq *cq_create(struct ibv_context *context, uint32_t *room, uint32_t least)
{
	struct ibv_cq *cq;

	while (!(cq = ibv_create_cq(context, (int)*room, NULL, NULL, 0)) && *room / 2 >= least)
		*room /= 2;
	return cq;
}

static int cq_make(struct rail_ctx *ctx, int adapter, uint32_t entries, struct rail_cq **out)
{
	const struct vrb_adapter *a = &ctx->adapter[adapter];
	const uint32_t most = (uint32_t)a->attr.max_cqe, size = cq_size(ctx, adapter, entries);
	struct rail_cq *cq;
	char why[160];
	int rc;

	if (ctx->cq_count == RAIL_CQ_MAX || entries > most) {
		if (entries > most)
			rg_error("%s: %u completion queue entries needed, the device has %u",
				 ibv_get_device_name(a->context->device), entries, most);
		else
			rg_error("%s: %d completion queues of up to %u entries are in use: no more (fewer peers, --rails)",
				 ibv_get_device_name(a->context->device), RAIL_CQ_MAX, most);
		return -ENOSPC;
	}
	cq = malloc(sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->room = size;
	cq->adapter = adapter;
	errno = 0;
	cq->cq = cq_create(a->context, &cq->room, entries);
	if (!cq->cq) {
		rc = errno ? -errno : -EIO;
		rg_error("%s: cannot make a completion queue of %u entries, nor of fewer: %s",
			 ibv_get_device_name(a->context->device), size,
			 vrb_cq_refused(a, size, rc, why, sizeof(why)));
		free(cq);
		return rc;
	}
	cq->entries = cq->room;
	ctx->cq[ctx->cq_count++] = cq;
	*out = cq;
	return 0;
}

int rail_cq_take(struct rail_ctx *ctx, int adapter, uint32_t entries, struct rail_cq **out)
{
	struct rail_cq *cq = NULL;
	int rc = 0;

	for (int c = 0; c < ctx->cq_count && !cq; c++)
		if (ctx->cq[c]->adapter == adapter && ctx->cq[c]->room >= entries)
			cq = ctx->cq[c];
	if (!cq)
		rc = cq_make(ctx, adapter, entries, &cq);
	if (rc)
		return rc;
	cq->room -= entries;
	*out = cq;
	return 0;
}

void rail_cq_give(struct rail_cq *cq, uint32_t entries)
{
	cq->room += entries;
}

void rail_cq_free(struct rail_ctx *ctx)
{
	while (ctx->cq_count) {
		struct rail_cq *cq = ctx->cq[--ctx->cq_count];

		ibv_destroy_cq(cq->cq);
		free(cq);
	}
}
