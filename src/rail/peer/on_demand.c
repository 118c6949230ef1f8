/*
 * on_demand.c - connections on demand.
 *
 * The first message to a peer sends endpoint info there, in a datagram, and waits until
 * both sides are connected.  Every process has one datagram queue pair per kind of rail.
 * All processes have its address from the start (rail_address).  A connection costs memory
 * only where messages flow.  Calls of rail_progress are enough to make it.
 *
 * A datagram holds the sender's endpoint info and two bits.  `linked`: the sender has the
 * receiver's endpoint info, and its queue pairs are ready to receive.  `knows`: the sender
 * has learned that the receiver is linked.  A process with both bits set may send messages.
 * A datagram without both bits is answered.  A process that waits repeats its datagram.  So
 * any loss, any duplication and a simultaneous start of both sides lead to the same end.
 *
 * Repetitions have no limit of their own, since a process that is stopped answers when it goes
 * on.  reach.h tells silence from loss.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/peer/bound_rail.h"
#include "util/clock.h"
#include "rail/lane/eager_lane.h"
#include "rail/peer/connector.h"
#include "rail/peer/endpoint_info.h"
#include "util/err.h"
#include "rail/peer/on_demand.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "rail/peer/connect.h"
#include "rail/open/peer_gids.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "util/random.h"
#include "rail/peer/reach.h"
#include "softhca/softhca.h"
#include "verbs/vrb.h"

enum {
	CONNECT_BATCH = 16,
	CONNECT_FIRST_NS = 2000000,	/* wait before the first repetition; doubled each time */
	CONNECT_LAST_NS = 256000000,
};

#define CONNECT_MAGIC 0x3165726977676972ull	/* "rigwire1" */
#define ADDRESS_MAGIC 0x3472646461676972ull	/* "rigaddr4" */

struct connect_head {
	uint64_t magic, cookie;		/* cookie: the receiver's, unknown to strangers */
	uint32_t from, bytes;		/* sender; size of the endpoint info that follows */
	uint8_t linked, knows, refused, pad[5];
};

#define DATAGRAM_USED ((uint32_t)(sizeof(struct connect_head) + ENDPOINT_INFO_USED))

_Static_assert(DATAGRAM_USED <= RAIL_DATAGRAM_BYTES, "one datagram");

struct address_rail {
	unsigned char subnet[VRB_GID_BYTES];	/* over TCP: the GID */
	uint8_t link_layer, gid_type, pad[6];
};

struct address {
	uint64_t magic, cookie, chunk, eager, threshold;
	uint32_t index, rail_count, qps, near;
	uint32_t writes_slots;		/* every rail's adapter takes a slot inline */
	uint32_t local_rank;
	struct vrb_ud_address connector[RAIL_CONNECTORS];
	/* Software HCA in memory: the fabric; over TCP: the host, hashed; 0: another device. */
	uint64_t fabric[RAIL_CONNECTORS];
	struct address_rail rail[RAIL_MAX];
};

_Static_assert(sizeof(struct address) <= RAIL_ADDRESS_BYTES, "an address fits");

/* The state of a connection on demand. */
struct rail_demand {
	struct rail_connector *connector;
	struct vrb_ud_address to;
	uint64_t cookie, next_ns, wait_ns;
	struct rail_reach reach;
	struct ibv_ah *ah;
	bool prepared, linked;
	unsigned char info[ENDPOINT_INFO_BYTES];
};

void rail_on_demand_close(struct rail_ctx *ctx)
{
	for (int i = 0; i < RAIL_CONNECTORS; i++) {
		rail_connector_close(ctx->connector[i]);
		ctx->connector[i] = NULL;
	}
}

/* ---- Addresses ---------------------------------------------------------- */

/* Over TCP each host has a fabric in memory of its own: the name, which connections prove, tells. */
static uint64_t connector_fabric(const struct rail_connector *c)
{
	struct softhca_model model;

	if (!c || c->port->kind != VRB_SOFTHCA)
		return 0;
	return c->port->net ? rail_net_host() : softhca_query_model(c->port->device, &model) ? 0 : model.fabric;
}

