/*
 * pool.c - receive buffers that the SEND lanes of an adapter share: an SRQ, and another one when it is
 * full (mlx4 has 16,383 requests, about 500 peers'; mlx5 twice as many).  On an adapter that has
 * none, or none left, each lane has its own ones in its queue pair.
 *
 * Every lane that is connected adds as many buffers as it grants its sender.  So a sender
 * with credit always finds one, and any message may take any buffer.  The receive that
 * completes does not name its lane.  The sender therefore puts the number of the receiver's
 * lane, from its endpoint info, into the immediate.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/lane/eager_lane.h"
#include "util/compiler.h"
#include "util/err.h"
#include "rail/lane/lane.h"
#include "rail/lane/lane_send.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/memory/memory.h"
#include "rail/lane/pool.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"

enum { RAIL_POOL_MAX = 1 << 20 };	/* receive buffers of an adapter: 20 bits number them */

/* The buffers that one lane adds. */
struct block {
	unsigned char *memory;
	struct ibv_mr *mr;
};

struct rail_pool {
	struct rail_ctx *ctx;
	uint32_t id;			/* ctx->pool[id] is this pool */
	int adapter;
	uint32_t taken;			/* requests for the lanes that it has, of most */
	struct ibv_srq *srq;		/* NULL: the adapter has none */
	uint32_t per_block, buffer_bytes, most;
	struct block *block;
	uint32_t block_count, block_capacity;
};

/* ---- Making ------------------------------------------------------------- */

static size_t pool_block_bytes(const struct rail_pool *pool)
{
	return (size_t)pool->per_block * pool->buffer_bytes;
}

/* NULL: the adapter has none, or none is left of those it has. */
static struct ibv_srq *srq_make(const struct vrb_adapter *a, uint32_t requests)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = requests, .max_sge = 1 } };

	return a->attr.max_srq > 0 && a->attr.max_srq_wr > 0 ? ibv_create_srq(a->pd, &init) : NULL;
}

/* Receives of a pool: as many as all peers' lanes add, of a limit. */
static uint32_t pool_most(const struct rail_ctx *ctx, const struct rail_geometry *g, int limit)
{
	const uint64_t wanted = (uint64_t)g->slots * LANE_ROLES * ctx->cfg.peer_count;
	const uint64_t most = limit > 0 && limit < RAIL_POOL_MAX ? (uint64_t)limit : RAIL_POOL_MAX;

	return (uint32_t)(wanted < most ? wanted : most);
}

static int pool_make(struct rail_ctx *ctx, int adapter, const struct rail_geometry *g,
		     struct rail_pool **out)
{
	const struct vrb_adapter *a = &ctx->adapter[adapter];
	struct rail_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pool->ctx = ctx;
	pool->id = ctx->pool_count;
	pool->adapter = adapter;
	pool->per_block = g->slots;
	pool->buffer_bytes = g->slot_bytes;
	pool->most = pool_most(ctx, g, a->attr.max_srq_wr);
	pool->srq = srq_make(a, pool->most);
	if (!pool->srq)
		pool->most = pool_most(ctx, g, 0);
	*out = pool;
	return 0;
}

static int pool_add(struct rail_ctx *ctx, int adapter, const struct rail_geometry *g,
		    struct rail_pool **out)
{
	struct rail_pool **grown = realloc(ctx->pool, (ctx->pool_count + 1) * sizeof(*grown));
	int rc;

	if (!grown)
		return -ENOMEM;
	ctx->pool = grown;
	rc = pool_make(ctx, adapter, g, out);
	if (!rc)
		ctx->pool[ctx->pool_count++] = *out;
	return rc;
}

int rail_pool_take(struct rail_lane *lane, const struct rail_geometry *g, struct ibv_srq **out)
{
	struct rail_ctx *ctx = lane->ctx;
	const int adapter = ctx->rail[lane->rail].adapter;
	struct rail_pool *pool = NULL;
	int rc = 0;

	for (uint32_t i = 0; i < ctx->pool_count && !pool; i++)
		if (ctx->pool[i]->adapter == adapter && ctx->pool[i]->per_block == g->slots &&
		    ctx->pool[i]->taken + g->slots <= ctx->pool[i]->most)
			pool = ctx->pool[i];
	if (!pool)
		rc = pool_add(ctx, adapter, g, &pool);
	if (rc)
		return rc;
	pool->taken += g->slots;
	lane->pool = pool;
	*out = pool->srq;
	return 0;
}

void rail_pool_give(struct rail_lane *lane)
{
	/* Buffers that were added stay. */
	if (lane->pool && !lane->rx)
		lane->pool->taken -= lane->pool->per_block;
	lane->pool = NULL;
}

void rail_pools_free(struct rail_ctx *ctx)
{
	while (ctx->pool_count) {
		struct rail_pool *pool = ctx->pool[--ctx->pool_count];

		if (pool->srq)
			ibv_destroy_srq(pool->srq);
		for (uint32_t b = 0; b < pool->block_count; b++) {
			vrb_mr_deregister(pool->block[b].mr);
			rail_memory_unmap(ctx, pool->block[b].memory, pool_block_bytes(pool));
		}
		free(pool->block);
		free(pool);
	}
	free(ctx->pool);
	ctx->pool = NULL;
}

