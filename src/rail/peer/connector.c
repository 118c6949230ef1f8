/* connector.c - see connector.h. */
#include "rail/peer/connector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/memory/memory.h"
#include "rail/memory/mr.h"
#include "rail/open/rail_ctx.h"
#include "rail/rail.h"
#include "util/err.h"

enum { STRIDE = VRB_GRH_BYTES + RAIL_DATAGRAM_BYTES + 24 };

_Static_assert((RAIL_CONNECTOR_RECEIVES + RAIL_CONNECTOR_SENDS) * STRIDE == RAIL_PLAN_DATAGRAMS_BYTES, "plan.h");

unsigned char *rail_connector_datagram(const struct rail_connector *c, uint64_t which)
{
	return c->memory + which * STRIDE;
}

int rail_connector_receive(struct rail_connector *c, uint64_t which)
{
	return vrb_ud_receive(&c->ud, which, rail_connector_datagram(c, which), VRB_GRH_BYTES + RAIL_DATAGRAM_BYTES,
			      c->mr->lkey);
}

static int connector_fill(struct rail_connector *c)
{
	const size_t bytes = (size_t)(RAIL_CONNECTOR_RECEIVES + RAIL_CONNECTOR_SENDS) * STRIDE;
	int rc;

	c->memory = rail_memory_map(c->ctx, bytes);
	if (!c->memory) {
		rg_error("no memory for datagrams");
		return -ENOMEM;
	}
	rc = vrb_mr_register(c->adapter, c->memory, bytes, VRB_MR_POLLED, &c->mr);
	if (rc) {
		rg_error("cannot register %zu bytes for datagrams: %s%s", bytes, strerror(-rc),
			 rail_mr_hint(rc));
		return rc;
	}
	for (uint32_t i = 0; i < RAIL_CONNECTOR_SENDS; i++)
		c->free[c->free_count++] = RAIL_CONNECTOR_RECEIVES + i;
	for (uint64_t i = 0; i < RAIL_CONNECTOR_RECEIVES && !rc; i++)
		rc = rail_connector_receive(c, i);
	return rc;
}

void rail_connector_close(struct rail_connector *c)
{
	if (!c)
		return;
	vrb_ud_destroy(&c->ud);
	vrb_mr_deregister(c->mr);
	if (c->memory)
		rail_memory_unmap(c->ctx, c->memory,
				  (size_t)(RAIL_CONNECTOR_RECEIVES + RAIL_CONNECTOR_SENDS) * STRIDE);
	free(c);
}

/* The context gets a connector only when it is whole, since it polls it. */
int rail_connector_open(struct rail_ctx *ctx, int which, int rail, uint32_t least)
{
	struct rail_connector *c = calloc(1, sizeof(*c));
	int rc;

	if (!c) {
		rg_error("no memory for datagrams");
		return -ENOMEM;
	}
	c->ctx = ctx;
	c->adapter = &ctx->adapter[ctx->rail[rail].adapter];
	c->port = ctx->rail[rail].port;
	if (vrb_mtu_bytes(c->port->active_mtu) < least) {
		rg_error("%s: an MTU of %u bytes is too small for connections (accepted: 1024 and "
			 "more)", c->port->name, vrb_mtu_bytes(c->port->active_mtu));
		rc = -EMSGSIZE;
	} else {
		rc = vrb_ud_create(c->adapter, c->port, RAIL_CONNECTOR_SENDS, RAIL_CONNECTOR_RECEIVES, &c->ud) ?:
		     connector_fill(c);
	}
	if (rc)
		rail_connector_close(c);
	else
		ctx->connector[which] = c;
	return rc;
}