int rail_address(struct rail_ctx *ctx, unsigned char bytes[RAIL_ADDRESS_BYTES])
{
	struct address a = {
		.magic = ADDRESS_MAGIC,
		.chunk = ctx->settings.chunk,
		.eager = ctx->eager_max,
		.threshold = ctx->settings.threshold,
		.index = ctx->cfg.index,
		.rail_count = ctx->narrow ? 1 : (uint32_t)ctx->rail_count,
		.qps = (uint32_t)ctx->settings.qps,
		.near = ctx->near,
		.writes_slots = rail_writes_slots(ctx),
		.local_rank = ctx->cfg.local_rank,
	};
	int rc = rail_connector_open(ctx, CONNECTOR_RAILS, 0, DATAGRAM_USED);

	if (!rc && ctx->local >= 0)
		rc = rail_connector_open(ctx, CONNECTOR_LOCAL, ctx->local, DATAGRAM_USED);
	if (rc)
		return rc;
	a.cookie = ctx->cookie = rg_random();
	for (int i = 0; i < RAIL_CONNECTORS; i++)
		if (ctx->connector[i]) {
			vrb_ud_address(&ctx->connector[i]->ud, ctx->connector[i]->port,
				       &a.connector[i]);
			a.fabric[i] = connector_fabric(ctx->connector[i]);
		}
	for (int r = 0; r < ctx->rail_count; r++) {
		const struct vrb_port *port = ctx->rail[r].port;

		memcpy(a.rail[r].subnet, port->net ? port->gid.raw : port->subnet, sizeof(port->subnet));
		a.rail[r].link_layer = port->link_layer;
		a.rail[r].gid_type = port->gid_type;
	}
	memset(bytes, 0, RAIL_ADDRESS_BYTES);
	memcpy(bytes, &a, sizeof(a));
	return 0;
}

/* Two processes without common files or network begin a fabric each. */
static int fabric_check(const struct rail_peer *peer, const struct address *a)
{
	const int which = peer_is_local(peer) ? CONNECTOR_LOCAL : CONNECTOR_RAILS;
	const struct rail_connector *c = peer->ctx->connector[which];

	if ((c && c->port->net) || a->fabric[which] == connector_fabric(c))
		return 0;
	rg_error("peer %u is on another fabric of the software HCA: the processes have neither a "
		 "directory for its files in common (/dev/shm, or SOFTHCA_DIR) nor a network namespace; "
		 "give them one of both (of containers, bind the directory or share the network)",
		 peer->index);
	return -ENOTCONN;
}

static int address_check(const struct rail_peer *peer, const struct address *a)
{
	const struct rail_ctx *ctx = peer->ctx;
	struct rail_terms terms = {
		.rail_count = a->rail_count, .qps = a->qps, .chunk = a->chunk, .eager = a->eager,
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
	rc = fabric_check(peer, a);
	if (rc || peer_is_local(peer))
		return rc;
	rc = rail_terms_check(peer, &terms);
	/* Endpoint info has the GID for this process, where there are several. */
	for (int k = 0; k < peer->rail_count && !rc; k++) {
		const int r = peer->rail[k];

		if (ctx->rail[r].port->net)
			rc = rail_net_check(peer, k, a->rail[r].subnet, a->fabric[CONNECTOR_RAILS]);
		else if (!rail_gids_differ(ctx, r))
			rc = rail_port_check(peer, k, a->rail[r].link_layer, a->rail[r].gid_type,
					     a->rail[r].subnet);
	}
	return rc;
}

/* The rail of the datagrams, whichever ones the peer has for messages. */
static int connector_rail(const struct rail_peer *peer)
{
	return peer_is_local(peer) ? peer->rail[0] : 0;
}

int rail_peer_add(struct rail_ctx *ctx, unsigned index,
		  const unsigned char theirs[RAIL_ADDRESS_BYTES], struct rail_peer **out)
{
	struct rail_peer *peer;
	struct address a;
	int which, rc = rail_peer_new(ctx, index, &peer);

	if (rc)
		return rc;
	memcpy(&a, theirs, sizeof(a));
	rc = address_check(peer, &a);
	if (rc)
		goto undo;
	peer->demand = calloc(1, sizeof(*peer->demand));
	if (!peer->demand) {
		rg_error("no memory for peer %u", index);
		rc = -ENOMEM;
		goto undo;
	}
	which = peer_is_local(peer) ? CONNECTOR_LOCAL : CONNECTOR_RAILS;
	peer->demand->connector = ctx->connector[which];
	peer->demand->to = a.connector[which];
	rail_gid_there(ctx, connector_rail(peer), index, peer->demand->to.gid);
	peer->demand->cookie = a.cookie;
	peer->local_rank = a.local_rank;
	/* A ring is for a sender that writes a slot in one piece; others send. */
	peer->polled &= peer_is_local(peer) || a.writes_slots;
	ctx->unlinked += index != ctx->cfg.index;
	ctx->peer[index] = peer;
	if (ctx->near_of)
		ctx->near_of[index] = a.near & ((1u << ctx->rail_count) - 1);
	if (++ctx->added == ctx->cfg.peer_count)
		rail_bound_settle(ctx);
	*out = peer;
	return 0;
undo:
	rail_on_demand_forget(peer);
	rail_peer_free(peer);
	return rc;
}

void rail_on_demand_forget(struct rail_peer *peer)
{
	if (peer->demand && peer->demand->ah)
		ibv_destroy_ah(peer->demand->ah);
	free(peer->demand);
	peer->demand = NULL;
}

/* ---- Sending ------------------------------------------------------------ */

static const struct vrb_port *port_towards(const struct rail_peer *peer, struct vrb_port *copy)
{
	return rail_port_towards(peer->ctx, connector_rail(peer), peer->index, copy);
}

static void info_send(struct rail_peer *peer, bool refused)
{
	struct rail_demand *demand = peer->demand;
	struct rail_connector *c = demand->connector;
	struct connect_head head = {
		.magic = CONNECT_MAGIC,
		.cookie = demand->cookie,
		.from = peer->ctx->cfg.index,
		.bytes = ENDPOINT_INFO_USED,
		.linked = demand->linked,
		.knows = peer->connected,
		.refused = refused,
	};
	struct vrb_port copy;
	unsigned char *at;
	uint32_t which;

	if ((!demand->ah && vrb_ud_way(c->adapter, port_towards(peer, &copy), &demand->to, &demand->ah)) ||
	    !c->free_count)
		return;
	which = c->free[--c->free_count];
	at = rail_connector_datagram(c, which);
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), demand->info, ENDPOINT_INFO_USED);
	if (vrb_ud_send(&c->ud, demand->ah, demand->to.qpn, which, at,
			DATAGRAM_USED, c->mr->lkey))
		c->free[c->free_count++] = which;
}

