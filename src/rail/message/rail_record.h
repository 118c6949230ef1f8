/* rail_record.h - records, which travel on eager lanes, and the slots of rings that hold them. */
#ifndef RAIL_RECORD_H
#define RAIL_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#include "rail/rail.h"

enum { RAIL_SLOT_PAYLOAD = 32 };	/* bytes of payload with the record in one cache line */

enum rail_record_kind {
	RECORD_EAGER = 1,	/* payload in the slot; word: bytes */
	RECORD_LONG,		/* payload in the byte ring; word: bytes | LONG_TELL | end of payload << 32 */
	RECORD_RTS,		/* word: bytes; payload: struct rail_rts_wire */
	RECORD_CTS,		/* header: handle, address; word: see rndv.c; payload: rkeys */
	RECORD_BYE,		/* the peer closes */
	RECORD_KEYS,		/* just before its RTS; header: handle, address; payload: rkeys */
	RECORD_FIN,		/* all wanted bytes have come; see rndv.c */
	RECORD_CANCEL,		/* header: handle of an RTS before it that is to be cancelled */
	RECORD_CANCELLED,	/* answer to CANCEL; header: handle */
	RECORD_EDGES,		/* RECORD_LONG with edges (edges.h); header: landing */
	RECORD_TOLD,		/* answer to LONG_TELL; header: end of payload, time */
	RECORD_ASK,		/* a CTS for slices (slices.h); header: handle, enum rail_slicing */
	RECORD_SLICE,		/* RECORD_LONG with a slice; header: landing */
};

/* The sender wants to know when the payload is in place. */
#define LONG_TELL ((uint64_t)1 << 31)

/* The mark shows that the rest has come: sequence number << 8 | kind, never 0. */
struct rail_record {
	struct rail_header header;
	uint64_t word;
	_Atomic uint64_t mark;
};

struct rail_slot {
	unsigned char payload[RAIL_SLOT_PAYLOAD];
	struct rail_record record;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct rail_slot) == 64, "one slot is one cache line");

struct rail_rts_wire {
	uint64_t handle;
	union {
		uint64_t threshold;
		uint64_t address;	/* RNDV_KEYED: of memory to be read */
	};
	uint8_t policy, bound, lane, rndv_flags;	/* rndv_flags: rndv.h */
	union {
		uint8_t weight[RAIL_MAX];	/* weighted: parts of the rails, in proportion */
		uint32_t rkey;		/* RNDV_KEYED: of the rail `bound` */
	};
	uint8_t parts;			/* the sender's memory is in parts */
	uint8_t crossing;		/* with RNDV_CHOICE: the scheme of messages that cross (scheme.h) */
	uint8_t shared;			/* the sender's memory is RAIL_MEM_ARENA */
	uint8_t found;			/* with RNDV_CHOICE: what the sender has found as a receiver (scheme.h) */
};

_Static_assert(sizeof(struct rail_rts_wire) == RAIL_SLOT_PAYLOAD, "an RTS fits a slot");

#endif
