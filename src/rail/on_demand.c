/*
 * on_demand.c - connections on demand: the first message to a peer carries an offer there,
 * in a datagram, and waits until both sides are connected.
 *
 * Every process has one datagram queue pair per kind of rail, whose address all know
 * from the start (rail_address); a connection costs memory only where messages flow.
 * No call of anybody else is needed: whoever drives rail_progress drives this.
 *
 * A datagram holds the sender's offer and two bits: `linked`, the sender has the
 * receiver's offer and its queue pairs are ready to receive; `knows`, the sender knows
 * this of the receiver.  Who is linked and knows may send messages.  Whoever gets a
 * datagram without both bits answers; whoever waits repeats its own.  So any loss, any
 * doubling and both sides beginning at once come to the same end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound_rail.h"
#include "clock.h"
#include "eager_lane.h"
#include "endpoint_info.h"
#include "err.h"
#include "mr.h"
#include "on_demand.h"
#include "peer_failure.h"
#include "rail.h"
#include "rail_connect.h"
#include "rail_ctx.h"
#include "rail_memory.h"
#include "rail_peer.h"
#include "random.h"
#include "vrb.h"

enum {
	WIRE_RECEIVES = 128,
	WIRE_SENDS = 32,
	WIRE_BATCH = 16,
	WIRE_BYTES = 1024,		/* of a datagram: every port's MTU, nearly */
	WIRE_STRIDE = VRB_GRH_BYTES + WIRE_BYTES + 24,
	WIRE_FIRST_NS = 2000000,	/* before the first repetition; doubled each time */
	WIRE_LAST_NS = 256000000,
};

#define WIRE_MAGIC 0x3165726977676972ull	/* "rigwire1" */
#define ADDRESS_MAGIC 0x3172646461676972ull	/* "rigaddr1" */

struct wire_head {
	uint64_t magic, cookie;		/* the receiver's: not a stranger's datagram */
	uint32_t from, bytes;		/* of the offer behind */
	uint8_t linked, knows, refused, pad[5];
};

_Static_assert(sizeof(struct wire_head) + RAIL_OFFER_USED <= WIRE_BYTES, "one datagram");

struct address_rail {
	unsigned char subnet[VRB_GID_BYTES];
	uint8_t link_layer, gid_type, pad[6];
};

struct address {
	uint64_t magic, cookie, eager, threshold;
	uint32_t index, rail_count, qps, near;
	struct vrb_ud_address wire[RAIL_WIRES];
	struct address_rail rail[RAIL_MAX];
};

_Static_assert(sizeof(struct address) <= RAIL_ADDRESS_BYTES, "an address fits");

struct rail_wire {
	struct rail_ctx *ctx;
	struct vrb_adapter *adapter;
	const struct vrb_port *port;
	struct vrb_ud ud;
	unsigned char *memory;
	struct ibv_mr *mr;
	uint32_t free[WIRE_SENDS];
	int free_count;
};

/* A peer that is not known to be connected. */
struct rail_link {
	struct rail_wire *wire;
	struct vrb_ud_address to;
	uint64_t cookie, next_ns, wait_ns;
	struct ibv_ah *way;
	bool offered, linked;
	unsigned char offer[RAIL_OFFER_BYTES];
};

/* ---- The queue pairs ---------------------------------------------------- */

static unsigned char *buffer_at(const struct rail_wire *w, uint64_t which)
{
	return w->memory + which * WIRE_STRIDE;
}

static int receive_post(struct rail_wire *w, uint64_t which)
{
	return vrb_ud_receive(&w->ud, which, buffer_at(w, which), VRB_GRH_BYTES + WIRE_BYTES,
			      w->mr->lkey);
}

static int wire_fill(struct rail_wire *w)
{
	const size_t bytes = (size_t)(WIRE_RECEIVES + WIRE_SENDS) * WIRE_STRIDE;
	int rc;

	w->memory = rail_memory_map(w->ctx, bytes);
	if (!w->memory) {
		rg_error("no memory for datagrams");
		return -ENOMEM;
	}
	rc = vrb_mr_register(w->adapter, w->memory, bytes, VRB_MR_POLLED, &w->mr);
	if (rc) {
		rg_error("cannot register %zu bytes for datagrams: %s%s", bytes, strerror(-rc),
			 rail_mr_hint(rc));
		return rc;
	}
	for (uint32_t i = 0; i < WIRE_SENDS; i++)
		w->free[w->free_count++] = WIRE_RECEIVES + i;
	for (uint64_t i = 0; i < WIRE_RECEIVES && !rc; i++)
		rc = receive_post(w, i);
	return rc;
}

static int wire_open(struct rail_ctx *ctx, int which, int rail)
{
	struct rail_wire *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	ctx->wire[which] = w;
	w->ctx = ctx;
	w->adapter = &ctx->adapter[ctx->rail[rail].adapter];
	w->port = ctx->rail[rail].port;
	if (vrb_mtu_bytes(w->port->active_mtu) < sizeof(struct wire_head) + RAIL_OFFER_USED) {
		rg_error("%s: an MTU of %u bytes is too small for connections (accepted: 1024 and "
			 "more)", w->port->name, vrb_mtu_bytes(w->port->active_mtu));
		return -EMSGSIZE;
	}
	return vrb_ud_create(w->adapter, w->port, WIRE_SENDS, WIRE_RECEIVES, &w->ud) ?:
	       wire_fill(w);
}