static int prepare_once(struct rail_peer *peer)
{
	int rc;

	if (peer->demand->prepared)
		return 0;
	rc = rail_peer_prepare(peer, peer->demand->info);
	peer->demand->prepared = !rc;
	return rc;
}

static int link_to(struct rail_peer *peer, const unsigned char *info)
{
	int rc;

	if (peer->demand->linked)
		return 0;
	rc = prepare_once(peer);
	if (!rc)
		rc = rail_peer_link(peer, info);
	peer->demand->linked = !rc;
	peer->ctx->unlinked -= !rc && peer->index != peer->ctx->cfg.index;
	return rc;
}

/* ---- Receiving ---------------------------------------------------------- */

static void info_handle(struct rail_peer *peer, const struct connect_head *head,
			const unsigned char *info)
{
	int rc;

	if (peer->error)
		return;
	if (head->refused) {
		rail_peer_fail(peer, -ECONNREFUSED, "it cannot connect");
		return;
	}
	rail_peer_connecting(peer);
	rc = link_to(peer, info);
	if (rc)
		info_send(peer, true);
	rail_peer_connected(peer, rc);
	if (rc)
		return;
	if (head->linked && !peer->connected)
		rail_peer_start(peer);
	if (!head->linked || !head->knows)
		info_send(peer, false);
}

static void arrived(struct rail_connector *c, const unsigned char *at, uint32_t bytes)
{
	const struct rail_ctx *ctx = c->ctx;
	unsigned char info[ENDPOINT_INFO_BYTES] = { 0 };
	struct connect_head head;

	if (bytes != VRB_GRH_BYTES + DATAGRAM_USED)
		return;
	memcpy(&head, at + VRB_GRH_BYTES, sizeof(head));
	if (head.magic != CONNECT_MAGIC || head.cookie != ctx->cookie ||
	    head.bytes != ENDPOINT_INFO_USED || head.from >= ctx->cfg.peer_count ||
	    !ctx->peer[head.from] || !ctx->peer[head.from]->demand)
		return;
	memcpy(info, at + VRB_GRH_BYTES + sizeof(head), ENDPOINT_INFO_USED);
	info_handle(ctx->peer[head.from], &head, info);
}

static void connector_poll(struct rail_connector *c)
{
	struct ibv_wc wc[CONNECT_BATCH];
	int n = ibv_poll_cq(c->ud.cq, CONNECT_BATCH, wc);

	for (int i = 0; i < n; i++) {
		uint64_t which = wc[i].wr_id;

		if (which >= RAIL_CONNECTOR_RECEIVES) {
			c->free[c->free_count++] = (uint32_t)which;
			continue;
		}
		if (wc[i].status == IBV_WC_SUCCESS)
			arrived(c, rail_connector_datagram(c, which), wc[i].byte_len);
		rail_connector_receive(c, which);
	}
	if (n > 0)
		c->ctx->events += (uint32_t)n;
}

void rail_on_demand_poll(struct rail_ctx *ctx)
{
	for (int i = 0; i < RAIL_CONNECTORS; i++)
		if (ctx->connector[i])
			connector_poll(ctx->connector[i]);
}

static bool has_sent(const struct rail_peer *peer)
{
	for (int i = 0; i < peer->rx_count; i++)
		if (peer->rx[i].seq > 1)
			return true;
	return false;
}

