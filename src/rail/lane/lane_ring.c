/*
 * lane_ring.c - eager messages by RDMA write into memory that the receiver polls.
 *
 * A record is one cache line, written by one RDMA write.  The last 8 bytes of a record, the mark,
 * hold a sequence number that this slot has never held.  So slots need no clearing, and a payload
 * cannot pass for a mark.  Up to 32 bytes of payload travel in the line.  A longer payload goes
 * first into the byte ring, in the same post.
 *
 * On every real device the writes of a queue pair may appear in another order (vrb.h).
 * A payload in the byte ring then ends with a mark of its own, a sequence number and a random key.
 * The receiver of the record waits for this mark.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/compiler.h"
#include "util/copy.h"
#include "rail/message/eager.h"
#include "rail/lane/eager_lane.h"
#include "rail/lane/lane.h"
#include "rail/lane/lane_ring.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_op.h"
#include "rail/message/rail_record.h"
#include "rail/lane/ring.h"
#include "rail/lane/lane_stage.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"

enum {
	RING_BATCH = RAIL_BATCH,	/* records taken from one ring in one rail_progress */
	RINGS_HOT = 16,			/* rings that every rail_progress polls */
	RINGS_TURN = 16,		/* rings that it polls of all others, in turn */
	RING_REQUESTS = 8,		/* a payload's, at most */
	LINE_BYTES = 64,
	AHEAD_BYTES = 4096,		/* of a payload, requested before it is matched */
};

_Static_assert(RING_SLOTS <= RAIL_BATCH * RAIL_BATCHES, "all that a ring holds");

static void record_fill(struct rail_record *record, uint64_t seq, unsigned kind,
			const struct rail_header *header, uint64_t word)
{
	record->header = *header;
	record->word = word;
	atomic_store_explicit(&record->mark, seq << 8 | kind, memory_order_relaxed);
}

static uint64_t slot_address(const struct rail_tx *tx)
{
	return tx->slots_addr + ((tx->seq - 1) & (tx->slots - 1)) * sizeof(struct rail_slot);
}

/* Write the next slot; its payload is in place.  The caller has checked that there is room. */
static inline int slot_post(struct rail_tx *tx, unsigned kind, const struct rail_header *header,
			    uint64_t word)
{
	struct ibv_send_wr *wr = &tx->wr[1];

	tx->seq++;
	record_fill(&tx->slot.record, tx->seq, kind, header, word);
	wr->wr.rdma.remote_addr = slot_address(tx);
	return lane_post(tx->lane, wr, wr, 1);
}

static int ring_control(struct rail_tx *tx, unsigned kind, const struct rail_header *header,
			uint64_t word, const void *payload)
{
	if (unlikely(!tx_slot_free(tx) || !lane_has_room(tx->lane, 1)))
		return 0;
	memcpy(tx->slot.payload, payload, RAIL_SLOT_PAYLOAD);
	return slot_post(tx, kind, header, word);
}

static int ring_eager_slot(struct rail_tx *tx, const struct rail_header *header,
			   const void *payload, size_t bytes)
{
	int rc;

	rg_copy_short(tx->slot.payload, payload, bytes);
	rc = slot_post(tx, RECORD_EAGER, header, bytes);
	if (likely(rc > 0))
		lane_sent(tx->lane, tx->slot.record.word);
	return rc;
}

static bool payload_place(struct rail_tx *tx, uint32_t units, uint32_t *first)
{
	if (rail_ring_place(tx->position, tx->units_granted, tx->units, units, first))
		return true;
	rail_tx_refresh(tx);
	return rail_ring_place(tx->position, tx->units_granted, tx->units, units, first);
}

/* The word of a record whose payload ends at tx->position; the receiver tells when it has taken this one. */
static uint64_t long_word(struct rail_tx *tx, size_t bytes)
{
	uint64_t tell = 0;

	if (unlikely(tx->tell)) {
		tx->lane->ctx->eager_sample.told = true;
		tx->lane->ctx->eager_sample.end = tx->position;
		tell = LONG_TELL;
	}
	return (uint64_t)tx->position << 32 | tell | bytes;
}

