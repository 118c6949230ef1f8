/* limits.c - limits of adapters, met before the job starts. */
#include <stdint.h>

#include "rail/open/rail_ctx.h"
#include "rail/peer/endpoint_info.h"
#include "rail/peer/peer.h"
#include "rail/plan.h"
#include "rail/programs.h"
#include "util/err.h"
#include "verbs/vrb.h"

/* A peer of another node, which only the rails reach; NULL: there is none. */
static const struct rail_peer *remote_peer(const struct rail_ctx *ctx)
{
	for (unsigned i = 0; i < ctx->cfg.peer_count; i++)
		if (ctx->peer[i] && i != ctx->cfg.index && !peer_is_local(ctx->peer[i]))
			return ctx->peer[i];
	return NULL;
}

/* All that a connection takes is made.  Completion queues and shared receive queues stay for later. */
static int connection_try(struct rail_ctx *ctx, unsigned index)
{
	unsigned char info[ENDPOINT_INFO_BYTES];
	struct rail_peer *peer, *added = ctx->peer[index];
	int rc;

	ctx->peer[index] = NULL;
	rc = rail_peer_new(ctx, index, &peer);
	ctx->peer[index] = added;
	if (rc)
		return rc;
	rc = rail_peer_prepare(peer, info);
	rail_peer_free(peer);
	return rc;
}

static unsigned ranks_here(const struct rail_ctx *ctx)
{
	unsigned ranks = 0;

	for (unsigned i = 0; i < ctx->cfg.peer_count; i++)
		ranks += i == ctx->cfg.index || config_shares_node(&ctx->cfg, i);
	return ranks;
}

static unsigned rails_of(const struct rail_ctx *ctx, int adapter)
{
	unsigned rails = 0;

	for (int r = 0; r < ctx->rail_count; r++)
		rails += ctx->rail[r].adapter == adapter;
	return rails;
}

/* The upper bound of `railgauge topo --ranks`, of the rails on an adapter. */
static unsigned pairs_of_peer(const struct rail_ctx *ctx, int adapter)
{
	const struct rail_plan_peer peer = { .ranks = ctx->cfg.peer_count, .rails = rails_of(ctx, adapter),
					     .qps = (uint32_t)ctx->settings.qps };

	return ctx->narrow ? rail_plan_narrow(&peer).queue_pairs : rail_plan_most(&peer).queue_pairs;
}

/* Has the peer, which may be this process, a rail on the adapter? */
static bool is_on(const struct rail_peer *peer, int adapter)
{
	for (int k = 0; peer && k < peer->rail_count; k++)
		if (peer_adapter(peer, k) == adapter && !peer_is_local(peer))
			return true;
	return false;
}

static unsigned peers_on(const struct rail_ctx *ctx, int adapter)
{
	unsigned peers = 0;

	for (unsigned i = 0; i < ctx->cfg.peer_count; i++)
		peers += is_on(ctx->peer[i], adapter);
	return peers;
}

static void queue_pairs_check(const struct rail_ctx *ctx, int adapter)
{
	const struct vrb_adapter *a = &ctx->adapter[adapter];
	const unsigned ranks = ranks_here(ctx), pairs = pairs_of_peer(ctx, adapter);
	const unsigned peers = peers_on(ctx, adapter), itself = is_on(ctx->peer[ctx->cfg.index], adapter);
	const bool first = adapter == ctx->rail[0].adapter;
	const uint64_t most = (uint64_t)ranks * ((uint64_t)peers * pairs + first);

	if (a->attr.max_qp > 0 && most > (uint64_t)a->attr.max_qp)
		rg_warn("%s of %s has %d queue pairs; %u rank%s there, each with %u peer%s%s x %u%s, would take "
			"%llu: connections beyond fail (fewer ranks a node, --rails, --qps)",
			ibv_get_device_name(a->context->device), ctx->host, a->attr.max_qp,
			ranks, ranks == 1 ? "" : "s", peers - itself, peers - itself == 1 ? "" : "s",
			itself ? " and itself" : "", pairs, first ? " and 1 for datagrams" : "",
			(unsigned long long)most);
}

int rail_limits_check(struct rail_ctx *ctx)
{
	const struct rail_peer *remote = remote_peer(ctx);
	int rc;

	if (!remote || ctx->adapter[ctx->rail[0].adapter].kind == VRB_SOFTHCA)
		return 0;
	rc = connection_try(ctx, remote->index);
	if (rc || ctx->cfg.local_rank)
		return rc;
	for (int a = 0; a < ctx->adapter_count; a++)
		if (rails_of(ctx, a))
			queue_pairs_check(ctx, a);
	return 0;
}
