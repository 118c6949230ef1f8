/* connect.c - the endpoint info of both ends becomes a connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/lane/eager_lane.h"
#include "rail/peer/endpoint_info.h"
#include "util/err.h"
#include "rail/lane/lane.h"
#include "rail/lane/lane_ring.h"
#include "rail/lane/lane_send.h"
#include "rail/lane/ring.h"
#include "rail/message/eager_choice.h"
#include "rail/message/op_queue.h"
#include "rail/policy.h"
#include "rail/rail.h"
#include "rail/peer/connect.h"
#include "rail/open/peer_gids.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/peer/reach.h"
#include "rail/lane/pool.h"
#include "rail/message/rail_record.h"
#include "rail/open/trace.h"
#include "rail/message/slices.h"
#include "rail/message/stripe.h"
#include "softhca/softhca.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"

/* ---- Agreeing ----------------------------------------------------------- */

static int terms_disagree(const struct rail_peer *peer, const char *what, uint64_t theirs,
			  uint64_t ours)
{
	rg_error("peer %u has %s %llu, this process %llu: give all processes the same", peer->index,
		 what, (unsigned long long)theirs, (unsigned long long)ours);
	return -EPROTO;
}

int rail_terms_check(const struct rail_peer *peer, const struct rail_terms *theirs)
{
	const struct rail_ctx *ctx = peer->ctx;

	if (theirs->rail_count != (uint64_t)peer->rail_count)
		return terms_disagree(peer, "a number of rails (--rails) of", theirs->rail_count,
				(uint64_t)peer->rail_count);
	if (theirs->qps != (uint64_t)peer->qps)
		return terms_disagree(peer, "--qps", theirs->qps, (uint64_t)peer->qps);
	if (theirs->chunk != ctx->settings.chunk)
		return terms_disagree(peer, "--chunk", theirs->chunk, ctx->settings.chunk);
	if (theirs->eager != ctx->eager_max)
		return terms_disagree(peer, "--eager", theirs->eager, ctx->eager_max);
	if (theirs->threshold != ctx->settings.threshold)
		return terms_disagree(peer, "--threshold", theirs->threshold, ctx->settings.threshold);
	return 0;
}

int rail_port_check(const struct rail_peer *peer, int k, uint8_t link_layer, uint8_t gid_type,
		    const unsigned char *subnet)
{
	struct vrb_port copy;
	const struct vrb_port *port = rail_port_towards(peer->ctx, peer->rail[k], peer->index, &copy);

	if (link_layer == port->link_layer && gid_type == port->gid_type &&
	    !memcmp(subnet, port->subnet, sizeof(port->subnet)))
		return 0;
	rg_error("rail %d (%s) is on another subnet than rail %d of peer %u: order the ports by "
		 "--rails so that rail i meets rail i", k, port->name, k, peer->index);
	return -ENETUNREACH;
}

bool rail_writes_slots(const struct rail_ctx *ctx)
{
	for (int r = 0; r < ctx->rail_count; r++)
		if (ctx->adapter[ctx->rail[r].adapter].inline_bytes < sizeof(struct rail_slot))
			return false;
	return true;
}

uint64_t rail_net_host(void)
{
	uint64_t host[2];

	return softhca_net_host((uint8_t *)host) ? 0 : host[0] ^ host[1];
}

int rail_net_check(const struct rail_peer *peer, int k, const unsigned char *gid, uint64_t host)
{
	const struct vrb_port *port = peer->ctx->rail[peer->rail[k]].port;
	char address[INET6_ADDRSTRLEN] = "";

	if (memcmp(gid, port->gid.raw, VRB_GID_BYTES) || host == rail_net_host())
		return 0;
	rg_error("rail %d (%s, %s): peer %u on another host has this address as well, so it reaches this host "
		 "alone (accepted: interfaces whose address no other host has)",
		 k, port->netdev, rail_net_address(gid, address), peer->index);
	return -EADDRINUSE;
}