static int ring_long(struct rail_tx *tx, unsigned kind, const struct rail_header *header,
		     const void *payload, size_t bytes)
{
	uint64_t mark = (tx->seq + 1) ^ tx->key;
	size_t trailing = tx->trailing ? sizeof(mark) : 0;
	uint32_t units = rail_ring_units(bytes + trailing);
	struct ibv_send_wr *wr = tx->wr;
	uint32_t first;
	int buffer;

	if (unlikely(!tx_slot_free(tx) || !lane_has_room(tx->lane, 2)))
		return 0;
	if (unlikely(!payload_place(tx, units, &first)))
		return 0;
	buffer = lane_stage(tx, (struct lane_part){payload, bytes},
			    (struct lane_part){&mark, trailing});
	if (unlikely(buffer < 0))
		return 0;
	tx->seq++;
	tx->position = first + units;
	wr[0].wr.rdma.remote_addr = tx->bytes_addr +
				    (uint64_t)(first & (tx->units - 1)) * RAIL_UNIT_BYTES;
	record_fill(&tx->slot.record, tx->seq, kind, header, long_word(tx, bytes));
	wr[1].wr.rdma.remote_addr = slot_address(tx);
	if (unlikely(buffer < STAGING))
		return rail_lane_post_staged(tx->lane, &wr[0], &wr[1], 2, (uint32_t)buffer);
	return lane_post(tx->lane, &wr[0], &wr[1], 2);
}

/*
 * A message by choice: where it is longer than a request carries inline, several requests before the record.
 * Processors copy, so writes appear in order.
 */
static int ring_large(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		      size_t bytes)
{
	const uint32_t most = tx->lane->qp.granted.inline_bytes, units = rail_ring_units(bytes);
	struct ibv_send_wr wr[RING_REQUESTS];
	struct ibv_sge sge[RING_REQUESTS];
	uint64_t to;
	uint32_t count = 0, first;

	if (unlikely(!tx_slot_free(tx) || !lane_has_room(tx->lane, RING_REQUESTS + 1)))
		return 0;
	if (unlikely(!payload_place(tx, units, &first)))
		return 0;
	to = tx->bytes_addr + (uint64_t)(first & (tx->units - 1)) * RAIL_UNIT_BYTES;
	for (size_t at = 0; at < bytes; at += sge[count++].length) {
		sge[count] = (struct ibv_sge){
			.addr = (uintptr_t)payload + at,
			.length = bytes - at < most ? (uint32_t)(bytes - at) : most,
		};
		wr[count] = tx->wr[0];
		wr[count].sg_list = &sge[count];
		wr[count].num_sge = 1;
		wr[count].send_flags = IBV_SEND_INLINE;
		wr[count].wr.rdma.remote_addr = to + at;
		wr[count].next = &wr[count + 1];
	}
	wr[count - 1].next = &tx->wr[1];
	tx->seq++;
	tx->position = first + units;
	record_fill(&tx->slot.record, tx->seq, RECORD_LONG, header, long_word(tx, bytes));
	tx->wr[1].wr.rdma.remote_addr = slot_address(tx);
	return lane_post(tx->lane, &wr[0], &tx->wr[1], count + 1);
}

static int ring_eager(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		      size_t bytes)
{
	int rc;

	if (bytes <= RAIL_SLOT_PAYLOAD) {
		if (unlikely(!tx_slot_free(tx) || !lane_has_room(tx->lane, 1)))
			return 0;
		return ring_eager_slot(tx, header, payload, bytes);
	}
	if (unlikely(bytes > tx->lane->ctx->eager_max))
		rc = ring_large(tx, header, payload, bytes);
	else
		rc = ring_long(tx, RECORD_LONG, header, payload, bytes);
	if (likely(rc > 0))
		lane_sent(tx->lane, bytes);
	return rc;
}

static int ring_edges(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		      size_t bytes)
{
	return ring_long(tx, RECORD_EDGES, header, payload, bytes);
}

static int ring_slice(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		      size_t bytes)
{
	return ring_long(tx, RECORD_SLICE, header, payload, bytes);
}

