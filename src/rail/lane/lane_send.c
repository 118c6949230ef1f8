/*
 * lane_send.c - eager messages by SEND into shared receive buffers (pool.c): where memory may
 * not be polled, and where a model or a real wire times the arrival.
 *
 * A SEND carries the record, then the payload.  The receiver posts a buffer again before it
 * grants the buffer back, so a sender with credit always finds one.  A receiver that is not
 * ready would be an error of librail.
 *
 * A record's mark carries the credit of the other direction, so that a grant of its own is due only where no
 * answers leave: credit:32 sequence:24 kind:8.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "rail/message/eager.h"
#include "rail/lane/eager_lane.h"
#include "rail/lane/lane.h"
#include "rail/lane/lane_send.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/lane/ring.h"
#include "rail/lane/lane_stage.h"
#include "verbs/vrb.h"
#include "rail/lane/wr_id.h"
#include "util/compiler.h"

enum { SEQUENCE = (1 << 24) - 1 };

/* The mark of the next record. */
static uint64_t mark_of(const struct rail_tx *tx, unsigned kind)
{
	return (uint64_t)tx->reverse->given_back << 32 | ((tx->seq + 1) & SEQUENCE) << 8 | kind;
}

static int send_post(struct rail_tx *tx, unsigned kind, const struct rail_header *header,
		     uint64_t word, const void *payload, size_t bytes)
{
	struct rail_record *record = &tx->slot.record;
	struct ibv_send_wr *wr = &tx->wr[0];
	int buffer;

	if (unlikely(!tx_slot_free(tx) || !lane_has_room(tx->lane, 1)))
		return 0;
	record->header = *header;
	record->word = word;
	atomic_store_explicit(&record->mark, mark_of(tx, kind), memory_order_relaxed);
	buffer = lane_stage(tx, (struct lane_part){record, sizeof(*record)},
			    (struct lane_part){payload, bytes});
	if (unlikely(buffer < 0))
		return 0;
	tx->seq++;
	tx->reverse->granted = tx->reverse->given_back;
	if (unlikely(buffer < STAGING))
		return rail_lane_post_staged(tx->lane, wr, wr, 1, (uint32_t)buffer);
	return lane_post(tx->lane, wr, wr, 1);
}

static int send_control(struct rail_tx *tx, unsigned kind, const struct rail_header *header,
			uint64_t word, const void *payload)
{
	return send_post(tx, kind, header, word, payload, RAIL_SLOT_PAYLOAD);
}

static int send_edges(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		      size_t bytes)
{
	return send_post(tx, RECORD_EDGES, header, bytes, payload, bytes);
}

static int send_eager(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		      size_t bytes)
{
	int rc = send_post(tx, RECORD_EAGER, header, bytes, payload, bytes);

	if (likely(rc > 0))
		lane_sent(tx->lane, bytes);
	return rc;
}

void rail_send_tx_init(struct rail_tx *tx)
{
	tx->eager = send_eager;
	tx->control = send_control;
	tx->edges = send_edges;
	tx->wr[0] = (struct ibv_send_wr){
		.wr_id = wr_id(tx->lane->id, WR_EAGER, 0, 0),
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htonl(tx->their_lane),
		.sg_list = tx->sge,
	};
}

/* ---- Receiving ---------------------------------------------------------- */

/* False: more than was sent.  Of a grant and the credit of a record the later one holds. */
static bool take_credit(struct rail_rx *rx, uint32_t credit)
{
	struct rail_peer *peer = rx->lane->peer;
	struct rail_tx *tx = &peer->tx[rx - peer->rx];

	if (credit - tx->granted > (uint32_t)tx->seq - tx->granted)
		return (int32_t)(credit - tx->granted) < 0;
	tx->granted = credit;
	return true;
}

void rail_send_arrived(struct rail_rx *rx, const unsigned char *at, uint32_t bytes)
{
	const struct rail_record *record = (const struct rail_record *)(const void *)at;
	uint64_t mark = atomic_load_explicit(&record->mark, memory_order_relaxed);
	unsigned kind = mark & 0xff;

	if (bytes < sizeof(*record) || (mark >> 8 & SEQUENCE) != (rx->seq & SEQUENCE) ||
	    !take_credit(rx, (uint32_t)(mark >> 32)) ||
	    (kind == RECORD_EAGER || kind == RECORD_EDGES ?
		     record->word != bytes - sizeof(*record) :
		     bytes != sizeof(*record) + RAIL_SLOT_PAYLOAD))
		kind = 0;
	rx->seq++;
	rail_record_arrived(rx, kind, record, at + sizeof(*record), bytes - sizeof(*record));
}

/* The program may answer the message: its answer leaves before the grant, which the next call posts. */
void rail_send_taken(struct rail_rx *rx)
{
	rx->given_back = (uint32_t)(rx->seq - 1);
	if (likely(rx->lane->peer->error || rx->grant_owed ||
		   !rail_ring_grant_due(rx->given_back, rx->granted, rx->geometry.slots)))
		return;
	rx->grant_owed = rx->grant_later = true;
	peer_work(rx->lane->peer);
}
