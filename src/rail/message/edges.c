/* edges.c - see edges.h. */
#include "rail/message/edges.h"

#include <string.h>

#include "rail/lane/eager_lane.h"
#include "rail/lane/lane.h"
#include "rail/memory/mr.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/message/rndv.h"
#include "util/compiler.h"

enum { EDGE_MAX = 4096 };		/* bytes of the largest page for which edges are a record */

void rail_edges_find(struct op *op, uint64_t address)
{
	const uint64_t page = op->peer->ctx->mr.page;

	op->head = (uint16_t)(-address & (page - 1));
	op->tail = (uint16_t)((address + op->bytes) & (page - 1));
}

/* No edges with control messages, which count bytes by rail. */
bool rail_edges_fit(const struct op *op)
{
	const struct rail_ctx *ctx = op->peer->ctx;
	const uint64_t bytes = (uint64_t)op->head + op->tail;

	return bytes > RAIL_SLOT_PAYLOAD && bytes <= ctx->eager_max && bytes <= op->bytes &&
	       ctx->mr.page <= EDGE_MAX && !(op->rndv_flags & RNDV_CONTROL);
}

struct rail_chunk rndv_chunk(const struct op *op, const struct rail_stripe *s, uint32_t n)
{
	struct rail_chunk chunk = rail_stripe_chunk(s, n);
	uint64_t low = op->head, high = op->bytes - op->tail;
	uint64_t begin = chunk.offset, end = begin + chunk.bytes;

	if (likely(!(op->rndv_state & RNDV_HAS_EDGES)))
		return chunk;
	begin = begin < low ? low : begin > high ? high : begin;
	end = end < low ? low : end > high ? high : end;
	chunk.offset = begin;
	chunk.bytes = end - begin;
	return chunk;
}

int rail_edges_post(struct rail_tx *tx, const struct op *op)
{
	const struct rail_header header = { { op->slot, op->generation } };
	const unsigned char *from = op->buf.addr;
	unsigned char both[2 * EDGE_MAX];
	size_t bytes = (size_t)op->head + op->tail;
	int rc;

	memcpy(both, from, op->head);
	memcpy(both + op->head, from + op->bytes - op->tail, op->tail);
	rc = tx->edges(tx, &header, both, bytes);
	if (rc > 0)
		lane_ledger(tx->lane)->tx_bytes += bytes;
	return rc;
}