static void wire_close(struct rail_wire *w)
{
	if (!w)
		return;
	vrb_ud_destroy(&w->ud);
	vrb_mr_deregister(w->mr);
	if (w->memory)
		rail_memory_unmap(w->ctx, w->memory,
				  (size_t)(WIRE_RECEIVES + WIRE_SENDS) * WIRE_STRIDE);
	free(w);
}

void rail_wires_close(struct rail_ctx *ctx)
{
	for (int i = 0; i < RAIL_WIRES; i++) {
		wire_close(ctx->wire[i]);
		ctx->wire[i] = NULL;
	}
}

/* ---- Addresses ---------------------------------------------------------- */

int rail_address(struct rail_ctx *ctx, unsigned char bytes[RAIL_ADDRESS_BYTES])
{
	struct address a = {
		.magic = ADDRESS_MAGIC,
		.eager = ctx->eager_max,
		.threshold = ctx->settings.threshold,
		.index = ctx->cfg.index,
		.rail_count = (uint32_t)ctx->rail_count,
		.qps = (uint32_t)ctx->settings.qps,
		.near = ctx->near,
	};
	int rc = wire_open(ctx, WIRE_RAILS, 0);

	if (!rc && ctx->local >= 0)
		rc = wire_open(ctx, WIRE_LOCAL, ctx->local);
	if (rc)
		return rc;
	a.cookie = ctx->cookie = rg_random();
	for (int i = 0; i < RAIL_WIRES; i++)
		if (ctx->wire[i])
			vrb_ud_address(&ctx->wire[i]->ud, ctx->wire[i]->port, &a.wire[i]);
	for (int r = 0; r < ctx->rail_count; r++) {
		const struct vrb_port *port = ctx->rail[r].port;

		memcpy(a.rail[r].subnet, port->subnet, sizeof(port->subnet));
		a.rail[r].link_layer = port->link_layer;
		a.rail[r].gid_type = port->gid_type;
	}
	memset(bytes, 0, RAIL_ADDRESS_BYTES);
	memcpy(bytes, &a, sizeof(a));
	return 0;
}

static int address_check(const struct rail_peer *peer, const struct address *a)
{
	const struct rail_ctx *ctx = peer->ctx;
	struct rail_terms terms = {
		.rail_count = a->rail_count, .qps = a->qps, .eager = a->eager,
		.threshold = a->threshold,
	};
	int rc;

	if (a->magic != ADDRESS_MAGIC) {
		rg_error("peer %u speaks another version of librail, or is of another byte order",
			 peer->index);
		return -EPROTO;
	}
	if (a->index != peer->index) {
		rg_error("the address of peer %u came as that of peer %u", a->index, peer->index);
		return -EPROTO;
	}
	if (peer_is_local(peer))
		return 0;
	rc = rail_terms_check(peer, &terms);
	for (int r = 0; r < ctx->rail_count && !rc; r++)
		rc = rail_port_check(peer, r, a->rail[r].link_layer, a->rail[r].gid_type,
				     a->rail[r].subnet);
	return rc;
}

int rail_peer_add(struct rail_ctx *ctx, unsigned index,
		  const unsigned char theirs[RAIL_ADDRESS_BYTES], struct rail_peer **out)
{
	struct rail_peer *peer;
	struct address a;
	int rc = rail_peer_new(ctx, index, &peer);

	if (rc)
		return rc;
	memcpy(&a, theirs, sizeof(a));
	rc = address_check(peer, &a);
	if (rc)
		goto undo;
	peer->link = calloc(1, sizeof(*peer->link));
	if (!peer->link) {
		rg_error("no memory for peer %u", index);
		rc = -ENOMEM;
		goto undo;
	}
	peer->link->wire = ctx->wire[peer_is_local(peer) ? WIRE_LOCAL : WIRE_RAILS];
	peer->link->to = a.wire[peer_is_local(peer) ? WIRE_LOCAL : WIRE_RAILS];
	peer->link->cookie = a.cookie;
	ctx->unlinked += index != ctx->cfg.index;
	ctx->peer[index] = peer;
	if (ctx->near_of)
		ctx->near_of[index] = a.near & ((1u << ctx->rail_count) - 1);
	if (++ctx->added == ctx->cfg.peer_count)
		rail_bound_settle(ctx);
	*out = peer;
	return 0;
undo:
	rail_wire_forget(peer);
	rail_peer_free(peer);
	return rc;
}

void rail_wire_forget(struct rail_peer *peer)
{
	if (peer->link && peer->link->way)
		ibv_destroy_ah(peer->link->way);
	free(peer->link);
	peer->link = NULL;
}

/* ---- Speaking ----------------------------------------------------------- */

