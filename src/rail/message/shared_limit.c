/* shared_limit.c - limits that several rails share: the host's side of their adapters. */
#include <stdio.h>

#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/shared_limit.h"
#include "softhca/softhca.h"
#include "topo/topo.h"
#include "verbs/vrb.h"

static uint32_t rails_of(const struct rail_ctx *ctx, const struct ibv_device *device)
{
	uint32_t rails = 0;

	for (int r = 0; r < ctx->rail_count; r++)
		if (ctx->rail[r].port->device == device)
			rails |= 1u << r;
	return rails;
}

/* The limits in a software HCA's model. */
static int limits_modelled(const struct rail_ctx *ctx, struct rail_share *out)
{
	int count = 0;

	for (int r = 0; r < ctx->rail_count; r++) {
		struct ibv_device *device = ctx->rail[r].port->device;
		uint32_t rails = rails_of(ctx, device);
		struct softhca_model m;

		/* Each adapter once, at its first rail. */
		if (rails & ((1u << r) - 1) || softhca_query_model(device, &m))
			continue;
		if (m.cap) {
			out[count] = (struct rail_share){ .rails = rails, .out = m.cap,
							  .in = m.cap };
			snprintf(out[count++].name, sizeof(out->name), "cap of %s",
				 ibv_get_device_name(device));
		}
		if (m.bus_read && m.bus_write) {
			out[count] = (struct rail_share){ .rails = rails, .out = m.bus_read,
							  .in = m.bus_write, .half = m.bus_half };
			snprintf(out[count++].name, sizeof(out->name), "bus of %s",
				 ibv_get_device_name(device));
		}
	}
	return count;
}

int rail_shared_limits_on(const struct topo *t, const char *const *device, int rails,
			  struct rail_share out[RAIL_SHARES_MAX])
{
	struct topo_share share[TOPO_SHARES_MAX];
	const struct topo_spot *at[RAIL_MAX];
	struct topo_spot spot[RAIL_MAX];
	int found, count = 0;

	for (int r = 0; r < rails; r++) {
		topo_find(t, device[r], &spot[r]);
		at[r] = &spot[r];
	}
	found = topo_shares(t, at, rails, share);
	for (int i = 0; i < found && count < RAIL_SHARES_MAX; i++) {
		const struct topo_link *link = &share[i].link;

		if (!link->bytes_per_s)
			continue;
		out[count] = (struct rail_share){ .rails = share[i].rails,
						  .out = link->bytes_per_s,
						  .in = link->bytes_per_s };
		snprintf(out[count++].name, sizeof(out->name), "PCIe link %s", link->at);
	}
	return count;
}

static int limits_found(const struct rail_ctx *ctx, struct rail_share *out)
{
	const char *device[RAIL_MAX];
	struct topo *t;
	int count;

	for (int r = 0; r < ctx->rail_count; r++)
		device[r] = ibv_get_device_name(ctx->rail[r].port->device);
	if (topo_open(TOPO_RAILS, &t))
		return 0;
	count = rail_shared_limits_on(t, device, ctx->rail_count, out);
	topo_close(t);
	return count;
}

_Static_assert((int)RAIL_SHARES_MAX == 2 * RAIL_MAX, "the most limits of so many rails");

int rail_shares(const struct rail_ctx *ctx, struct rail_share out[RAIL_SHARES_MAX])
{
	return ctx->cfg.use_softhca ? limits_modelled(ctx, out) : limits_found(ctx, out);
}
