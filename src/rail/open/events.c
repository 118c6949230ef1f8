/* events.c - see events.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rail/open/events.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/peer/peer_failure.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/host.h"
#include "verbs/vrb.h"

static bool has_events(const struct rail_ctx *ctx, int adapter)
{
	return ctx->adapter[adapter].kind != VRB_SOFTHCA && !ctx->dead_ns[adapter];
}

static bool speaks(const struct rail_ctx *ctx)
{
	return ctx->cfg.local_rank == 0;
}

void rail_events_open(struct rail_ctx *ctx)
{
	for (int a = 0; a < ctx->adapter_count; a++)
		if (has_events(ctx, a) && vrb_events_open(&ctx->adapter[a]))
			rg_warn("%s of %s: events of the adapter cannot be read: %s",
				ibv_get_device_name(ctx->adapter[a].context->device), ctx->host,
				strerror(errno));
	for (int r = 0; r < ctx->rail_count; r++)
		if (has_events(ctx, ctx->rail[r].adapter))
			vrb_port_place(&ctx->adapter[ctx->rail[r].adapter], ctx->rail[r].port,
				       &ctx->rail[r].place);
}

/* ---- Rails that end ------------------------------------------------------- */

static bool peer_uses(const struct rail_peer *peer, int rail)
{
	for (int k = 0; k < peer->rail_count; k++)
		if (peer->rail[k] == rail)
			return true;
	return false;
}

/*
 * The process that tells of an end is the first one of the host that knows: any may end the job, before another
 * one looks.  A software fabric's name is the job's.
 */
static bool tells_end(const struct rail_ctx *ctx, const char *what)
{
	char words[160];

	if (!ctx->cfg.fabric)
		return speaks(ctx);
	snprintf(words, sizeof(words), "%s %s %s", ctx->cfg.fabric, what, ctx->host);
	return rg_host_first(words, speaks(ctx));
}

/* The reason has been told in a line. */
static void peers_lose(struct rail_ctx *ctx, int rail, const char *why)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", ctx->rail[rail].port->name, why);
	for (unsigned i = 0; i < ctx->cfg.peer_count; i++)
		if (ctx->peer[i] && peer_uses(ctx->peer[i], rail))
			rail_peer_lose(ctx->peer[i], -ECONNRESET, text);
}

static void rail_ends(struct rail_ctx *ctx, int r, const char *why)
{
	struct rail *rail = &ctx->rail[r];

	if (rail->ended)
		return;
	rail->ended = true;
	if (tells_end(ctx, rail->port->name))
		rg_error("rail %s of %s is lost: %s; " RAIL_ADVICE, rail->port->name, ctx->host, why);
	peers_lose(ctx, r, why);
}

static void adapter_ends(struct rail_ctx *ctx, int adapter, const struct vrb_event *event,
			 uint64_t now_ns)
{
	const char *device = ibv_get_device_name(ctx->adapter[adapter].context->device);
	char why[64];

	ctx->dead_ns[adapter] = now_ns;
	snprintf(why, sizeof(why), "the adapter has failed (%s)", vrb_event_name(event->type));
	if (tells_end(ctx, device))
		rg_error("all rails of %s on %s are lost: %s; see the kernel's log, or leave it out (--rails)",
			 device, ctx->host, why);
	for (int r = 0; r < ctx->rail_count; r++)
		if (ctx->rail[r].adapter == adapter && !ctx->rail[r].ended) {
			ctx->rail[r].ended = true;
			peers_lose(ctx, r, why);
		}
}

/* ---- Ports ---------------------------------------------------------------- */

static void port_down(struct rail_ctx *ctx, struct rail *rail, uint64_t now_ns)
{
	if (rail->down_ns)
		return;
	rail->down_ns = now_ns;
	if (speaks(ctx))
		rg_warn("%s of %s is DOWN (PORT_ERR): what is under way waits; its connections end unless "
			"the port is back within %llu s", rail->port->name, ctx->host,
			EVENTS_DOWN_NS / 1000000000);
}

static void port_up(const struct rail_ctx *ctx, struct rail *rail, uint64_t now_ns)
{
	if (rail->down_ns && speaks(ctx))
		rg_warn("%s of %s is ACTIVE again, after %.1f s", rail->port->name, ctx->host,
			(double)(now_ns - rail->down_ns) / 1e9);
	rail->down_ns = 0;
}

/* The event may have changed what connections were made by. */
static void port_check(struct rail_ctx *ctx, int r, const struct vrb_event *event)
{
	struct rail *rail = &ctx->rail[r];
	struct vrb_port_place now;
	char why[192], text[256];

	if (vrb_port_place(&ctx->adapter[rail->adapter], rail->port, &now))
		return;
	if (vrb_port_moved(rail->port, &rail->place, &now, why, sizeof(why))) {
		rail->place = now;
		snprintf(text, sizeof(text), "%s (%s)", why, vrb_event_name(event->type));
		rail_ends(ctx, r, text);
	} else if (speaks(ctx) && event->type != IBV_EVENT_PORT_ACTIVE) {
		rg_warn("%s of %s: %s; LID, GID and P_Key are as before, the rail goes on", rail->port->name,
			ctx->host, vrb_event_name(event->type));
	}
}

static void port_event(struct rail_ctx *ctx, int r, const struct vrb_event *event, uint64_t now_ns)
{
	if (event->type == IBV_EVENT_PORT_ERR) {
		port_down(ctx, &ctx->rail[r], now_ns);
		return;
	}
	if (event->type == IBV_EVENT_PORT_ACTIVE)
		port_up(ctx, &ctx->rail[r], now_ns);
	port_check(ctx, r, event);
}

/* ---- Reading -------------------------------------------------------------- */

static void adapter_event(struct rail_ctx *ctx, int adapter, const struct vrb_event *event,
			  uint64_t now_ns)
{
	switch (event->type) {
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
		adapter_ends(ctx, adapter, event, now_ns);
		return;
	default:
		break;
	}
	for (int r = 0; event->port && r < ctx->rail_count; r++)
		if (ctx->rail[r].adapter == adapter && ctx->rail[r].port->number == event->port)
			port_event(ctx, r, event, now_ns);
}

static void down_check(struct rail_ctx *ctx, int r, uint64_t now_ns)
{
	const struct rail *rail = &ctx->rail[r];

	if (rail->down_ns && rg_reached(rail->down_ns + EVENTS_DOWN_NS, now_ns))
		rail_ends(ctx, r, "its port stays DOWN");
}

void rail_events_read(struct rail_ctx *ctx, uint64_t now_ns)
{
	struct vrb_event event;

	for (int a = 0; a < ctx->adapter_count; a++)
		while (has_events(ctx, a) && vrb_event_next(&ctx->adapter[a], &event) == 0)
			adapter_event(ctx, a, &event, now_ns);
	for (int r = 0; r < ctx->rail_count; r++)
		down_check(ctx, r, now_ns);
}
