/*
 * peer_failure.c - a peer that has failed: a request failed, or a record makes no sense.
 *
 * All its queue pairs stop at once, so memory is safe from late chunks.  Operations with the peer
 * end with -ECONNRESET from the next rail_progress.  Operations with chunks under way end as soon
 * as these are flushed (peer_end.c).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/err.h"
#include "util/host.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "verbs/vrb.h"

static void lanes_stop(struct rail_peer *peer)
{
	for (int k = 0; k < peer->rail_count && peer->bulk; k++) {
		vrb_qp_stop(&peer->eager[k].qp);
		for (int q = 0; q < peer->qps; q++)
			vrb_qp_stop(&peer_bulk(peer, k, q)->qp);
	}
}

/* An end has said goodbye and every operation has ended: queue pairs just went away. */
static bool is_expected(const struct rail_peer *peer)
{
	return (peer->gone || peer->ctx->closing) && !peer->ops;
}

void rail_peer_lose(struct rail_peer *peer, int error, const char *why)
{
	const bool expected = is_expected(peer);

	if (peer->error)
		return;
	if (!expected)
		peer->why = strdup(why);
	peer->error = -ECONNRESET;
	for (int role = 0; role < LANE_ROLES; role++)
		peer->tx[role].eager_slot = NULL;	/* eager_slot alone does not check `error` */
	peer->cause = error;
	peer->reported = expected;
	lanes_stop(peer);
	peer_work(peer);
}

void rail_peer_connecting(const struct rail_peer *peer)
{
	rg_errors_begin_with("peer %u is lost: no connection: ", peer->index);
}

void rail_peer_connected(struct rail_peer *peer, int rc)
{
	const bool told = rg_errors_begin_as_ever();
	char why[256];

	snprintf(why, sizeof(why), "no connection: %s", strerror(-rc));
	if (rc && told)
		rail_peer_lose(peer, rc, why);
	else if (rc)
		rail_peer_fail(peer, rc, "%s", why);
}

enum { WHY_BYTES = 480 };

/* A fabric's name is the job's.  In memory its nodes are hosts, too. */
static bool is_first(const struct rail_ctx *ctx, const char *cause)
{
	char words[256];

	if (!ctx->cfg.fabric)
		return true;
	snprintf(words, sizeof(words), "%s %u %s %s", ctx->cfg.fabric, ctx->cfg.node, ctx->host, cause);
	return rg_host_first(words, true);
}

/* A peer that processes lose for unlike reasons has one line, too. */
static bool is_told(const struct rail_peer *peer, const char *path)
{
	char cause[24];

	snprintf(cause, sizeof(cause), "peer %u", peer->index);
	return !is_first(peer->ctx, cause) || (path && !is_first(peer->ctx, path));
}

/* together: this host's processes lose the peer, and all after the path, for one cause. */
static void fail(struct rail_peer *peer, bool together, const char *path, int error, const char *fmt, va_list args)
{
	char why[WHY_BYTES];

	if (peer->error)
		return;
	vsnprintf(why, sizeof(why), fmt, args);
	if (!is_expected(peer) && !(together && is_told(peer, path)))
		rg_error("peer %u is lost: %s", peer->index, why);
	rail_peer_lose(peer, error, why);
}

void rail_peer_fail(struct rail_peer *peer, int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fail(peer, false, NULL, error, fmt, args);
	va_end(args);
}

void rail_peer_fail_together(struct rail_peer *peer, const char *path, int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fail(peer, true, path, error, fmt, args);
	va_end(args);
}
