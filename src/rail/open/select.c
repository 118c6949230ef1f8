/* select.c - the choice of ports as rails. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "rail/rail.h"
#include "rail/open/common.h"
#include "rail/open/rail_ctx.h"
#include "rail/open/options.h"
#include "rail/open/select.h"
#include "rail/open/wanted.h"
#include "softhca/softhca.h"
#include "verbs/vrb.h"

static bool device_exists(const char *name, size_t length)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;

	for (int i = 0; list && list[i] && !found; i++)
		found = !softhca_is_device(list[i]) && strlen(ibv_get_device_name(list[i])) == length &&
			!memcmp(ibv_get_device_name(list[i]), name, length);
	if (list)
		ibv_free_device_list(list);
	return found;
}

bool rail_soft_is_named(const struct rail_settings *set)
{
	const char *rails = set->rails;

	return rails && !strncmp(rails, "soft", 4) && !device_exists(rails, strcspn(rails, ":,;"));
}

static int by_order(const void *left, const void *right)
{
	const struct rail *a = left, *b = right;

	return vrb_port_order(a->port, b->port);
}

static int select_all(struct rail_ctx *ctx)
{
	int chosen[RAIL_MAX], active, rc = 0;
	char why[512];
	int count = vrb_ports_choose(&ctx->ports, RAIL_MAX, chosen, &active);

	for (int i = 0; i < count && !rc; i++)
		rc = rail_add(ctx, &ctx->ports.port[chosen[i]]);
	if (rc)
		return rc;
	if (active > RAIL_MAX)
		rg_warn("--rails all: of %d ACTIVE ports %d are left out", active,
			active - RAIL_MAX);
	/* --gid-index may change the subnet, so sort afterwards. */
	qsort(ctx->rail, (size_t)ctx->rail_count, sizeof(ctx->rail[0]), by_order);
	if (ctx->rail_count)
		return 0;
	vrb_ports_why_none(&ctx->ports, "", why, sizeof(why));
	rg_error("--rails all: this host has no ACTIVE RDMA port (%s)",
		 *why ? why : "the kernel shows no device");
	return -ENODEV;
}

static int select_named(struct rail_ctx *ctx)
{
	struct vrb_port *port[RAIL_MAX];
	int count = rail_ports_wanted(&ctx->settings, &ctx->ports, port, RAIL_MAX);
	int rc = count < 0 ? count : 0;

	for (int i = 0; i < count && !rc; i++)
		rc = rail_add(ctx, port[i]);
	return rc;
}

int rail_select(struct rail_ctx *ctx)
{
	char host[256];
	const char *rails = rail_list_here(&ctx->settings, host);

	if (!rails)
		return -EINVAL;
	if (ctx->cfg.hosts)
		return rail_common_select(ctx);
	return rail_list_is_all(rails) ? select_all(ctx) : select_named(ctx);
}
