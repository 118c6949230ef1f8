/* select.c - the transport's options, and which ports are rails. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "opt.h"
#include "rail_int.h"
#include "softhca.h"

enum { NAMES_TEXT = 512 };

/* The next name of a comma-separated list; NULL at its end. */
static const char *next_name(const char **list, size_t *length)
{
	const char *name = *list;

	if (!name)
		return NULL;
	*length = strcspn(name, ",");
	*list = name[*length] ? name + *length + 1 : NULL;
	return name;
}

/* device:port */
static bool name_is_sound(const char *name, size_t length)
{
	const char *colon = memchr(name, ':', length);
	size_t digits;

	if (!colon || colon == name)
		return false;
	digits = length - (size_t)(colon + 1 - name);
	return digits >= 1 && digits <= 3 && strspn(colon + 1, "0123456789") >= digits;
}

static bool listed_before(const char *list, const char *name, size_t length)
{
	const char *other;
	size_t n;

	while ((other = next_name(&list, &n)) && other != name)
		if (n == length && !memcmp(other, name, n))
			return true;
	return false;
}

static int check_rails(const char *text, char *why, size_t why_size)
{
	const char *rest = text, *name;
	size_t length;
	int count = 0;

	if (!strcmp(text, "all"))
		return 0;
	while ((name = next_name(&rest, &length))) {
		if (!name_is_sound(name, length)) {
			snprintf(why, why_size, "'%.*s' is not DEVICE:PORT, accepted: all, or "
				 "names such as mlx5_0:1,mlx5_1:1", (int)length, name);
			return -EINVAL;
		}
		if (listed_before(text, name, length)) {
			snprintf(why, why_size, "%.*s is listed twice, accepted: all, or each "
				 "port once", (int)length, name);
			return -EINVAL;
		}
		if (++count > RAIL_MAX) {
			snprintf(why, why_size, "too many ports, accepted: up to %d", RAIL_MAX);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_soft(const char *text, char *why, size_t why_size)
{
	return softhca_spec_check(text, why, why_size);
}

static const struct opt options[] = {
	{ .name = "rails", .type = OPT_TEXT, .carry = OPT_JOB,
	  .offset = offsetof(struct rail_settings, rails), .arg = "LIST", .standard = "all",
	  .check = check_rails,
	  .help = "ports to use: all, or names such as mlx5_0:1,mlx5_1:1 in the order in which "
		  "they meet the peers' ports" },
	{ .name = "soft", .type = OPT_TEXT, .carry = OPT_JOB,
	  .offset = offsetof(struct rail_settings, soft), .arg = "SPEC",
	  .check = check_soft,
	  .help = "use the software HCA, as [PROFILE][,key=value...], even where devices exist" },
	{ .name = "threshold", .type = OPT_SIZE, .carry = OPT_COMM,
	  .offset = offsetof(struct rail_settings, threshold), .arg = "BYTES", .standard = "8K",
	  .min = 1, .max = (uint64_t)1 << 40,
	  .help = "messages above this size are striped over all rails" },
	{ .name = "eager", .type = OPT_SIZE, .carry = OPT_COMM,
	  .offset = offsetof(struct rail_settings, eager), .arg = "BYTES", .standard = "8K",
	  .min = 0, .max = RAIL_EAGER_MAX,
	  .help = "messages up to this size are sent at once, larger ones by rendezvous" },
	{ 0 },
};

const struct opt *rail_options(void)
{
	return options;
}

/* ---- Selection ---------------------------------------------------------- */

/* "soft0:1, soft0:2": what could have been named. */
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

static void add(struct rail_ctx *ctx, struct vrb_port *port)
{
	ctx->rail[ctx->rail_count++] = (struct rail){ .port = port };
	if (port->gid_link_local)
		rg_warn("%s: has only a link-local GID; give its network interface an address",
			port->name);
}

static int select_all(struct rail_ctx *ctx)
{
	int left_out = 0;

	for (int i = 0; i < ctx->ports.count; i++) {
		struct vrb_port *port = &ctx->ports.port[i];

		if (!port->usable || port->state != IBV_PORT_ACTIVE)
			continue;
		if (ctx->rail_count < RAIL_MAX)
			add(ctx, port);
		else
			left_out++;
	}
	if (left_out)
		rg_warn("--rails all: %d ACTIVE ports beyond the first %d are left out", left_out,
			RAIL_MAX);
	if (ctx->rail_count)
		return 0;
	rg_error("--rails all: this host has no ACTIVE RDMA port (%d ports seen)",
		 ctx->ports.count);
	return -ENODEV;
}

static int select_named(struct rail_ctx *ctx, const char *list)
{
	char names[NAMES_TEXT];
	const char *name;
	size_t length;

	while ((name = next_name(&list, &length))) {
		struct vrb_port *port = port_by_name(&ctx->ports, name, length);
		const char *why = !port ? "there is no such port" :
				  !port->usable ? "its transport carries no RDMA immediates" : NULL;

		if (!why && port->state != IBV_PORT_ACTIVE)
			why = vrb_port_state_text(port->state);
		if (why) {
			rg_error("--rails: %.*s: %s (accepted: all, %s)", (int)length, name, why,
				 accepted_names(&ctx->ports, names, sizeof(names)));
			return -ENODEV;
		}
		add(ctx, port);
	}
	return 0;
}

int rail_select(struct rail_ctx *ctx)
{
	const char *rails = ctx->settings.rails ? ctx->settings.rails : "all";
	char why[256];

	if (check_rails(rails, why, sizeof(why))) {
		rg_error("--rails: %s", why);
		return -EINVAL;
	}
	return strcmp(rails, "all") ? select_named(ctx, rails) : select_all(ctx);
}
