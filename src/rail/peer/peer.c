/* peer.c - a peer: its lanes, their memory, and the endpoint info of both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/lane/eager_lane.h"
#include "rail/peer/endpoint_info.h"
#include "util/err.h"
#include "rail/message/landing.h"
#include "rail/lane/lane.h"
#include "rail/lane/lane_ring.h"
#include "rail/memory/mr.h"
#include "rail/message/op_queue.h"
#include "rail/peer/bound_rail.h"
#include "rail/plan.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "rail/lane/cq.h"
#include "rail/open/peer_gids.h"
#include "rail/open/rail_ctx.h"
#include "rail/memory/memory.h"
#include "rail/peer/peer.h"
#include "rail/lane/pool.h"
#include "rail/message/rail_record.h"
#include "rail/message/rndv.h"
#include "util/random.h"
#include "rail/message/rate_estimate.h"
#include "rail/lane/ring.h"
#include "rail/lane/staging.h"
#include "rail/message/stripe.h"
#include "verbs/vrb.h"

/* ---- The block: grants and rings, one registration per adapter ---------- */

enum {
	GRANT_STRIDE = 64,		/* no two words in one cache line */
};

/* A lane's receives are of one SRQ. */
static uint32_t slots_most(const struct vrb_adapter *a)
{
	return a->attr.max_srq > 0 && a->attr.max_srq_wr > 0 ? (uint32_t)a->attr.max_srq_wr :
							       UINT32_MAX;
}

static void geometry_choose(const struct rail_peer *peer, struct rail_geometry *g)
{
	const struct rail_ctx *ctx = peer->ctx;
	const struct rail_plan_share share = peer->polled ?
		rail_plan_ring(ctx->plan_ranks, ctx->eager_max, peer->copies) :
		rail_plan_send(ctx->plan_ranks, ctx->eager_max, ctx->cq_most);

	memset(g, 0, sizeof(*g));
	g->polled = peer->polled;
	g->slots = share.slots;
	for (int k = 0; k < peer->rail_count && !g->polled; k++)
		while (g->slots > slots_most(&ctx->adapter[peer_adapter(peer, k)]))
			g->slots /= 2;
	g->slot_bytes = share.slot_bytes;
	g->units = share.units;
	for (int k = 0; k < peer->rail_count && g->polled; k++)
		g->trailing |= !ctx->adapter[peer_adapter(peer, k)].in_order_writes;
	g->key = g->trailing ? rg_random() : 0;
}

static size_t ring_bytes(const struct rail_geometry *g)
{
	const struct rail_plan_share share = { g->slots, g->slot_bytes, g->units };

	/* Lanes by SEND use the adapter's buffers (pool.c). */
	return g->polled ? rail_plan_ring_bytes(&share) : 0;
}

unsigned char *rail_block_grant_in(const struct rail_peer *peer, int role)
{
	return peer->block + role * GRANT_STRIDE;
}

unsigned char *rail_block_grant_out(const struct rail_peer *peer, int role)
{
	return peer->block + (LANE_ROLES + role) * GRANT_STRIDE;
}

unsigned char *rail_block_ring(const struct rail_peer *peer, int role)
{
	return peer->block + 2 * LANE_ROLES * GRANT_STRIDE + role * ring_bytes(&peer->geometry);
}

static int block_make(struct rail_peer *peer)
{
	struct rail_ctx *ctx = peer->ctx;
	int rc = 0;

	_Static_assert(2 * LANE_ROLES * GRANT_STRIDE == RAIL_PLAN_GRANTS, "as planned");
	geometry_choose(peer, &peer->geometry);
	peer->inboxes = peer->rail_count > 1 && peer->rx_k ? LANE_ROLES : 1;
	peer->block_bytes = 2 * LANE_ROLES * GRANT_STRIDE +
			    (size_t)peer->inboxes * ring_bytes(&peer->geometry);
	peer->block = rail_memory_map(ctx, peer->block_bytes);
	if (!peer->block) {
		rg_error("no memory for the eager lanes of peer %u (%zu bytes)", peer->index,
			 peer->block_bytes);
		return -ENOMEM;
	}
	for (int k = 0; k < peer->rail_count && !rc; k++) {
		int a = peer_adapter(peer, k);

		if (!peer->block_mr[a])
			rc = vrb_mr_register(&ctx->adapter[a], peer->block, peer->block_bytes,
					     VRB_MR_POLLED, &peer->block_mr[a]);
	}
	if (rc)
		rg_error("cannot register %zu bytes for peer %u: %s%s", peer->block_bytes,
			 peer->index, strerror(-rc), rail_mr_hint(rc));
	return rc;
}

