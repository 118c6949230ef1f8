/* lane.c - functions for lanes of every kind. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rail/lane/eager_lane.h"
#include "util/compiler.h"
#include "util/err.h"
#include "rail/lane/lane.h"
#include "rail/memory/mr.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/memory/memory.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/lane/ring.h"
#include "rail/lane/staging.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"

int rail_lane_refused(struct rail_lane *lane, int error)
{
	rail_peer_fail(lane->peer, -ECONNRESET, "%s refuses a request: %s",
		       lane->ctx->rail[lane->rail].port->name, strerror(error));
	return -ECONNRESET;
}

/* ---- Reclaiming requests and staging buffers ---------------------------- */

int rail_lane_post_signalled(struct rail_lane *lane, struct ibv_send_wr *first,
			     struct ibv_send_wr *last, uint32_t count)
{
	struct ibv_send_wr *bad;
	int rc;

	lane->sq_posted += count;
	lane->sq_signalled = lane->sq_posted;
	lane->ctx->cq_wanted++;
	last->wr_id = wr_id(lane->id, WR_EAGER, lane->sq_posted, 0);
	last->send_flags |= IBV_SEND_SIGNALED;
	rc = ibv_post_send(lane->qp.qp, first, &bad);
	last->send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
	return likely(!rc) ? 1 : rail_lane_refused(lane, rc);
}

int rail_lane_post_staged(struct rail_lane *lane, struct ibv_send_wr *first,
			  struct ibv_send_wr *last, uint32_t count, uint32_t buffer)
{
	struct ibv_send_wr *bad;
	int rc;

	lane->sq_posted += count;
	lane->sq_signalled = lane->sq_posted;
	lane->ctx->cq_wanted++;
	last->wr_id = wr_id(lane->id, WR_STAGED, lane->sq_posted, buffer);
	last->send_flags |= IBV_SEND_SIGNALED;
	rc = ibv_post_send(lane->qp.qp, first, &bad);
	last->wr_id = wr_id(lane->id, WR_EAGER, 0, 0);	/* the next request has no buffer */
	last->send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
	if (likely(!rc))
		return 1;
	rail_staging_put(&lane->ctx->staging, buffer);
	return rail_lane_refused(lane, rc);
}

int rail_lane_probe(struct rail_lane *lane)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		/* Some adapters check the key of an empty write, too. */
		.wr.rdma = { .remote_addr = lane->probe_addr, .rkey = lane->probe_rkey },
	};
	int rc;

	if (!lane_has_room(lane, 1))
		return 0;
	if (lane->sent)
		lane->sent[lane->sq_posted % lane->sq_depth] = (struct rail_sent){ .op = NULL };
	lane->sq_posted++;
	lane->sq_signalled = lane->sq_posted;
	lane->ctx->cq_wanted++;
	wr.wr_id = wr_id(lane->id, lane->sent ? WR_PROBE : WR_EAGER, lane->sq_posted, 0);
	rc = ibv_post_send(lane->qp.qp, &wr, &bad);
	return likely(!rc) ? 1 : rail_lane_refused(lane, rc);
}

/* An eager lane has carried something if its reader has seen a record. */
bool rail_lane_is_used(const struct rail_lane *lane)
{
	const struct rail_peer *peer = lane->peer;

	for (int i = 0; i < peer->rx_count; i++)
		if (peer->rx[i].lane == lane && peer->rx[i].seq > 1)
			return true;
	return lane->sq_posted || lane->landed;
}

int rail_staging_make(struct rail_ctx *ctx)
{
	struct rail_staging *s = &ctx->staging;
	uint32_t bytes = (uint32_t)(ctx->eager_max + sizeof(struct rail_slot) + 63) & ~63u;
	int rc = 0;

	if (s->memory)
		return 0;
	s->memory = rail_memory_map(ctx, (size_t)bytes * STAGING);
	if (!s->memory) {
		rg_error("no memory for %d staging buffers of %u bytes", STAGING, bytes);
		return -ENOMEM;
	}
	s->buffer_bytes = bytes;
	for (int a = 0; a < ctx->adapter_count && !rc; a++)
		rc = vrb_mr_register(&ctx->adapter[a], s->memory, (size_t)bytes * STAGING,
				     VRB_MR_POLLED, &s->mr[a]);
	if (rc) {
		rg_error("cannot register the staging buffers: %s%s", strerror(-rc),
			 rail_mr_hint(rc));
		rail_staging_free(ctx);
		return rc;
	}
	for (int i = 0; i < STAGING; i++)
		s->free[i] = (uint16_t)i;
	s->free_count = STAGING;
	return 0;
}

void rail_staging_free(struct rail_ctx *ctx)
{
	struct rail_staging *s = &ctx->staging;

	for (int a = 0; a < RAIL_ALL; a++) {
		vrb_mr_deregister(s->mr[a]);
		s->mr[a] = NULL;
	}
	if (s->memory)
		rail_memory_unmap(ctx, s->memory, (size_t)s->buffer_bytes * STAGING);
	s->memory = NULL;
}

/* ---- Credit ------------------------------------------------------------- */

bool rail_tx_refresh(struct rail_tx *tx)
{
	uint64_t word = atomic_load_explicit(tx->grant, memory_order_acquire);

	if ((int32_t)(rail_grant_slots(word) - tx->granted) > 0)
		tx->granted = rail_grant_slots(word);	/* a record may have brought a later one */
	tx->units_granted = rail_grant_units(word);
	return rail_ring_free((uint32_t)tx->seq, tx->granted, tx->slots);
}

void rail_rx_grant(struct rail_rx *rx)
{
	uint32_t read = (uint32_t)(rx->seq - 1);

	if (!lane_has_room(rx->lane, 1)) {
		rx->grant_owed = true;
		peer_work(rx->lane->peer);
		return;
	}
	rx->grant_owed = false;
	rx->granted = rx->given_back = read;
	rx->units_granted = rx->units_read;
	*rx->grant_word = rail_grant_word(read, rx->units_read);
	lane_post(rx->lane, &rx->wr, &rx->wr, 1);
}
