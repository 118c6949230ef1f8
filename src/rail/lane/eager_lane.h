/* eager_lane.h - the two ends of an eager lane: sending, reading, and credit. */
#ifndef RAIL_EAGER_LANE_H
#define RAIL_EAGER_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/message/op_queue.h"
#include "rail/rail.h"
#include "rail/message/rail_record.h"
#include "rail/lane/lane.h"
#include "rail/lane/ring.h"
#include "rail/message/table.h"
#include "util/compiler.h"
#include "verbs/vrb.h"

enum { LANE_SINGLE, LANE_BOUND, LANE_ROLES };	/* eager lanes of a peer, by their messages */

/* Geometry of the eager lanes, stated by the receiver. */
struct rail_geometry {
	bool polled, trailing;
	uint32_t slots, units;
	uint32_t slot_bytes;		/* size of a receive buffer */
	uint64_t key;
};

/* Sending end of an eager lane. */
struct rail_tx {
	int (*eager)(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		     size_t bytes);
	/* The same for a slot's payload, when rail_ring_ready.  NULL: no slots, or no connection. */
	int (*eager_slot)(struct rail_tx *tx, const struct rail_header *header,
			  const void *payload, size_t bytes);
	int (*control)(struct rail_tx *tx, unsigned kind, const struct rail_header *header,
		       uint64_t word, const void *payload);
	/* RECORD_EDGES: more bytes than a slot has, counted as no message. */
	int (*edges)(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		     size_t bytes);
	/* RECORD_SLICE, of the longest of rail_slice_lengths at most: the same.  Of lanes that are polled. */
	int (*slice)(struct rail_tx *tx, const struct rail_header *header, const void *payload,
		     size_t bytes);
	struct rail_lane *lane;
	uint64_t seq;			/* records sent */
	uint32_t slots, granted;	/* ring size; given back by the reader, when last read */
	uint32_t position, units, units_granted;	/* byte ring */
	const _Atomic uint64_t *grant;	/* written by the reader */
	uint64_t slots_addr, bytes_addr;
	uint32_t rkey;
	bool polled;			/* the receiver polls memory; else by SEND */
	bool trailing;			/* a mark after payloads in the byte ring too */
	bool tell;			/* the next record is LONG_TELL */
	uint64_t key;			/* key of the trailing marks */
	uint32_t their_lane;		/* SEND: the lane's number at the receiver */
	struct rail_rx *reverse;	/* of the same role: by SEND, records carry its credit */
	struct rail_op_queue waiting;
	struct ibv_send_wr wr[2];	/* payload, record */
	struct ibv_sge sge[3];
	struct rail_slot slot;
	/* The function `eager` before trace.c replaced it. */
	int (*untraced)(struct rail_tx *tx, const struct rail_header *header, const void *payload,
			size_t bytes);
};

/* Receiving end. */
struct rail_rx {
	struct rail_lane *lane;
	uint64_t seq;			/* number of the next record, from 1 */
	uint32_t granted;		/* slots given back, as the sender knows or will */
	uint32_t given_back;		/* by SEND: buffers that are posted again; else as granted */
	uint32_t units_read, units_granted;
	struct rail_geometry geometry;
	unsigned char *slots, *bytes;	/* ring and byte ring, or receive buffers */
	bool grant_owed;
	bool grant_later;		/* not in this call of rail_progress */
	struct rail_keys keys;		/* for the RTS that comes next */
	uint64_t *grant_word;		/* the source of grants to the sender, registered */
	struct ibv_send_wr wr;		/* the write of a grant */
	struct ibv_sge sge;
};

static inline bool tx_slot_free(struct rail_tx *tx)
{
	return likely(rail_ring_free((uint32_t)tx->seq, tx->granted, tx->slots)) ||
	       rail_tx_refresh(tx);
}

#endif
