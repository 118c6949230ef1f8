/* cq.c - completions: whose they are, and what they mean. */
#include <arpa/inet.h>
#include <errno.h>

#include "rail_int.h"

static void wanted_came(struct rail_ctx *ctx)
{
	if (ctx->cq_wanted)
		ctx->cq_wanted--;
}

static void failed(struct rail_lane *lane, const struct ibv_wc *wc)
{
	struct rail_peer *peer = lane->peer;
	bool receive = wr_kind(wc->wr_id) == WR_RECEIVE || wr_kind(wc->wr_id) == WR_LANDING;

	if (!peer->error)
		rail_peer_fail(peer, -ECONNRESET, "%s: %s request: %s (vendor 0x%x)",
			       lane->ctx->rail[lane->rail].port->name, receive ? "receive" : "send",
			       ibv_wc_status_str(wc->status), wc->vendor_err);
}

/* Completions of one queue pair come in order, so the counter says how many are done. */
static void reclaim(struct rail_lane *lane, const struct ibv_wc *wc)
{
	lane->sq_done += (uint16_t)(wr_count(wc->wr_id) - lane->sq_done);
}

static void complete(struct rail_ctx *ctx, const struct ibv_wc *wc)
{
	uint32_t id = wr_lane(wc->wr_id);
	struct rail_lane *lane = id < ctx->lane_count ? ctx->lane[id] : NULL;
	bool ok = wc->status == IBV_WC_SUCCESS;

	if (wr_kind(wc->wr_id) == WR_MARK) {
		ctx->marks_out--;
		return;
	}
	if (!lane)
		return;
	if (unlikely(!ok))
		failed(lane, wc);
	switch (wr_kind(wc->wr_id)) {
	case WR_STAGED:
		rail_staging_put(ctx, wr_value(wc->wr_id));
		/* fall through */
	case WR_EAGER:
		if (ok) {
			wanted_came(ctx);
			reclaim(lane, wc);
		}
		break;
	case WR_RECEIVE:
		if (ok)
			rail_send_arrived(lane->rx, wr_value(wc->wr_id), wc->byte_len);
		break;
	case WR_CHUNK:
		wanted_came(ctx);
		rail_chunk_sent(lane);
		break;
	case WR_LANDING:
		wanted_came(ctx);
		lane->rq_free++;
		if (ok)
			rail_chunk_landed(lane, ntohl(wc->imm_data), wc->byte_len);
		break;
	}
}

void rail_cq_poll(struct rail_ctx *ctx)
{
	struct ibv_wc wc[CQ_BATCH];

	for (int a = 0; a < ctx->adapter_count; a++) {
		int n = ibv_poll_cq(ctx->adapter[a].cq, CQ_BATCH, wc);

		for (int i = 0; i < n; i++)
			complete(ctx, &wc[i]);
		if (n > 0)
			ctx->events += (uint32_t)n;
	}
}