static void speak(struct rail_peer *peer, bool refused)
{
	struct rail_link *link = peer->link;
	struct rail_wire *w = link->wire;
	struct wire_head head = {
		.magic = WIRE_MAGIC,
		.cookie = link->cookie,
		.from = peer->ctx->cfg.index,
		.bytes = RAIL_OFFER_USED,
		.linked = link->linked,
		.knows = peer->connected,
		.refused = refused,
	};
	unsigned char *at;
	uint32_t which;

	if (!link->way && vrb_ud_way(w->adapter, w->port, &link->to, &link->way)) {
		rail_peer_fail(peer, -EHOSTUNREACH, "there is no way to it");
		return;
	}
	if (!w->free_count)
		return;
	which = w->free[--w->free_count];
	at = buffer_at(w, which);
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), link->offer, RAIL_OFFER_USED);
	if (vrb_ud_send(&w->ud, link->way, link->to.qpn, which, at,
			(uint32_t)(sizeof(head) + RAIL_OFFER_USED), w->mr->lkey))
		w->free[w->free_count++] = which;
}

static int offer_once(struct rail_peer *peer)
{
	int rc;

	if (peer->link->offered)
		return 0;
	rc = rail_peer_prepare(peer, peer->link->offer);
	peer->link->offered = !rc;
	return rc;
}

static int link_to(struct rail_peer *peer, const unsigned char *offer)
{
	int rc;

	if (peer->link->linked)
		return 0;
	rc = offer_once(peer);
	if (!rc)
		rc = rail_peer_link(peer, offer);
	peer->link->linked = !rc;
	peer->ctx->unlinked -= !rc && peer->index != peer->ctx->cfg.index;
	return rc;
}

/* ---- Hearing ------------------------------------------------------------ */

static void hear(struct rail_peer *peer, const struct wire_head *head, const unsigned char *offer)
{
	int rc;

	if (peer->error)
		return;
	if (head->refused) {
		rail_peer_fail(peer, -ECONNREFUSED, "it cannot connect");
		return;
	}
	rc = link_to(peer, offer);
	if (rc) {
		speak(peer, true);
		rail_peer_fail(peer, rc, "no connection: %s", strerror(-rc));
		return;
	}
	if (head->linked && !peer->connected)
		rail_peer_start(peer);
	if (!head->linked || !head->knows)
		speak(peer, false);
}

static void arrived(struct rail_wire *w, const unsigned char *at, uint32_t bytes)
{
	const struct rail_ctx *ctx = w->ctx;
	unsigned char offer[RAIL_OFFER_BYTES] = { 0 };
	struct wire_head head;

	if (bytes != VRB_GRH_BYTES + sizeof(head) + RAIL_OFFER_USED)
		return;
	memcpy(&head, at + VRB_GRH_BYTES, sizeof(head));
	if (head.magic != WIRE_MAGIC || head.cookie != ctx->cookie ||
	    head.bytes != RAIL_OFFER_USED || head.from >= ctx->cfg.peer_count ||
	    !ctx->peer[head.from] || !ctx->peer[head.from]->link)
		return;
	memcpy(offer, at + VRB_GRH_BYTES + sizeof(head), RAIL_OFFER_USED);
	hear(ctx->peer[head.from], &head, offer);
}

static void wire_poll(struct rail_wire *w)
{
	struct ibv_wc wc[WIRE_BATCH];
	int n = ibv_poll_cq(w->ud.cq, WIRE_BATCH, wc);

	for (int i = 0; i < n; i++) {
		uint64_t which = wc[i].wr_id;

		if (which >= WIRE_RECEIVES) {
			w->free[w->free_count++] = (uint32_t)which;
			continue;
		}
		if (wc[i].status == IBV_WC_SUCCESS)
			arrived(w, buffer_at(w, which), wc[i].byte_len);
		receive_post(w, which);
	}
	if (n > 0)
		w->ctx->events += (uint32_t)n;
}

void rail_wires_poll(struct rail_ctx *ctx)
{
	for (int i = 0; i < RAIL_WIRES; i++)
		if (ctx->wire[i])
			wire_poll(ctx->wire[i]);
}

/* ---- Wanting ------------------------------------------------------------ */

/* To oneself there is nothing to say. */
static int connect_self(struct rail_peer *peer)
{
	int rc = offer_once(peer);

	if (!rc)
		rc = link_to(peer, peer->link->offer);
	if (!rc)
		rail_peer_start(peer);
	return rc;
}

void rail_wire_drive(struct rail_peer *peer)
{
	struct rail_link *link = peer->link;
	uint64_t now = rg_now_ns();
	int rc;

	if (!link || !peer->tx[LANE_SINGLE].waiting.head || !rg_reached(link->next_ns, now))
		return;
	rc = peer->index == peer->ctx->cfg.index ? connect_self(peer) : offer_once(peer);
	if (rc) {
		rail_peer_fail(peer, rc, "no connection: %s", strerror(-rc));
		return;
	}
	if (peer->connected)
		return;
	speak(peer, false);
	link->wait_ns = link->wait_ns ? 2 * link->wait_ns : WIRE_FIRST_NS;
	if (link->wait_ns > WIRE_LAST_NS)
		link->wait_ns = WIRE_LAST_NS;
	link->next_ns = now + link->wait_ns;
}
