/*
 * rndv.h - what the files of the rendezvous know of each other.
 *
 *	rndv.c      RTS, KEYS, CTS, FIN: who sends what when
 *	chunks.c    chunks posted and completed, at the end that moves the data:
 *	            the sender (by write) or the receiver (by read)
 *	landing.c   receives that stand on the bulk lanes, chunks that land
 *
 *	by write                                by read
 *	RTS  -->                                KEYS, RTS  -->
 *	     <--  CTS                           (the receiver reads over all rails)
 *	chunks  -->                             <--  FIN
 *
 * FIN also answers a message of which no byte is wanted.  An RTS that has not been
 * answered may be taken back: CANCEL, CANCELLED (cancel.c).
 */
#ifndef RAIL_RNDV_H
#define RAIL_RNDV_H

#include "rail_int.h"

/* How the data of a message moves; in the RTS. */
enum {
	RNDV_READ = 1,			/* the receiver reads */
	RNDV_CONTROL = 2,		/* plain writes, then a control message on each rail used */
	RNDV_CANCEL = 4,		/* not in the RTS: its CANCEL is out, or waits */
};

/* Immediate: landing:8 generation:8 chunk:16; a control message has its rail for a chunk. */
enum { IMM_CONTROL = 0x8000 };

static inline uint32_t rndv_imm(const struct rail_op *op, uint32_t number)
{
	return (uint32_t)op->slot << 24 | (uint32_t)op->generation << 16 | number;
}

/* Its chunks are cut by measured rates. */
static inline bool op_is_weighted(const struct rail_op *op)
{
	return op->policy == RAIL_WEIGHTED && op->bytes > op->threshold;
}

/* Any rail may carry its next chunk. */
static inline bool op_is_pulled(const struct rail_op *op)
{
	return op->policy == RAIL_PULL && op->bytes > op->threshold;
}

/*
 * The lane of chunk n, on rail k.  One for all of a rail's piece where a control
 * message comes behind them: only one queue pair's requests are ordered.
 */
static inline struct rail_lane *op_lane(const struct rail_op *op, int k, uint32_t n)
{
	return chunk_lane(op, k, op->how & RNDV_CONTROL ? 0 : n);
}

/* The table of op's chunks, the same at both ends once bytes is known. */
void rndv_plan(const struct rail_op *op, struct rail_stripe *s);
/* Its buffer is not needed any more. */
void rndv_release(struct rail_op *op);
/* Upcall from within rail_progress, buffer given back first. */
void rndv_finish(struct rail_op *op, int status);
/* All that was wanted has been read. */
void rndv_read_done(struct rail_op *op);

/*
 * chunks.c: remote, rkey, bytes are known: post what the lanes take now, the rest
 * from rail_progress.
 */
void rndv_chunks_start(struct rail_op *op);
/* True while chunks wait for room. */
bool rndv_chunks_advance(struct rail_peer *peer);
void rndv_chunks_bury(struct rail_peer *peer);

/* landing.c: take a landing for op, if there is everything that its chunks need at once. */
bool rndv_landing_take(struct rail_op *op);
void rndv_landings_bury(struct rail_peer *peer);

#endif