/* ---- Lanes -------------------------------------------------------------- */

static int lane_number(struct rail_ctx *ctx, struct rail_lane *lane)
{
	uint32_t capacity = ctx->lane_capacity ? 2 * ctx->lane_capacity : 64;
	struct rail_lane **grown;

	if (ctx->lane_count == ctx->lane_capacity) {
		grown = realloc(ctx->lane, capacity * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		ctx->lane = grown;
		ctx->lane_capacity = capacity;
	}
	lane->id = ctx->lane_count;
	ctx->lane[ctx->lane_count++] = lane;
	lane->numbered = true;
	return 0;
}

/* The longest record with its payload. */
static uint32_t lane_eager_bytes(const struct rail_ctx *ctx)
{
	return (uint32_t)ctx->eager_max + sizeof(struct rail_slot);
}

/*
 * Bytes that a request of an eager lane carries inline.  Hardware pays for it in every request's size; a
 * software HCA copies anyway, and the longest messages that may go eagerly by choice are one copy then.
 */
static uint32_t lane_inline_bytes(const struct rail_lane *lane)
{
	const struct rail_ctx *ctx = lane->ctx;
	const uint32_t eager = lane_eager_bytes(ctx);

	if (ctx->adapter[ctx->rail[lane->rail].adapter].kind != VRB_SOFTHCA)
		return 256;
	return lane->peer->copies && ctx->plan_ranks <= RAIL_PLAN_FEW && eager < EAGER_CHOICE_BYTES ?
		(uint32_t)EAGER_CHOICE_BYTES : eager;
}

/* The receives of a lane: a bulk lane's are landings; of an eager one its slots, if it does not poll. */
static uint32_t lane_receives(const struct rail_lane *lane, bool bulk)
{
	return bulk ? lane->ctx->bulk_depth : lane->peer->polled ? 0 : lane->peer->geometry.slots;
}

/* The limits include a request and, but for an SRQ, a receive for vrb_qp_stop_marked. */
static void lane_limits(const struct rail_lane *lane, bool bulk, const struct ibv_srq *srq,
			struct vrb_qp_limits *want)
{
	*want = (struct vrb_qp_limits){
		.send_wr = lane->sq_depth + 1,
		.recv_wr = srq ? 0 : lane_receives(lane, bulk) + 1,
		.send_sge = 2,
		.recv_sge = 1,
		.inline_bytes = bulk ? 0 : lane_inline_bytes(lane),
	};
}

static int lane_make(struct rail_peer *peer, struct rail_lane *lane, int k, bool bulk)
{
	struct rail_ctx *ctx = peer->ctx;
	int rail = peer->rail[k], adapter = ctx->rail[rail].adapter;
	struct ibv_srq *srq = NULL;
	struct vrb_qp_limits want;
	uint32_t entries;
	int rc;

	lane->ctx = ctx;
	lane->peer = peer;
	lane->rail = rail;
	lane->ledger = &ctx->rail[rail].ledger;
	lane->k = k;
	lane->sq_depth = bulk ? ctx->bulk_depth : RAIL_PLAN_EAGER_SQ;
	if (bulk) {
		lane->sent = calloc(ctx->bulk_depth, sizeof(*lane->sent));
		if (!lane->sent)
			return -ENOMEM;
	}
	rc = lane_number(ctx, lane);
	if (!rc && !bulk && !peer->polled)
		rc = rail_pool_take(lane, &peer->geometry, &srq);
	lane_limits(lane, bulk, srq, &want);
	entries = want.send_wr + (srq ? lane_receives(lane, bulk) : want.recv_wr);
	if (!rc)
		rc = rail_cq_take(ctx, adapter, entries, &lane->cq);
	if (rc)
		return rc;
	lane->cq_entries = entries;
	rc = vrb_qp_create(&ctx->adapter[adapter], ctx->rail[rail].port, lane->cq->cq, srq, &want,
			   &lane->qp);
	if (!rc && bulk)
		rc = rail_receives_start(lane);
	if (!rc && !bulk && lane->qp.granted.inline_bytes < lane_eager_bytes(ctx))
		rc = rail_staging_make(ctx);
	return rc;
}

void rail_lane_drop(struct rail_lane *lane)
{
	vrb_qp_destroy(&lane->qp);
	if (lane->cq)
		rail_cq_give(lane->cq, lane->cq_entries);
	lane->cq = NULL;
	rail_pool_give(lane);
	free(lane->sent);
	lane->sent = NULL;
	if (lane->numbered)
		lane->ctx->lane[lane->id] = NULL;
	lane->numbered = false;
}

/* ---- Endpoint info ------------------------------------------------------- */

void rail_peer_place(struct rail_peer *peer, enum rail_place place)
{
	peer->crossing.place = peer->row.peer_place = (uint8_t)place;
	peer->ctx->places |= (uint8_t)(1u << place);
}

/*
 * The rail on which this process sends small messages to that peer.  The local rank decides: each
 * process sends one rail further to lower ranks, so that with one process per node each sends on
 * one rail and receives on the other, and every rail stays on its subnet (P1).
 */
int rail_peer_bound(const struct rail_peer *peer)
{
	const struct rail_ctx *ctx = peer->ctx;
	unsigned further = ctx->settings.bind == RAIL_BIND_RANK && ctx->cfg.index > peer->index;

	if (ctx->plan_ranks >= RAIL_PLAN_MANY)
		return (int)((ctx->cfg.index + peer->index) % (unsigned)peer->rail_count);
	return (int)((ctx->bound + further) % (unsigned)peer->rail_count);
}

/* The rail on which the peer sends; -1: its address has not come, or not those of its node. */
static int peer_sends_on(const struct rail_peer *peer)
{
	const struct rail_ctx *ctx = peer->ctx;
	const int bound = peer->demand ? rail_bound_of(ctx, peer->index, peer->local_rank) : -1;
	const unsigned further = ctx->settings.bind == RAIL_BIND_RANK && peer->index > ctx->cfg.index;

	if (ctx->plan_ranks >= RAIL_PLAN_MANY || peer->rail_count == 1)
		return rail_peer_bound(peer);
	return bound < 0 ? -1 : (int)(((unsigned)bound + further) % (unsigned)peer->rail_count);
}

/* Has the peer an eager lane on its rail k?  No lane is made that neither end uses. */
static bool is_eager_rail(const struct rail_peer *peer, int k)
{
	return k == 0 || peer->rx_k < 0 || k == peer->rx_k || k == rail_peer_bound(peer);
}

unsigned rail_peer_index(const struct rail_peer *peer)
{
	return peer->index;
}

const char *rail_peer_failure(const struct rail_peer *peer)
{
	return peer->why ? peer->why : "it is gone";
}

static void endpoint_rail_write(const struct rail_peer *peer, int k, struct endpoint_rail *info)
{
	const struct rail_ctx *ctx = peer->ctx;
	struct vrb_port copy;
	const struct vrb_port *port = rail_port_towards(ctx, peer->rail[k], peer->index, &copy);
	const bool eager = peer->eager[k].qp.qp;
	int a = peer_adapter(peer, k);

	vrb_qp_address(&ctx->adapter[a], eager ? &peer->eager[k].qp : &peer_bulk(peer, k, 0)->qp,
		       port, &info->port);
	if (!eager)
		info->port.qpn = 0;
	for (int q = 0; q < peer->qps; q++)
		info->bulk[q] = peer_bulk(peer, k, q)->qp.qp->qp_num;
	memcpy(info->subnet, port->subnet, sizeof(port->subnet));
	info->rkey = peer->block_mr[a]->rkey;
	info->lane = peer->eager[k].id;
	info->gid_type = port->gid_type;
}

static void endpoint_info_write(const struct rail_peer *peer, unsigned char *bytes)
{
	const struct rail_ctx *ctx = peer->ctx;
	const struct rail_geometry *g = &peer->geometry;
	struct endpoint_info info = {
		.magic = ENDPOINT_INFO_MAGIC,
		.index = ctx->cfg.index,
		.wanted_peer = peer->index,
		.tx_k = (uint32_t)rail_peer_bound(peer),
		.rail_count = (uint32_t)peer->rail_count,
		.chunk = ctx->settings.chunk,
		.eager = ctx->eager_max,
		.threshold = ctx->settings.threshold,
		.key = g->key,
		.slots = g->slots,
		.units = g->units,
		.slot_bytes = g->slot_bytes,
		.qps = (uint32_t)peer->qps,
		.polled = g->polled,
		.trailing = g->trailing,
		.chunk_most = (uint32_t)peer->chunk_most,
	};

	for (int role = 0; role < LANE_ROLES; role++) {
		info.ring[role] = role < peer->inboxes ? (uintptr_t)rail_block_ring(peer, role) : 0;
		info.grant[role] = (uintptr_t)rail_block_grant_in(peer, role);
	}
	for (int k = 0; k < peer->rail_count; k++)
		endpoint_rail_write(peer, k, &info.rail[k]);
	memset(bytes, 0, ENDPOINT_INFO_BYTES);
	memcpy(bytes, &info, sizeof(info));
}

/* All queue pairs of a rail start at the same packet number: endpoint info holds one. */
static int rail_lanes_make(struct rail_peer *peer, int k)
{
	const bool eager = is_eager_rail(peer, k);
	int rc = eager ? lane_make(peer, &peer->eager[k], k, false) : 0;

	for (int q = 0; q < peer->qps && !rc; q++) {
		struct rail_lane *lane = peer_bulk(peer, k, q);

		rc = lane_make(peer, lane, k, true);
		lane->qp.psn = eager ? peer->eager[k].qp.psn : peer_bulk(peer, k, 0)->qp.psn;
	}
	return rc;
}

/* An interface whose speed is unknown has one: it is measured, from equal speeds on. */
static void rates_assume(const struct rail_peer *peer, uint64_t nominal[RAIL_MAX])
{
	bool unknown = false;

	for (int k = 0; k < peer->rail_count; k++) {
		const struct vrb_port *port = peer->ctx->rail[peer->rail[k]].port;

		nominal[k] = port->rate_bytes_per_s;
		unknown |= port->net && !port->rate_bytes_per_s;
	}
	for (int k = 0; unknown && k < peer->rail_count; k++)
		nominal[k] = 1;
}

static void estimates_start(struct rail_peer *peer)
{
	uint64_t nominal[RAIL_MAX];

	rates_assume(peer, nominal);
	rail_estimate_init(&peer->writing, peer->rail_count, nominal);
	rail_estimate_init(&peer->reading, peer->rail_count, nominal);
}

bool rail_peer_copies(const struct rail_peer *peer)
{
	return peer->copies;
}

static uint64_t chunk_of(const struct rail_peer *peer)
{
	const struct rail_ctx *ctx = peer->ctx;

	if (ctx->settings.chunk)
		return ctx->settings.chunk;
	if (!ctx->rail[peer->rail[0]].port->net)
		return RAIL_CHUNK_BYTES;
	return peer->rail_count == 1 ? RAIL_CHUNK_NET_BYTES : RAIL_CHUNK_NETS_BYTES;
}

static void rails_choose(struct rail_peer *peer)
{
	struct rail_ctx *ctx = peer->ctx;

	if (ctx->local >= 0 && config_shares_node(&ctx->cfg, peer->index)) {
		peer->rail_count = 1;
		peer->rail[0] = (uint8_t)ctx->local;
	} else if (ctx->narrow) {
		peer->rail_count = 1;
		peer->rail[0] = (uint8_t)rail_plan_rail(config_number(&ctx->cfg, ctx->cfg.index),
							config_number(&ctx->cfg, peer->index),
							(uint32_t)ctx->rail_count);
	} else {
		peer->rail_count = ctx->rail_count;
		for (int k = 0; k < peer->rail_count; k++)
			peer->rail[k] = (uint8_t)k;
	}
	estimates_start(peer);
	peer->polled = peer->copies = true;
	peer->chunk = chunk_of(peer);
	peer->chunk_most = RAIL_CHUNK_MAX_BYTES;
	for (int k = 0; k < peer->rail_count; k++) {
		const struct vrb_adapter *adapter = &ctx->adapter[peer_adapter(peer, k)];
		const struct vrb_port *port = ctx->rail[peer->rail[k]].port;

		if (port->message_max < peer->chunk_most)
			peer->chunk_most = port->message_max;
		peer->polled &= rail_adapter_polls(adapter);
		peer->copies &= adapter->copies;
	}
}

/* Until the peer is connected, messages to it wait. */
static int hold_eager(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		      size_t bytes)
{
	(void)tx;
	(void)header;
	(void)payload;
	(void)bytes;
	return 0;
}

static int hold_control(struct rail_tx *tx, unsigned kind, const struct rail_header *header,
			uint64_t word, const void *payload)
{
	(void)tx;
	(void)kind;
	(void)header;
	(void)word;
	(void)payload;
	return 0;
}

static struct rail_peer *peer_make(struct rail_ctx *ctx, unsigned index)
{
	struct rail_peer *peer = aligned_alloc(64, (sizeof(*peer) + 63) & ~(size_t)63);

	if (!peer)
		return NULL;
	memset(peer, 0, sizeof(*peer));
	peer->ctx = ctx;
	peer->index = index;
	for (int i = 0; i < LANDINGS; i++)
		peer->landing[i].next_free = (uint8_t)(i + 1);
	for (int role = 0; role < LANE_ROLES; role++) {
		peer->tx[role].eager = hold_eager;
		peer->tx[role].control = hold_control;
		queue_init(&peer->tx[role].waiting);
	}
	peer->tx_count = 1;
	for (int p = 0; p < RAIL_POLICIES; p++)
		peer->route[p] = &peer->tx[LANE_SINGLE];
	queue_init(&peer->accepting);
	queue_init(&peer->cutting);
	queue_init(&peer->pulling);
	queue_init(&peer->slicing);
	rails_choose(peer);
	peer->qps = (int)ctx->settings.qps;
	return peer;
}

int rail_peer_new(struct rail_ctx *ctx, unsigned index, struct rail_peer **out)
{
	if (index >= ctx->cfg.peer_count || ctx->peer[index]) {
		rg_error("peer %u: %s", index, index < ctx->cfg.peer_count ?
			 "is added already" : "is beyond the number of peers");
		return -EINVAL;
	}
	*out = peer_make(ctx, index);
	if (*out)
		return 0;
	rg_error("no memory for peer %u", index);
	return -ENOMEM;
}

int rail_peer_prepare(struct rail_peer *peer, unsigned char info[ENDPOINT_INFO_BYTES])
{
	int rc;

	peer->bulk = calloc((size_t)(peer->rail_count * peer->qps), sizeof(*peer->bulk));
	if (!peer->bulk) {
		rg_error("no memory for the lanes of peer %u", peer->index);
		return -ENOMEM;
	}
	peer->rx_k = peer_sends_on(peer);
	rc = block_make(peer);
	for (int k = 0; k < peer->rail_count && !rc; k++)
		rc = rail_lanes_make(peer, k);
	if (!rc)
		endpoint_info_write(peer, info);
	return rc;
}

void rail_peer_free(struct rail_peer *peer)
{
	for (int k = 0; k < peer->rail_count && peer->bulk; k++) {
		rail_lane_drop(&peer->eager[k]);
		for (int q = 0; q < peer->qps; q++)
			rail_lane_drop(peer_bulk(peer, k, q));
	}
	for (int a = 0; a < RAIL_ALL; a++)
		vrb_mr_deregister(peer->block_mr[a]);
	if (peer->block)
		rail_memory_unmap(peer->ctx, peer->block, peer->block_bytes);
	free(peer->bulk);
	free(peer->why);
	free(peer);
}
