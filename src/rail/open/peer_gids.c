/* peer_gids.c - see peer_gids.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/open/common.h"
#include "rail/open/peer_gids.h"
#include "rail/open/rail_ctx.h"
#include "util/err.h"

struct gid_pair {
	struct vrb_gid here, there;
};

struct rail_gids {
	uint32_t rails;			/* those whose GIDs differ, as bits */
	unsigned *host_of;		/* [peers] */
	struct gid_pair (*pair)[RAIL_MAX];	/* [hosts] */
};

/* Hosts are numbered by their lowest ranks, which are their nodes. */
static void hosts_find(const struct rail_config *cfg, unsigned *host_of)
{
	unsigned hosts = 0;

	for (unsigned i = 0; i < cfg->peer_count; i++)
		host_of[i] = cfg->node_of[i] == i ? hosts++ : host_of[cfg->node_of[i]];
}

static void pairs_find(const struct rail_hosts *h, int rail, struct gid_pair (*pair)[RAIL_MAX])
{
	for (unsigned host = 0; host < h->hosts; host++) {
		uint8_t here = 0, there = 0;
		const struct choice_port *own = &h->host[h->mine]->port[h->choice.end[h->mine][rail].port];
		const struct choice_port *theirs = &h->host[host]->port[h->choice.end[host][rail].port];

		choice_gid_pair(&h->choice, (unsigned)rail, h->mine, host, &here, &there);
		pair[host][rail] = (struct gid_pair){ own->tables.gid[here], theirs->tables.gid[there] };
	}
}

static uint32_t rails_that_differ(const struct choice *c)
{
	uint32_t rails = 0;

	for (unsigned r = 0; r < c->rails; r++)
		rails |= (uint32_t)c->pairwise[r] << r;
	return rails;
}

int rail_gids_make(struct rail_ctx *ctx, const struct rail_hosts *h)
{
	const uint32_t rails = rails_that_differ(&h->choice);
	struct rail_gids *g;

	if (!rails || !ctx->cfg.node_of)
		return 0;
	g = ctx->gids = calloc(1, sizeof(*g));
	if (g) {
		g->host_of = calloc(ctx->cfg.peer_count, sizeof(*g->host_of));
		g->pair = calloc(h->hosts, sizeof(*g->pair));
	}
	if (!g || !g->host_of || !g->pair) {
		rg_error("no memory for the GIDs of %u hosts", h->hosts);
		return -ENOMEM;
	}
	g->rails = rails;
	hosts_find(&ctx->cfg, g->host_of);
	for (int r = 0; r < (int)h->choice.rails; r++)
		pairs_find(h, r, g->pair);
	return 0;
}

void rail_gids_free(struct rail_ctx *ctx)
{
	if (!ctx->gids)
		return;
	free(ctx->gids->host_of);
	free(ctx->gids->pair);
	free(ctx->gids);
	ctx->gids = NULL;
}

bool rail_gids_differ(const struct rail_ctx *ctx, int rail)
{
	return ctx->gids && rail < RAIL_MAX && ctx->gids->rails >> rail & 1;
}

const struct vrb_port *rail_port_towards(const struct rail_ctx *ctx, int rail, unsigned peer,
					 struct vrb_port *copy)
{
	if (!rail_gids_differ(ctx, rail))
		return ctx->rail[rail].port;
	*copy = *ctx->rail[rail].port;
	vrb_port_use_gid(copy, &ctx->gids->pair[ctx->gids->host_of[peer]][rail].here);
	return copy;
}

void rail_gid_there(const struct rail_ctx *ctx, int rail, unsigned peer, unsigned char *gid)
{
	if (rail_gids_differ(ctx, rail))
		memcpy(gid, ctx->gids->pair[ctx->gids->host_of[peer]][rail].there.raw, VRB_GID_BYTES);
}
