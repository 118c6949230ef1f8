/*
 * rail_op.h - an operation as librail sees it, and its stages.
 *
 * The caller has a struct rail_op, librail the same memory as a struct op.  The two differ in type
 * alone, so op_of and op_outer cost nothing; they are called at librail's border only.
 */
#ifndef RAIL_OP_H
#define RAIL_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/rail.h"

struct rail_mr;
struct rail_parts;

enum rail_stage {
	STAGE_EAGER,		/* waits for room on the eager lane */
	STAGE_KEYS,		/* KEYS wait for room */
	STAGE_RTS,		/* the RTS waits for room */
	STAGE_RTS_SENT,
	STAGE_EDGES,		/* EDGES wait for room, chunks follow */
	STAGE_CUTTING,		/* in a queue of the peer until all chunks are posted */
	STAGE_POSTED,
	STAGE_ACCEPTED,		/* receiver: waits for receive requests and a landing */
	STAGE_CTS,		/* the CTS waits for room */
	STAGE_LANDING,
	/* The last step of an operation: */
	STAGE_FIN,		/* the FIN waits for room */
	STAGE_CANCEL,		/* a record without a message (cancel.c) waits for room */
	STAGE_CANCELLED,
	STAGE_OVER,		/* in the context's list of what has completed */
};

struct op {
	void (*done)(struct rail_op *op, int status);	/* the caller's; the rest is librail's */
	struct op *next;
	struct rail_peer *peer;
	struct rail_buf buf;
	struct rail_header header;
	struct rail_mr *mr;			/* registration of buf */
	struct rail_parts *parts;		/* parts.h; NULL: it moves as a whole */
	uint64_t handle;			/* in the sender's table of RTSs */
	uint64_t threshold, bytes;		/* the way's; to transfer now */
	union {
		uint64_t remote;		/* peer's address */
		uint64_t sliced;		/* RNDV_RING: bytes that this end has copied */
	};
	uint32_t rkey[RAIL_MAX];		/* peer's keys, by rail */
	uint32_t carried[RAIL_MAX];		/* read: by rail, in units (RAIL_STRIPE_ALIGN) */
	uint8_t cursor[RAIL_MAX];		/* requests posted on each rail */
	uint8_t weight[RAIL_MAX];		/* parts of the rails, in proportion */
	union {
		uint8_t rail;			/* sender: the way's */
		uint8_t batch;			/* receiver: RNDV_MEASURED in it (scheme.h) */
	};
	uint8_t stage, policy, rndv_flags, rndv_state, bound, lane, slot, generation;
	uint8_t taken, remainder_rail, chunks_left, chunks_out;
	uint8_t map_use, map_batch;		/* receiver: mapped.h; RNDV_MAP_MEASURED in it */
	bool edges : 1;				/* EDGES are still to come */
	bool in_parts : 1;			/* the message moves, or moved, in several parts */
	uint8_t slicing : 2;			/* RNDV_RING: enum rail_slicing */
	uint8_t choice : 3;			/* sender: enum rail_scheme that the RTS tells; receiver: enum rail_load */
	uint16_t head, tail;			/* bytes that go as EDGES (edges.h) */
	int status;
};

_Static_assert(sizeof(struct op) <= sizeof(struct rail_op), "the caller's memory holds it");
_Static_assert(_Alignof(struct op) <= _Alignof(struct rail_op), "and has its alignment");
_Static_assert(offsetof(struct op, done) == offsetof(struct rail_op, done), "done is in both");

static inline struct op *op_of(struct rail_op *outer)
{
	return (struct op *)outer;
}

static inline const struct op *op_of_const(const struct rail_op *outer)
{
	return (const struct op *)outer;
}

static inline struct rail_op *op_outer(struct op *op)
{
	return (struct rail_op *)op;
}

#endif
