/* limits.c - limits of adapters, met before the job starts. */
#include <stdint.h>
#include <stdio.h>

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

/* "2 ranks there, each with 3 peers"; of a narrow job some have more on the adapter than others. */
static const char *connections_text(const struct rail_plan_node *node, uint64_t connections, bool alike,
				    char *buf, size_t size)
{
	const uint64_t peers = rail_plan_reached(node), itself = peers == node->ranks;
	const unsigned ranks = (unsigned)node->processes, others = (unsigned)(peers - itself);

	if (alike)
		snprintf(buf, size, "%u rank%s there, each with %u peer%s%s", ranks, ranks == 1 ? "" : "s", others,
			 others == 1 ? "" : "s", itself ? " and itself" : "");
	else
		snprintf(buf, size, "%u rank%s there, with %llu connection%s in all", ranks, ranks == 1 ? "" : "s",
			 (unsigned long long)connections, connections == 1 ? "" : "s");
	return buf;
}

static uint32_t objects_of(const struct rail_ctx *ctx, int adapter)
{
	for (int r = 0; r < ctx->rail_count; r++)
		if (ctx->rail[r].adapter == adapter)
			return ctx->rail[r].port->objects;
	return 0;
}

static void objects_check(const struct rail_ctx *ctx, int adapter)
{
	const struct rail_plan_node node = config_node(&ctx->cfg, ctx->local < 0);
	const struct rail_plan_peer peer = ctx_plan_peer(ctx);
	const uint64_t all = rail_plan_objects(&peer, &node, ctx_rails_on(ctx, adapter), ctx->narrow);
	const uint32_t has = objects_of(ctx, adapter);

	if (has && all > has)
		rg_warn("the control group of %s has %u objects of %s (rdma.max); %u rank%s there would take %llu when "
			"all have met: connections beyond fail (fewer ranks a node, --rails, --qps)", ctx->host, has,
			ibv_get_device_name(ctx->adapter[adapter].context->device), (unsigned)node.processes,
			node.processes == 1 ? "" : "s", (unsigned long long)all);
}

static void queue_pairs_check(const struct rail_ctx *ctx, int adapter)
{
	const struct vrb_adapter *a = &ctx->adapter[adapter];
	const struct rail_plan_node node = config_node(&ctx->cfg, ctx->local < 0);
	const struct rail_plan_peer peer = ctx_plan_peer(ctx);
	const uint32_t on = ctx_rails_on(ctx, adapter);
	const uint64_t all = rail_plan_pairs(&peer, &node, on, ctx->narrow);
	const uint64_t connections = rail_plan_connections(&node, node.first, node.processes, peer.rails, on,
							   ctx->narrow);
	const bool alike = !ctx->narrow || on == (UINT32_C(1) << peer.rails) - 1;
	char text[96];

	if (a->attr.max_qp > 0 && all > (uint64_t)a->attr.max_qp)
		rg_warn("%s of %s has %d queue pairs; %s x %llu%s, would take %llu: connections beyond fail "
			"(fewer ranks a node, --rails, --qps)", ibv_get_device_name(a->context->device), ctx->host,
			a->attr.max_qp, connections_text(&node, connections, alike, text, sizeof(text)),
			(unsigned long long)((all - (on & 1) * node.processes) / (connections ? connections : 1)),
			on & 1 ? " and 1 for datagrams" : "", (unsigned long long)all);
}

/* A warning says where even a narrow job's completion queues are too many (bounds.c). */
static void queues_check(const struct rail_ctx *ctx)
{
	const struct rail_plan_node node = config_node(&ctx->cfg, ctx->local < 0);
	const struct rail_plan_peer peer = ctx_plan_peer(ctx);
	const unsigned adapters = (unsigned)ctx->adapter_count;
	const uint64_t others = rail_plan_reached(&node) - (rail_plan_reached(&node) == node.ranks);
	struct rail_plan_adapter of[RAIL_ALL];

	for (unsigned a = 0; a < adapters; a++)
		of[a] = (struct rail_plan_adapter){ ctx_rails_on(ctx, (int)a), (uint32_t)ctx->adapter[a].attr.max_cqe };
	if (ctx->cq_bytes && !rail_plan_queues(&peer, &node, of, adapters, ctx->narrow, ctx->cq_bytes))
		rg_warn("a process of %s may lock %llu KiB for completion queues; those of connections with %llu "
			"other rank%s take up to %llu: connections beyond fail (ulimit -l, fewer ranks, --rails, --qps)",
			ctx->host, (unsigned long long)(ctx->cq_bytes >> 10),
			(unsigned long long)others, others == 1 ? "" : "s",
			(unsigned long long)(rail_plan_queues(&peer, &node, of, adapters, ctx->narrow, UINT64_MAX) >> 10));
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
		if (ctx_rails_on(ctx, a)) {
			queue_pairs_check(ctx, a);
			objects_check(ctx, a);
		}
	queues_check(ctx);
	return 0;
}
