/* select.c - the choice of ports as rails. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/err.h"
#include "util/opt.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/open/options.h"
#include "rail/open/select.h"
#include "verbs/vrb.h"

enum { NAMES_TEXT = 512 };

/* The names that --rails accepts: "soft0:1, soft0:2". */
static const char *accepted_names(const struct vrb_ports *ports, char *text, size_t size)
{
	size_t used = 0;

	snprintf(text, size, "none: there is no port");
	for (int i = 0; i < ports->count && used < size; i++)
		if (ports->port[i].usable && ports->port[i].state == IBV_PORT_ACTIVE)
			used += (size_t)snprintf(text + used, size - used, "%s%s",
						 used ? ", " : "", ports->port[i].name);
	return text;
}

static struct vrb_port *port_by_name(const struct vrb_ports *ports, const char *name, size_t length)
{
	for (int i = 0; i < ports->count; i++)
		if (strlen(ports->port[i].name) == length &&
		    !memcmp(ports->port[i].name, name, length))
			return &ports->port[i];
	return NULL;
}

static int rail_add(struct rail_ctx *ctx, struct vrb_port *port)
{
	const struct rail_settings *set = &ctx->settings;
	struct vrb_port_wish wish = {
		.gid_index = set->gid_index == RAIL_AUTO ? -1 : (int)set->gid_index,
		.mtu_bytes = set->mtu == RAIL_AUTO ? 0 : (uint32_t)set->mtu,
		.sl = (uint8_t)set->sl,
		.tclass = (uint8_t)set->tclass,
	};
	int rc;

	if (set->pkey && rail_pkey_parse(set->pkey, &wish.pkey))
		return -EINVAL;
	rc = vrb_port_configure(port, &wish);
	if (rc)
		return rc;
	ctx->rail[ctx->rail_count++] = (struct rail){ .port = port };
	if (port->gid_link_local)
		rg_warn("%s: has only a link-local GID; give its network interface an address",
			port->name);
	return 0;
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

static int select_named(struct rail_ctx *ctx, const char *list, const char *host)
{
	char names[NAMES_TEXT];
	const char *name;
	size_t length;
	int rc;

	while ((name = rail_name_next(&list, &length))) {
		struct vrb_port *port = port_by_name(&ctx->ports, name, length);
		const char *why = !port ? "there is no such port" :
				  !port->usable ? "its transport carries no RDMA immediates" : NULL;

		if (!why && port->state != IBV_PORT_ACTIVE)
			why = vrb_port_state_text(port->state);
		if (why) {
			rg_error("--rails: %.*s: %s on %s (accepted: all, %s)", (int)length, name, why,
				 host, accepted_names(&ctx->ports, names, sizeof(names)));
			return -ENODEV;
		}
		rc = rail_add(ctx, port);
		if (rc)
			return rc;
	}
	return 0;
}

int rail_select(struct rail_ctx *ctx)
{
	const char *rails = ctx->settings.rails ? ctx->settings.rails : "all";
	char why[256], host[256] = "";

	if (rail_lists_check(rails, why, sizeof(why))) {
		rg_error("--rails: %s", why);
		return -EINVAL;
	}
	gethostname(host, sizeof(host) - 1);
	rails = rail_list_of_host(rails, host);
	return rail_list_is_all(rails) ? select_all(ctx) : select_named(ctx, rails, host);
}