void rail_on_demand_settle(struct rail_ctx *ctx)
{
	rail_on_demand_poll(ctx);
	for (unsigned i = 0; i < ctx->cfg.peer_count; i++) {
		struct rail_peer *peer = ctx->peer[i];

		if (peer && peer->demand && peer->demand->linked && !peer->connected && !peer->error &&
		    has_sent(peer))
			rail_peer_start(peer);
	}
}

/* ---- Requesting --------------------------------------------------------- */

/* A connection with this process itself needs no datagram. */
static int connect_self(struct rail_peer *peer)
{
	int rc = prepare_once(peer);

	if (!rc)
		rc = link_to(peer, peer->demand->info);
	if (!rc)
		rail_peer_start(peer);
	return rc;
}

int rail_on_demand_why(const struct rail_peer *peer, const char **why)
{
	const struct rail_connector *c = peer->demand ? peer->demand->connector : NULL;
	struct vrb_port copy;

	return c ? vrb_ud_lost(c->adapter, port_towards(peer, &copy), &peer->demand->to, why) : 0;
}

/* An adapter knows of no path: its peer is named in a line, and given up in the end. */
static bool is_silent(struct rail_peer *peer, uint64_t now_ns)
{
	struct rail_reach *reach = &peer->demand->reach;
	const struct vrb_port *port = peer->demand->connector->port;
	char ends[REACH_ENDS_BYTES];
	struct vrb_port copy;

	if (port->kind == VRB_SOFTHCA)
		return false;
	if (rail_reach_tell(reach, now_ns))
		rail_reach_warn(peer->index, port_towards(peer, &copy), &peer->demand->to);
	if (!rail_reach_is_silent(reach, now_ns))
		return false;
	rail_reach_ends(port_towards(peer, &copy), &peer->demand->to, ends);
	rail_peer_fail_together(peer, ends, -ETIMEDOUT, "no answer over %s (%s) for a minute; %s", port->name, ends,
				rail_reach_advice(port));
	return true;
}

/* True: the peer has failed, by the end of its process or (cut_matters) by a path that is cut. */
static bool is_lost(struct rail_peer *peer, bool cut_matters, uint64_t now_ns)
{
	const struct vrb_port *port = peer->demand->connector->port;
	char ends[REACH_ENDS_BYTES];
	struct vrb_port copy;
	const char *why;
	bool cut;
	int rc;

	if (!rail_reach_due(&peer->demand->reach, now_ns))
		return false;
	rc = rail_on_demand_why(peer, &why);
	if (!cut_matters && rc != -ECONNRESET)
		return false;
	if (!rc && is_silent(peer, now_ns))
		return true;
	if (!rail_reach_is_lost(&peer->demand->reach, rc, now_ns,
				port->kind == VRB_SOFTHCA ? REACH_LIMIT_NS : REACH_PORT_NS))
		return false;
	cut = rc == -ENETUNREACH;
	rail_reach_ends(port_towards(peer, &copy), &peer->demand->to, ends);
	rail_peer_fail_together(peer, cut ? ends : NULL, rc == -ECONNRESET ? -ESRCH : rc,
				"no connection over %s (%s; %s)%s%s", port->name, why, ends, cut ? "; " : "",
				cut ? rail_link_advice(port) : "");
	return true;
}

/* May vrb_ud_lost be asked?  With many peers, only where its answer is quick. */
static bool peer_may_ask(const struct rail_peer *peer, enum rail_watch what)
{
	return what == RAIL_WATCH_NAMED || peer->demand->connector->port->kind == VRB_SOFTHCA;
}

void rail_peer_watch(struct rail_peer *peer, enum rail_watch what)
{
	int rc;

	if (!peer->demand || peer->connected || peer->error || peer->index == peer->ctx->cfg.index ||
	    !peer_may_ask(peer, what) || is_lost(peer, what != RAIL_WATCH_END, rg_now_ns()) ||
	    what != RAIL_WATCH_NAMED)
		return;
	rail_peer_connecting(peer);
	rc = prepare_once(peer);
	rail_peer_connected(peer, rc);
	if (!rc)
		info_send(peer, false);
}

void rail_on_demand_drive(struct rail_peer *peer)
{
	struct rail_demand *demand = peer->demand;
	uint64_t now = rg_now_ns();
	int rc;

	if (!demand || !peer->tx[LANE_SINGLE].waiting.head || !rg_reached(demand->next_ns, now))
		return;
	rail_peer_connecting(peer);
	rc = peer->index == peer->ctx->cfg.index ? connect_self(peer) : prepare_once(peer);
	rail_peer_connected(peer, rc);
	if (rc || peer->connected || is_lost(peer, true, now))
		return;
	info_send(peer, false);
	demand->wait_ns = demand->wait_ns ? 2 * demand->wait_ns : CONNECT_FIRST_NS;
	if (demand->wait_ns > CONNECT_LAST_NS)
		demand->wait_ns = CONNECT_LAST_NS;
	demand->next_ns = now + demand->wait_ns;
}
