/* ledger.c - the use of each rail; state and counters of its port. */
#include "rail/programs.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "softhca/softhca.h"
#include "verbs/vrb.h"

bool rail_ledger(const struct rail_ctx *ctx, int rail, struct rail_ledger *out)
{
	const struct rail *r = &ctx->rail[rail];

	*out = r->ledger;
	return r->port->kind == VRB_SOFTHCA &&
	       softhca_query_retries(ctx->adapter[r->adapter].context, r->port->number,
				     &out->retries) == 0;
}

uint64_t rail_striped_bytes(const struct rail_ctx *ctx)
{
	return ctx->striped_bytes;
}

int rail_port_state(const struct rail_ctx *ctx, int rail)
{
	const struct rail *r = &ctx->rail[rail];

	return vrb_port_state_now(ctx->adapter[r->adapter].context, r->port);
}

const struct vrb_port *rail_port(const struct rail_ctx *ctx, int rail)
{
	return ctx->rail[rail].port;
}

const struct vrb_ports *rail_ports(const struct rail_ctx *ctx)
{
	return &ctx->ports;
}

const char *rail_port_state_text(int state)
{
	return vrb_port_state_text((enum ibv_port_state)state);
}

int rail_port_counters(const struct rail_ctx *ctx, int rail, rail_counter_fn *each, void *user)
{
	return vrb_port_counters_read(ctx->rail[rail].port, each, user);
}

bool rail_counter_is_retry(const char *name)
{
	return vrb_counter_is_retry(name);
}
