/* wanted.c - the ports that --rails wants, and what other options want of them. */
#include "rail/open/wanted.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rail/open/options.h"
#include "rail/open/rail_ctx.h"
#include "rail/rail.h"
#include "util/err.h"
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

struct vrb_port *rail_port_named(const struct vrb_ports *ports, const char *name)
{
	return port_by_name(ports, name, strlen(name));
}

int rail_port_wish(const struct rail_settings *set, const struct vrb_port *port,
		   struct vrb_port_wish *out)
{
	char host[256] = "";
	struct vrb_port_wish wish = {
		.mtu_bytes = set->mtu == RAIL_AUTO ? 0 : (uint32_t)set->mtu,
		.sl = (uint8_t)set->sl,
		.tclass = set->tclass == RAIL_AUTO ? -1 : (int)set->tclass,
	};

	gethostname(host, sizeof(host) - 1);
	wish.gid_index = rail_gid_index_of(set->gid_index, host, port->name);
	if (set->pkey && rail_pkey_parse(set->pkey, &wish.pkey))
		return -EINVAL;
	*out = wish;
	return 0;
}

static void rail_append(struct rail_ctx *ctx, struct vrb_port *port)
{
	ctx->rail[ctx->rail_count++] = (struct rail){ .port = port };
}

int rail_add(struct rail_ctx *ctx, struct vrb_port *port)
{
	struct vrb_port_wish wish;
	int rc = rail_port_wish(&ctx->settings, port, &wish);

	if (!rc)
		rc = vrb_port_configure(port, &wish);
	if (rc)
		return rc;
	rail_append(ctx, port);
	if (port->gid_link_local)
		rg_warn("%s: has only a link-local GID; give its network interface an address",
			port->name);
	return 0;
}

int rail_select_port(struct rail_ctx *ctx, struct vrb_port *port)
{
	struct vrb_port_wish wish;
	int rc = rail_port_wish(&ctx->settings, port, &wish);

	/* The choice of all hosts has the GID and the key. */
	wish.gid_index = -1;
	wish.pkey = 0;
	if (!rc)
		rc = vrb_port_configure(port, &wish);
	if (!rc)
		rail_append(ctx, port);
	return rc;
}

/* A port that --rails names; NULL after a line. */
static struct vrb_port *named_port(const struct vrb_ports *ports, const char *name, size_t length,
				   const char *host)
{
	char names[NAMES_TEXT];
	struct vrb_port *port = port_by_name(ports, name, length);
	const char *why = !port ? "there is no such port" :
			  !port->usable ? "its transport carries no RDMA immediates" : NULL;

	if (!why && port->state != IBV_PORT_ACTIVE)
		why = vrb_port_state_text(port->state);
	if (!why)
		return port;
	rg_error("--rails: %.*s: %s on %s (accepted: all, %s)", (int)length, name, why, host,
		 accepted_names(ports, names, sizeof(names)));
	return NULL;
}

const char *rail_list_here(const struct rail_settings *set, char host[256])
{
	const char *rails = set->rails ? set->rails : "all";
	char why[256];

	if (rail_lists_check(rails, why, sizeof(why))) {
		rg_error("--rails: %s", why);
		return NULL;
	}
	memset(host, 0, 256);
	gethostname(host, 255);
	return rail_list_of_host(rails, host);
}

int rail_ports_wanted(const struct rail_settings *set, struct vrb_ports *ports, struct vrb_port **port,
		      int max)
{
	char host[256];
	const char *name, *list = rail_list_here(set, host);
	size_t length;
	int count = 0;

	if (!list)
		return -EINVAL;
	if (rail_list_is_all(list)) {
		for (int i = 0; i < ports->count && count < max; i++)
			port[count++] = &ports->port[i];
		return count;
	}
	while ((name = rail_name_next(&list, &length))) {
		port[count] = named_port(ports, name, length, host);
		if (!port[count++])
			return -ENODEV;
	}
	return count;
}