void rail_ring_tx_init(struct rail_tx *tx)
{
	tx->eager = ring_eager;
	tx->control = ring_control;
	tx->edges = ring_edges;
	tx->slice = ring_slice;
	tx->eager_slot = ring_eager_slot;
	for (int i = 0; i < 2; i++)
		tx->wr[i] = (struct ibv_send_wr){
			.wr_id = wr_id(tx->lane->id, WR_EAGER, 0, 0),
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma.rkey = tx->rkey,
		};
	tx->wr[0].sg_list = &tx->sge[0];
	tx->wr[0].next = &tx->wr[1];
	tx->sge[2] = (struct ibv_sge){ .addr = (uintptr_t)&tx->slot, .length = sizeof(tx->slot) };
	tx->wr[1].sg_list = &tx->sge[2];
	tx->wr[1].num_sge = 1;
	tx->wr[1].send_flags = IBV_SEND_INLINE;
}

/* ---- Receiving ---------------------------------------------------------- */

static inline const struct rail_slot *ring_slot_at(const struct rail_rx *rx, uint64_t seq)
{
	const struct rail_slot *slots = (const struct rail_slot *)(const void *)rx->slots;

	return &slots[(seq - 1) & (rx->geometry.slots - 1)];
}

/* The slot whose mark is polled. */
static inline const struct rail_slot *poll_slot(const struct rail_poll *p)
{
	return (const struct rail_slot *)(const void *)((const unsigned char *)p->mark -
							offsetof(struct rail_slot, record.mark));
}

static inline bool slot_came(const struct rail_poll *p, unsigned *kind)
{
	uint64_t mark = atomic_load_explicit(p->mark, memory_order_acquire);

	*kind = mark & 0xff;
	return mark >> 8 == p->seq;
}

/*
 * Find a long payload: 1 it has come, 0 not yet, -EPROTO outside the ring.  *end is the
 * position after it.
 */
static int payload_find(const struct rail_rx *rx, uint64_t word, size_t *bytes, uint32_t *end,
			const void **payload)
{
	const struct rail_geometry *g = &rx->geometry;
	uint32_t length = (uint32_t)(word & (LONG_TELL - 1)), units, first;
	uint64_t mark = 0;

	*end = (uint32_t)(word >> 32);
	if (length > rail_ring_payload_most(g->units))
		return -EPROTO;
	units = rail_ring_units(length + (g->trailing ? sizeof(mark) : 0));
	first = (*end - units) & (g->units - 1);
	if (first + units > g->units)
		return -EPROTO;
	*bytes = length;
	*payload = rx->bytes + (size_t)first * RAIL_UNIT_BYTES;
	if (!g->trailing)
		return 1;
	memcpy(&mark, (const unsigned char *)*payload + length, sizeof(mark));
	atomic_thread_fence(memory_order_acquire);
	return mark == (rx->seq ^ g->key);
}

/* Another core has these lines: all are on their way while the message is matched. */
static inline void payload_request(const void *payload, size_t bytes)
{
	const unsigned char *line = payload, *end = line + (bytes < AHEAD_BYTES ? bytes : AHEAD_BYTES);

	for (; line < end; line += LINE_BYTES)
		__builtin_prefetch(line);
}

/*
 * The payload before this position has been taken.  Without room, and between KEYS and their RTS, the
 * sender goes without.
 */
static void payload_tell(struct rail_rx *rx, uint32_t end)
{
	static const unsigned char nothing[RAIL_SLOT_PAYLOAD];
	struct rail_tx *tx = &rx->lane->peer->tx[LANE_SINGLE];

	if (!rx->lane->peer->error && !(tx->waiting.head && tx->waiting.head->stage == STAGE_RTS))
		tx->control(tx, RECORD_TOLD, &(struct rail_header){ { end, rg_now_ns() } }, 0,
			    nothing);
}

/* Go on to the next record. */
static inline void slot_pass(struct rail_poll *p, struct rail_rx *rx)
{
	rx->seq = ++p->seq;
	p->mark = &ring_slot_at(rx, p->seq)->record.mark;
}

