/* peer.c - offers and connections: what two processes must know of each other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "err.h"
#include "rail_int.h"

/* ---- The offer ---------------------------------------------------------- */

#define OFFER_MAGIC 0x31306c6961726772ull	/* "rgrail01": another byte order reads another */

struct offer_rail {
	struct vrb_address eager, bulk;
	unsigned char subnet[VRB_GID_BYTES];
	uint8_t adapter, gid_type, pad[2];
};

struct offer {
	uint64_t magic;
	uint32_t index, wanted_peer, local_rank, rail_count;
	uint64_t eager, threshold;
	uint64_t ring[LANE_ROLES], grant[LANE_ROLES];	/* addresses in the offering process */
	uint64_t key;
	uint32_t slots, units, slot_bytes;
	uint8_t polled, trailing, pad[2];
	uint32_t rkey[RAIL_MAX];			/* of its block, by adapter */
	struct offer_rail rail[RAIL_MAX];
};

_Static_assert(sizeof(struct offer) <= RAIL_OFFER_BYTES, "an offer fits");

/* ---- The block: grants and rings, one registration per adapter ---------- */

enum { GRANT_STRIDE = 64 };	/* no two words in one cache line */

static void geometry_choose(const struct rail_ctx *ctx, struct rail_geometry *g)
{
	uint64_t key = 0;

	memset(g, 0, sizeof(*g));
	g->polled = ctx->polled;
	if (ctx->polled) {
		g->slots = RING_SLOTS;
		g->slot_bytes = sizeof(struct rail_slot);
		g->units = RING_BYTES_MIN / RAIL_UNIT_BYTES;
		while ((uint64_t)g->units * RAIL_UNIT_BYTES < 4 * (ctx->eager_max + sizeof(key)))
			g->units *= 2;
		for (int a = 0; a < ctx->adapter_count; a++)
			g->trailing |= !ctx->adapter[a].in_order_writes;
	} else {
		/* Fewer buffers each for many peers: 8192 in all, 16 to 128 per lane. */
		g->slots = 128;
		while (g->slots > 16 && g->slots * ctx->cfg.peer_count > 8192)
			g->slots /= 2;
		g->slot_bytes = (uint32_t)(sizeof(struct rail_slot) + ctx->eager_max + 63) & ~63u;
	}
	if (g->trailing && getrandom(&key, sizeof(key), GRND_NONBLOCK) != sizeof(key))
		key = (uint64_t)(uintptr_t)&key * 0x9e3779b97f4a7c15u;
	g->key = key;
}

static size_t ring_bytes(const struct rail_geometry *g)
{
	return (size_t)g->slots * g->slot_bytes + (size_t)g->units * RAIL_UNIT_BYTES;
}

static unsigned char *block_grant_in(const struct rail_peer *peer, int role)
{
	return peer->block + role * GRANT_STRIDE;
}

static unsigned char *block_grant_out(const struct rail_peer *peer, int role)
{
	return peer->block + (LANE_ROLES + role) * GRANT_STRIDE;
}

static unsigned char *block_ring(const struct rail_peer *peer, int role)
{
	return peer->block + 2 * LANE_ROLES * GRANT_STRIDE + role * ring_bytes(&peer->geometry);
}