/* ---- Buffers ------------------------------------------------------------ */

static unsigned char *pool_buffer_at(const struct rail_pool *pool, uint32_t which)
{
	return pool->block[which / pool->per_block].memory +
	       (size_t)(which % pool->per_block) * pool->buffer_bytes;
}

static int buffer_post(struct rail_pool *pool, struct rail_lane *lane, uint32_t which)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)pool_buffer_at(pool, which),
		.length = pool->buffer_bytes,
		.lkey = pool->block[which / pool->per_block].mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = wr_id(pool->id, WR_RECEIVE, 0, which),
		.sg_list = &sge,
		.num_sge = 1,
	};

	return pool->srq ? ibv_post_srq_recv(pool->srq, &wr, &bad) :
			   ibv_post_recv(lane->qp.qp, &wr, &bad);
}

static struct block *block_add(struct rail_pool *pool)
{
	uint32_t capacity = pool->block_capacity ? 2 * pool->block_capacity : 16;
	struct block *grown;

	if (pool->block_count < pool->block_capacity)
		return &pool->block[pool->block_count];
	grown = realloc(pool->block, capacity * sizeof(*grown));
	if (!grown)
		return NULL;
	pool->block = grown;
	pool->block_capacity = capacity;
	return &pool->block[pool->block_count];
}

int rail_pool_add(struct rail_lane *lane)
{
	struct rail_ctx *ctx = lane->ctx;
	const int adapter = ctx->rail[lane->rail].adapter;
	struct rail_pool *pool = lane->pool;
	struct block *b = block_add(pool);
	uint32_t first = pool->block_count * pool->per_block;
	int rc;

	if (!b)
		return -ENOMEM;
	if (first + pool->per_block > pool->most)
		return -ENOSPC;
	b->memory = rail_memory_map(ctx, pool_block_bytes(pool));
	if (!b->memory)
		return -ENOMEM;
	rc = vrb_mr_register(&ctx->adapter[adapter], b->memory, pool_block_bytes(pool), VRB_MR_POLLED,
			     &b->mr);
	if (rc) {
		rail_memory_unmap(ctx, b->memory, pool_block_bytes(pool));
		return rc;
	}
	pool->block_count++;
	for (uint32_t i = 0; i < pool->per_block && !rc; i++)
		rc = -buffer_post(pool, lane, first + i);
	return rc;
}

/* ---- Arrivals ----------------------------------------------------------- */

/* A failed completion names only its queue pair. */
static struct rail_lane *lane_of_qp(const struct rail_ctx *ctx, uint32_t qpn, int adapter)
{
	for (uint32_t i = 0; i < ctx->lane_count; i++) {
		struct rail_lane *lane = ctx->lane[i];

		if (lane && lane->qp.qp && lane->qp.qp->qp_num == qpn &&
		    ctx->rail[lane->rail].adapter == adapter)
			return lane;
	}
	return NULL;
}

static struct rail_lane *lane_of(const struct rail_ctx *ctx, const struct ibv_wc *wc, int adapter)
{
	uint32_t id = ntohl(wc->imm_data);
	struct rail_lane *lane;

	if (unlikely(wc->status != IBV_WC_SUCCESS || !(wc->wc_flags & IBV_WC_WITH_IMM) ||
		     id >= ctx->lane_count))
		return NULL;
	lane = ctx->lane[id];
	return likely(lane && lane->rx && lane->qp.qp->qp_num == wc->qp_num &&
		      ctx->rail[lane->rail].adapter == adapter) ? lane : NULL;
}

static void unknown_lane(struct rail_lane *lane, const struct ibv_wc *wc)
{
	if (lane)
		rail_peer_fail(lane->peer, -EPROTO, "%s: receive request: %s",
			       lane->ctx->rail[lane->rail].port->name, wc->status == IBV_WC_SUCCESS ?
			       "a message for no lane" : ibv_wc_status_str(wc->status));
}

struct rail_lane *rail_pool_arrived(struct rail_ctx *ctx, const struct ibv_wc *wc)
{
	struct rail_pool *pool = ctx->pool[wr_lane(wc->wr_id)];
	uint32_t which = wr_value(wc->wr_id);
	struct rail_lane *lane = lane_of(ctx, wc, pool->adapter);
	int rc;

	if (unlikely(!lane)) {
		lane = lane_of_qp(ctx, wc->qp_num, pool->adapter);
		if (pool->srq)
			buffer_post(pool, NULL, which);
		if (wc->status == IBV_WC_WR_FLUSH_ERR)
			return lane;
		unknown_lane(lane, wc);
		return NULL;
	}
	rail_send_arrived(lane->rx, pool_buffer_at(pool, which), wc->byte_len);
	rc = buffer_post(pool, lane, which);
	if (unlikely(rc))
		rail_lane_refused(lane, rc);
	else
		rail_send_taken(lane->rx);
	return NULL;
}