/* Take a record whose payload is elsewhere, or an invalid one.  False: it has not come yet. */
static __attribute__((noinline)) bool slot_take_other(struct rail_poll *p,
						      const struct rail_slot *slot, unsigned kind)
{
	struct rail_rx *rx = p->rx;
	const void *payload = slot->payload;
	size_t bytes = (size_t)slot->record.word;
	uint32_t end = rx->units_read;
	bool tell;

	if (kind == RECORD_LONG || kind == RECORD_EDGES || kind == RECORD_SLICE) {
		int rc = payload_find(rx, slot->record.word, &bytes, &end, &payload);

		if (rc == 0)
			return false;
		if (likely(rc > 0))
			payload_request(payload, bytes);
		kind = rc < 0 ? 0 : kind == RECORD_LONG ? RECORD_EAGER : kind;
	} else if (kind == RECORD_EAGER) {
		kind = 0;		/* longer than a slot */
	}
	slot_pass(p, rx);
	tell = (kind == RECORD_EAGER || kind == RECORD_SLICE) && slot->record.word & LONG_TELL;
	rail_record_arrived(rx, kind, &slot->record, payload, bytes);
	rx->units_read = end;
	if (unlikely(tell))
		payload_tell(rx, end);
	if (rail_ring_grant_due(rx->units_read, rx->units_granted, rx->geometry.units))
		rail_rx_grant(rx);
	return true;
}

/* Take the record that has come; false: its payload has not come yet. */
static inline bool slot_take(struct rail_poll *p, unsigned kind)
{
	struct rail_rx *rx = p->rx;
	const struct rail_slot *slot = poll_slot(p);
	size_t bytes = (size_t)slot->record.word;

	if (likely(kind == RECORD_EAGER && bytes <= RAIL_SLOT_PAYLOAD)) {
		slot_pass(p, rx);
		if (rail_peer_listens(rx->lane->peer))
			rail_message_arrived(rx, &slot->record, slot->payload, bytes);
	} else if (!slot_take_other(p, slot, kind)) {
		return false;
	}
	if (unlikely(rail_ring_grant_due((uint32_t)(rx->seq - 1), rx->granted,
					 rx->geometry.slots)))
		rail_rx_grant(rx);
	return true;
}

/* An upcall may connect a peer, whose ring moves the table. */
static inline uint32_t ring_poll(struct rail_ctx *ctx, int which)
{
	uint32_t n = 0;
	unsigned kind;

	while (n < RING_BATCH && slot_came(&ctx->poll[which], &kind) &&
	       slot_take(&ctx->poll[which], kind)) {
		n++;
		if (unlikely(ctx->poll[which].rx->lane->peer->error))
			break;
	}
	return n;
}

static void polls_swap(struct rail_poll *a, struct rail_poll *b)
{
	const struct rail_poll c = *a;

	*a = *b;
	*b = c;
}

/* The next ones of the rings that are polled in turn.  One with records becomes a hot one. */
static __attribute__((noinline)) uint32_t rings_poll_turn(struct rail_ctx *ctx)
{
	const int others = ctx->poll_count - RINGS_HOT;
	uint32_t n = 0;

	for (int left = others < RINGS_TURN ? others : RINGS_TURN; left; left--) {
		const int which = RINGS_HOT + (int)(ctx->poll_turn++ % (uint32_t)others);
		const uint32_t came = ring_poll(ctx, which);

		if (came)
			polls_swap(&ctx->poll[which], &ctx->poll[ctx->poll_cooled++ % RINGS_HOT]);
		n += came;
	}
	return n;
}

int rail_poll_add(struct rail_ctx *ctx, const struct rail_poll *poll)
{
	const size_t count = (size_t)ctx->poll_count + 1;
	struct rail_poll *grown = realloc(ctx->poll, count * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	ctx->poll = grown;
	ctx->poll[ctx->poll_count++] = *poll;
	ctx->poll_hot = ctx->poll_count < RINGS_HOT ? ctx->poll_count : RINGS_HOT;
	return 0;
}

uint32_t rail_rings_poll(struct rail_ctx *ctx)
{
	uint32_t n = 0;

	for (int i = 0; i < ctx->poll_hot; i++)
		n += ring_poll(ctx, i);
	if (unlikely(ctx->poll_count > ctx->poll_hot))
		n += rings_poll_turn(ctx);
	return n;
}

uint32_t rail_rings_poll_all(struct rail_ctx *ctx)
{
	uint32_t n = 0;

	for (int i = 0; i < ctx->poll_count; i++)
		n += ring_poll(ctx, i);
	return n;
}