static int block_make(struct rail_peer *peer)
{
	struct rail_ctx *ctx = peer->ctx;
	int roles = ctx->rail_count > 1 ? LANE_ROLES : 1;
	int rc = 0;

	geometry_choose(ctx, &peer->geometry);
	peer->block_bytes = 2 * LANE_ROLES * GRANT_STRIDE +
			    (size_t)roles * ring_bytes(&peer->geometry);
	peer->block = rail_memory_map(ctx, peer->block_bytes);
	if (!peer->block) {
		rg_error("no memory for the eager lanes of peer %u (%zu bytes)", peer->index,
			 peer->block_bytes);
		return -ENOMEM;
	}
	for (int a = 0; a < ctx->adapter_count && !rc; a++)
		rc = vrb_mr_register(&ctx->adapter[a], peer->block, peer->block_bytes,
				     VRB_MR_POLLED, &peer->block_mr[a]);
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

/* One request and one receive more than are used: for vrb_qp_stop_marked. */
static int lane_make(struct rail_peer *peer, struct rail_lane *lane, int r, bool bulk)
{
	struct rail_ctx *ctx = peer->ctx;
	struct vrb_adapter *adapter = &ctx->adapter[ctx->rail[r].adapter];
	uint32_t eager_bytes = (uint32_t)ctx->eager_max + sizeof(struct rail_slot);
	struct vrb_qp_limits want = {
		.send_wr = (bulk ? ctx->bulk_depth : EAGER_SQ) + 1,
		.recv_wr = (bulk ? ctx->bulk_depth : ctx->polled ? 0 : peer->geometry.slots) + 1,
		.send_sge = 2,
		.recv_sge = 1,
		/* A software HCA copies anyway; hardware pays for it in every request's size. */
		.inline_bytes = bulk ? 0 : adapter->kind == VRB_SOFTHCA ? eager_bytes : 256,
	};
	int rc;

	lane->ctx = ctx;
	lane->peer = peer;
	lane->rail = r;
	lane->sq_depth = bulk ? ctx->bulk_depth : EAGER_SQ;
	lane->rq_free = bulk ? ctx->bulk_depth : 0;
	if (bulk) {
		lane->sq_op = calloc(ctx->bulk_depth, sizeof(*lane->sq_op));
		if (!lane->sq_op)
			return -ENOMEM;
	}
	rc = lane_number(ctx, lane);
	if (!rc)
		rc = vrb_qp_create(adapter, ctx->rail[r].port, &want, &lane->qp);
	if (!rc && !bulk && lane->qp.granted.inline_bytes < eager_bytes)
		rc = rail_staging_make(ctx);
	return rc;
}

static void lane_drop(struct rail_lane *lane)
{
	vrb_qp_destroy(&lane->qp);
	free(lane->sq_op);
	lane->sq_op = NULL;
	if (lane->numbered)
		lane->ctx->lane[lane->id] = NULL;
	lane->numbered = false;
}

/* ---- Offering ----------------------------------------------------------- */

static void offer_write(const struct rail_peer *peer, unsigned char *bytes)
{
	const struct rail_ctx *ctx = peer->ctx;
	const struct rail_geometry *g = &peer->geometry;
	struct offer o = {
		.magic = OFFER_MAGIC,
		.index = ctx->cfg.index,
		.wanted_peer = peer->index,
		.local_rank = ctx->cfg.local_rank,
		.rail_count = (uint32_t)ctx->rail_count,
		.eager = ctx->eager_max,
		.threshold = ctx->settings.threshold,
		.key = g->key,
		.slots = g->slots,
		.units = g->units,
		.slot_bytes = g->slot_bytes,
		.polled = g->polled,
		.trailing = g->trailing,
	};

	for (int k = 0; k < LANE_ROLES; k++) {
		o.ring[k] = (uintptr_t)block_ring(peer, k);
		o.grant[k] = (uintptr_t)block_grant_in(peer, k);
	}
	for (int a = 0; a < ctx->adapter_count; a++)
		o.rkey[a] = peer->block_mr[a]->rkey;
	for (int r = 0; r < ctx->rail_count; r++) {
		const struct vrb_port *port = ctx->rail[r].port;

		vrb_qp_address(&peer->eager[r].qp, port, &o.rail[r].eager);
		vrb_qp_address(&peer->bulk[r].qp, port, &o.rail[r].bulk);
		memcpy(o.rail[r].subnet, port->subnet, sizeof(port->subnet));
		o.rail[r].adapter = (uint8_t)ctx->rail[r].adapter;
		o.rail[r].gid_type = port->gid_type;
	}
	memset(bytes, 0, RAIL_OFFER_BYTES);
	memcpy(bytes, &o, sizeof(o));
}

int rail_peer_offer(struct rail_ctx *ctx, unsigned index, struct rail_peer **out,
		    unsigned char offer[RAIL_OFFER_BYTES])
{
	struct rail_peer *peer;
	int rc;

	if (index >= ctx->cfg.peer_count || ctx->peer[index]) {
		rg_error("peer %u: %s", index, index < ctx->cfg.peer_count ?
			 "has an offer already" : "is beyond the number of peers");
		return -EINVAL;
	}
	peer = aligned_alloc(64, (sizeof(*peer) + 63) & ~(size_t)63);
	if (!peer) {
		rg_error("no memory for peer %u", index);
		return -ENOMEM;
	}
	memset(peer, 0, sizeof(*peer));
	peer->ctx = ctx;
	peer->index = index;
	for (int i = 0; i < LANDINGS; i++)
		peer->landing[i].next_free = (uint8_t)(i + 1);
	queue_init(&peer->accepting);
	queue_init(&peer->cutting);
	rc = block_make(peer);
	for (int r = 0; r < ctx->rail_count && !rc; r++) {
		rc = lane_make(peer, &peer->eager[r], r, false);
		if (!rc)
			rc = lane_make(peer, &peer->bulk[r], r, true);
	}
	if (rc) {
		rail_peer_free(peer);
		return rc;
	}
	offer_write(peer, offer);
	ctx->peer[index] = peer;
	*out = peer;
	return 0;
}

void rail_peer_free(struct rail_peer *peer)
{
	for (int r = 0; r < RAIL_MAX; r++) {
		lane_drop(&peer->eager[r]);
		lane_drop(&peer->bulk[r]);
		vrb_mr_deregister(peer->block_mr[r]);
	}
	if (peer->block)
		rail_memory_unmap(peer->ctx, peer->block, peer->block_bytes);
	free(peer);
}

/* ---- Agreeing ----------------------------------------------------------- */

static int disagree(const struct rail_peer *peer, const char *what, uint64_t theirs, uint64_t ours)
{
	rg_error("peer %u has %s %llu, this process %llu: give all processes the same", peer->index,
		 what, (unsigned long long)theirs, (unsigned long long)ours);
	return -EPROTO;
}

static int offer_check(const struct rail_peer *peer, const struct offer *o)
{
	const struct rail_ctx *ctx = peer->ctx;
	bool polled = o->polled;

	if (o->magic != OFFER_MAGIC) {
		rg_error("peer %u speaks another version of librail, or is of another byte order",
			 peer->index);
		return -EPROTO;
	}
	if (o->index != peer->index || o->wanted_peer != ctx->cfg.index) {
		rg_error("the offer of peer %u for peer %u came to peer %u as that of peer %u",
			 o->index, o->wanted_peer, ctx->cfg.index, peer->index);
		return -EPROTO;
	}
	if (o->rail_count != (uint32_t)ctx->rail_count)
		return disagree(peer, "a number of rails (--rails) of", o->rail_count,
				(uint64_t)ctx->rail_count);
	if (o->eager != ctx->eager_max)
		return disagree(peer, "--eager", o->eager, ctx->eager_max);
	if (o->threshold != ctx->settings.threshold)
		return disagree(peer, "--threshold", o->threshold, ctx->settings.threshold);
	for (int r = 0; r < ctx->rail_count; r++) {
		const struct vrb_port *port = ctx->rail[r].port;
		const struct offer_rail *theirs = &o->rail[r];

		if (theirs->adapter >= RAIL_MAX || theirs->eager.link_layer != port->link_layer ||
		    theirs->gid_type != port->gid_type ||
		    memcmp(theirs->subnet, port->subnet, sizeof(port->subnet))) {
			rg_error("rail %d (%s) is on another subnet than rail %d of peer %u: "
				 "order the ports by --rails so that rail i meets rail i",
				 r, port->name, r, peer->index);
			return -ENETUNREACH;
		}
	}
	if (!o->slots || o->slots & (o->slots - 1) || o->units & (o->units - 1) ||
	    (polled && (!o->units || o->slot_bytes != sizeof(struct rail_slot)))) {
		rg_error("peer %u offers eager lanes of a shape that makes no sense", peer->index);
		return -EPROTO;
	}
	return 0;
}

/* ---- Connecting --------------------------------------------------------- */

/*
 * The rail on which `from` sends small messages to `to`: by local rank, and one
 * further towards lower ranks, so that with one process per node each sends on
 * one rail and receives on the other, and no rail crosses subnets.
 */
static int bound_rail(unsigned local_rank, unsigned from, unsigned to, int rail_count)
{
	return (int)((local_rank + (from > to ? 1 : 0)) % (unsigned)rail_count);
}

static void tx_make(struct rail_peer *peer, int role, int r, const struct offer *o)
{
	struct rail_tx *tx = &peer->tx[role];

	tx->lane = &peer->eager[r];
	tx->slots = o->slots;
	tx->units = o->units;
	tx->grant = (const _Atomic uint64_t *)(const void *)block_grant_in(peer, role);
	tx->slots_addr = o->ring[role];
	tx->bytes_addr = o->ring[role] + (uint64_t)o->slots * o->slot_bytes;
	tx->rkey = o->rkey[o->rail[r].adapter];
	tx->trailing = o->trailing;
	tx->key = o->key;
	queue_init(&tx->waiting);
	if (o->polled)
		rail_ring_tx_init(tx);
	else
		rail_send_tx_init(tx);
	peer->tx_count = role + 1;
}

static int poll_add(struct rail_ctx *ctx, struct rail_rx *rx)
{
	struct rail_poll *grown;

	grown = realloc(ctx->poll, (size_t)(ctx->poll_count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	ctx->poll = grown;
	ctx->poll[ctx->poll_count++] = (struct rail_poll){
		.mark = &((struct rail_slot *)(void *)rx->slots)->record.mark,
		.seq = rx->seq,
		.rx = rx,
	};
	return 0;
}

static int rx_make(struct rail_peer *peer, int role, int r, const struct offer *o)
{
	struct rail_ctx *ctx = peer->ctx;
	struct rail_rx *rx = &peer->rx[role];
	struct rail_lane *lane = &peer->eager[r];

	rx->lane = lane;
	rx->seq = 1;
	rx->geometry = peer->geometry;
	rx->slots = block_ring(peer, role);
	rx->bytes = rx->slots + (size_t)rx->geometry.slots * rx->geometry.slot_bytes;
	rx->grant_word = (uint64_t *)(void *)block_grant_out(peer, role);
	rx->sge = (struct ibv_sge){
		.addr = (uintptr_t)rx->grant_word,
		.length = sizeof(*rx->grant_word),
		.lkey = peer->block_mr[ctx->rail[r].adapter]->lkey,
	};
	rx->wr = (struct ibv_send_wr){
		.wr_id = wr_id(lane->id, WR_EAGER, 0, 0),
		.sg_list = &rx->sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = lane->qp.granted.inline_bytes >= rx->sge.length ? IBV_SEND_INLINE : 0,
		.wr.rdma = {
			.remote_addr = o->grant[role],
			.rkey = o->rkey[o->rail[r].adapter],
		},
	};
	peer->rx_count = role + 1;
	return ctx->polled ? poll_add(ctx, rx) : rail_send_rx_start(rx);
}

static int lanes_connect(struct rail_peer *peer, const struct offer *o, int tx_rail, int rx_rail)
{
	struct rail_ctx *ctx = peer->ctx;
	int rc = 0;

	for (int r = 0; r < ctx->rail_count && !rc; r++) {
		struct vrb_adapter *adapter = &ctx->adapter[ctx->rail[r].adapter];
		const struct vrb_port *port = ctx->rail[r].port;

		rc = vrb_qp_connect(adapter, &peer->bulk[r].qp, port, &o->rail[r].bulk);
		if (r != 0 && r != tx_rail && r != rx_rail)
			lane_drop(&peer->eager[r]);
		else if (!rc)
			rc = vrb_qp_connect(adapter, &peer->eager[r].qp, port, &o->rail[r].eager);
		peer->adapter_of[r] = o->rail[r].adapter;
	}
	return rc;
}

int rail_peer_connect(struct rail_peer *peer, const unsigned char theirs[RAIL_OFFER_BYTES])
{
	struct rail_ctx *ctx = peer->ctx;
	struct offer o;
	int rc, tx_rail, rx_rail;

	memcpy(&o, theirs, sizeof(o));
	rc = offer_check(peer, &o);
	if (rc)
		return rc;
	tx_rail = bound_rail(ctx->cfg.local_rank, ctx->cfg.index, peer->index, ctx->rail_count);
	rx_rail = bound_rail(o.local_rank, peer->index, ctx->cfg.index, ctx->rail_count);
	rc = lanes_connect(peer, &o, tx_rail, rx_rail);
	if (rc)
		return rc;
	tx_make(peer, LANE_SINGLE, 0, &o);
	if (tx_rail)
		tx_make(peer, LANE_BOUND, tx_rail, &o);
	peer->route[RAIL_SINGLE] = &peer->tx[LANE_SINGLE];
	peer->route[RAIL_BIND] = peer->route[RAIL_STRIPE] = &peer->tx[tx_rail ? LANE_BOUND :
								       LANE_SINGLE];
	rc = rx_make(peer, LANE_SINGLE, 0, &o);
	if (!rc && rx_rail)
		rc = rx_make(peer, LANE_BOUND, rx_rail, &o);
	if (rc) {
		rg_error("cannot receive from peer %u: %s", peer->index, strerror(-rc));
		return rc;
	}
	peer->connected = true;
	return 0;
}