static int endpoint_info_check(const struct rail_peer *peer, const struct endpoint_info *info)
{
	const struct rail_ctx *ctx = peer->ctx;
	const struct rail_terms terms = {
		.rail_count = info->rail_count, .qps = info->qps, .chunk = info->chunk, .eager = info->eager,
		.threshold = info->threshold,
	};
	bool polled = info->polled;
	int rc;

	if (info->magic != ENDPOINT_INFO_MAGIC) {
		rg_error("peer %u speaks another version of librail, or is of another byte order",
			 peer->index);
		return -EPROTO;
	}
	if (info->index != peer->index || info->wanted_peer != ctx->cfg.index) {
		rg_error("the endpoint info of peer %u for peer %u came to peer %u as that of "
			 "peer %u",
			 info->index, info->wanted_peer, ctx->cfg.index, peer->index);
		return -EPROTO;
	}
	rc = rail_terms_check(peer, &terms);
	for (int k = 0; k < peer->rail_count && !rc; k++)
		rc = rail_port_check(peer, k, info->rail[k].port.link_layer, info->rail[k].gid_type,
				     info->rail[k].subnet);
	if (rc)
		return rc;
	if (!info->slots || info->tx_k >= info->rail_count || info->slots & (info->slots - 1) ||
	    info->units & (info->units - 1) ||
	    (polled && (!info->units || info->slot_bytes != sizeof(struct rail_slot)))) {
		rg_error("peer %u offers eager lanes of a shape that makes no sense", peer->index);
		return -EPROTO;
	}
	if (rail_stripe_table(info->chunk_most) < RAIL_PART_BYTES) {
		rg_error("peer %u has a port that carries %u bytes in a request (needed: %llu)", peer->index,
			 info->chunk_most, (unsigned long long)RAIL_CHUNK_LEAST_BYTES);
		return -EPROTO;
	}
	return 0;
}

/* ---- Connecting --------------------------------------------------------- */

static void tx_make(struct rail_peer *peer, int role, int k, const struct endpoint_info *info)
{
	struct rail_tx *tx = &peer->tx[role];

	tx->lane = &peer->eager[k];
	tx->slots = info->slots;
	tx->units = info->units;
	tx->grant = (const _Atomic uint64_t *)(const void *)rail_block_grant_in(peer, role);
	tx->slots_addr = info->ring[role];
	tx->bytes_addr = info->ring[role] + (uint64_t)info->slots * info->slot_bytes;
	tx->rkey = info->rail[k].rkey;
	tx->polled = info->polled;
	tx->trailing = info->trailing;
	tx->key = info->key;
	tx->their_lane = info->rail[k].lane;
	tx->reverse = &peer->rx[role];
	peer->tx_count = role + 1;
}

/*
 * Messages above the limit that may go eagerly: where processors copy.  A request carries eager_max
 * bytes inline.
 */
static uint32_t eager_most(const struct rail_peer *peer)
{
	const struct rail_ctx *ctx = peer->ctx;
	const struct rail_tx *tx = &peer->tx[LANE_SINGLE];
	uint64_t most = 8 * ctx->eager_max;

	if (ctx->settings.eager != RAIL_AUTO || !peer->copies || !tx->polled || tx->trailing ||
	    tx->lane->qp.granted.inline_bytes < ctx->eager_max)
		return 0;
	if (most > EAGER_CHOICE_BYTES)
		most = EAGER_CHOICE_BYTES;
	if (most > rail_ring_payload_most(tx->units))
		most = rail_ring_payload_most(tx->units);
	return most > ctx->eager_max ? (uint32_t)most : 0;
}

/* A receiver that polls needs records in one piece, also from a process that does not poll. */
static int tx_check(const struct rail_peer *peer)
{
	for (int i = 0; i < peer->tx_count; i++) {
		const struct rail_tx *tx = &peer->tx[i];

		if (!tx->polled || tx->lane->qp.granted.inline_bytes >= sizeof(struct rail_slot))
			continue;
		rg_error("peer %u polls memory, and %s here sends %u bytes inline (needed: %zu)",
			 peer->index, peer->ctx->rail[tx->lane->rail].port->name,
			 tx->lane->qp.granted.inline_bytes, sizeof(struct rail_slot));
		return -EPROTO;
	}
	return 0;
}

static int poll_add(struct rail_ctx *ctx, struct rail_rx *rx)
{
	return rail_poll_add(ctx, &(struct rail_poll){
		.mark = &((struct rail_slot *)(void *)rx->slots)->record.mark,
		.seq = rx->seq,
		.rx = rx,
	});
}

/*
 * Messages by SEND on the lane belong to this end; the pool gets buffers for them.  They come in the
 * CQ, also at a process that polls memory for those of others.
 */
static int rx_start(struct rail_rx *rx)
{
	rx->lane->rx = rx;
	rx->lane->ctx->polled = false;
	return rail_pool_add(rx->lane);
}

static int rx_make(struct rail_peer *peer, int role, int k, const struct endpoint_info *info)
{
	struct rail_ctx *ctx = peer->ctx;
	struct rail_rx *rx = &peer->rx[role];
	struct rail_lane *lane = &peer->eager[k];

	rx->lane = lane;
	rx->seq = 1;
	rx->geometry = peer->geometry;
	rx->slots = rail_block_ring(peer, role);
	rx->bytes = rx->slots + (size_t)rx->geometry.slots * rx->geometry.slot_bytes;
	rx->grant_word = (uint64_t *)(void *)rail_block_grant_out(peer, role);
	rx->sge = (struct ibv_sge){
		.addr = (uintptr_t)rx->grant_word,
		.length = sizeof(*rx->grant_word),
		.lkey = peer->block_mr[peer_adapter(peer, k)]->lkey,
	};
	rx->wr = (struct ibv_send_wr){
		.wr_id = wr_id(lane->id, WR_EAGER, 0, 0),
		.sg_list = &rx->sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = lane->qp.granted.inline_bytes >= rx->sge.length ? IBV_SEND_INLINE : 0,
		.wr.rdma = {
			.remote_addr = info->grant[role],
			.rkey = info->rail[k].rkey,
		},
	};
	peer->rx_count = role + 1;
	return peer->polled ? poll_add(ctx, rx) : rx_start(rx);
}

static int lane_connect(struct rail_lane *lane, const struct endpoint_info *info, uint32_t qpn)
{
	const struct rail *rail = &lane->ctx->rail[lane->rail];
	struct vrb_address theirs = info->rail[lane->k].port;
	struct vrb_port copy;

	theirs.qpn = qpn;
	lane->peer->there[lane->k].lid = theirs.lid;
	memcpy(lane->peer->there[lane->k].gid, theirs.gid, sizeof(theirs.gid));
	lane->probe_addr = info->grant[LANE_SINGLE];
	lane->probe_rkey = info->rail[lane->k].rkey;
	return vrb_qp_connect(&lane->ctx->adapter[rail->adapter], &lane->qp,
			      rail_port_towards(lane->ctx, lane->rail, lane->peer->index, &copy), &theirs);
}

/* Rail k, if both ends have an eager lane there and its receiver has memory; else the first. */
static int eager_rail(const struct rail_peer *peer, const struct endpoint_info *info, int k,
		      bool received)
{
	return received && peer->eager[k].qp.qp && info->rail[k].port.qpn ? k : 0;
}

static int lanes_connect(struct rail_peer *peer, const struct endpoint_info *info, int tx_k,
			 int rx_k)
{
	int rc = 0;

	for (int k = 0; k < peer->rail_count && !rc; k++) {
		const struct endpoint_rail *theirs = &info->rail[k];

		for (int q = 0; q < peer->qps && !rc; q++)
			rc = lane_connect(peer_bulk(peer, k, q), info, theirs->bulk[q]);
		if (k != 0 && k != tx_k && k != rx_k)
			rail_lane_drop(&peer->eager[k]);
		else if (!rc)
			rc = lane_connect(&peer->eager[k], info, theirs->port.qpn);
	}
	return rc;
}

int rail_peer_link(struct rail_peer *peer, const unsigned char theirs[ENDPOINT_INFO_BYTES])
{
	struct endpoint_info info;
	int rc, tx_k, rx_k;

	memcpy(&info, theirs, sizeof(info));
	rc = endpoint_info_check(peer, &info);
	if (rc)
		return rc;
	tx_k = eager_rail(peer, &info, rail_peer_bound(peer), info.ring[LANE_BOUND]);
	rx_k = eager_rail(peer, &info, (int)info.tx_k, peer->inboxes > 1);
	if (info.chunk_most < peer->chunk_most)
		peer->chunk_most = info.chunk_most;
	peer->table_bytes = rail_stripe_table(peer->chunk_most);
	rc = lanes_connect(peer, &info, tx_k, rx_k);
	if (rc)
		return rc;
	tx_make(peer, LANE_SINGLE, 0, &info);
	if (tx_k)
		tx_make(peer, LANE_BOUND, tx_k, &info);
	rc = tx_check(peer);
	if (rc)
		return rc;
	rc = rx_make(peer, LANE_SINGLE, 0, &info);
	if (!rc && rx_k)
		rc = rx_make(peer, LANE_BOUND, rx_k, &info);
	if (rc)
		rg_error("cannot receive from peer %u: %s", peer->index, strerror(-rc));
	return rc;
}

void rail_peer_start(struct rail_peer *peer)
{
	struct rail_op_queue held = peer->tx[LANE_SINGLE].waiting;
	struct op *op, *next;

	queue_init(&peer->tx[LANE_SINGLE].waiting);
	for (int i = 0; i < peer->tx_count; i++)
		if (peer->tx[i].polled)
			rail_ring_tx_init(&peer->tx[i]);
		else
			rail_send_tx_init(&peer->tx[i]);
	for (int i = 0; i < peer->tx_count && peer->ctx->untraced; i++)
		rail_trace_tx(&peer->tx[i]);
	for (int p = 0; p < RAIL_POLICIES; p++)
		if (!rail_policies[p].names_rail)
			peer->route[p] = peer_bound_tx(peer);
	peer->eager_most = eager_most(peer);
	rail_slice_lengths(peer, peer->slice_bytes);
	peer->connected = true;
	/* Waiting operations go on, those of each way in their order. */
	for (op = held.head; op; op = next) {
		next = op->next;
		queue_push(&peer->route[op->policy]->waiting, op);
	}
	if (held.head)
		peer_work(peer);
}
