/*
 * rndv.h - rendezvous: RTS, KEYS, CTS and FIN, as chunks.c and landing.c know them.
 *
 * Chunks are posted and completed at the end that moves the data (chunks.c): the sender (by
 * write) or the receiver (by read).  Written chunks land at the other end (landing.c).
 *
 *	by write                                by read
 *	RTS  -->                                KEYS, RTS  -->
 *	     <--  CTS                           (the receiver reads over all rails)
 *	chunks  -->                             <--  FIN
 *
 * The RTS of a policy that keeps a message on one rail has the key (RNDV_KEYED), without KEYS before it.
 *
 * By both: KEYS, RTS  -->  <--  CTS; the sender writes the first half of the chunks, with two
 * rails all chunks of the first, the receiver reads the others and answers FIN.  Where processors
 * copy, both ends then copy, with as few chunks as rails unless the message is large.  If the
 * receiver's buffer is mapped (mapped.h), the CTS may make it a message by write; see also edges.h.
 * If each end has offered the other a message, each reads a whole one, unless it is large.  By turns:
 * receiver and sender move whole messages, one after the other.  Where the receiver answers ASK, the
 * message goes through the ring (slices.h).  Where the sender leaves the choice (RNDV_CHOICE), the receiver
 * decides by what it measures.
 *
 * Long messages may move part by part (parts.h), each as above, one after the other.
 *
 * FIN also answers a message without wanted bytes.  An RTS that has not been answered can be
 * cancelled: CANCEL, CANCELLED (cancel.c).
 */
#ifndef RAIL_RNDV_H
#define RAIL_RNDV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/policy.h"
#include "rail/rail.h"
#include "rail/peer/peer.h"
#include "rail/message/scheme.h"
#include "rail/message/stripe.h"

struct rail_lane;
struct rail_record;
struct rail_rx;
struct rail_tx;

/*
 * --chunk: the largest chunk, unless the message would have too many chunks.  Each chunk is
 * acknowledged by itself, and with traffic in both directions an acknowledgement waits for the
 * other direction's data.  Soft-RoCE sends 128 packets (512 KiB) beyond the last acknowledged one;
 * while these are all queued on the other side, a rail waits for about a chunk of them.  Smaller
 * chunks lose less there and cost more requests everywhere.  Over a long distance an adapter may
 * limit the requests that are under way: 142 of a queue pair (profile wan-8600mi) are 57 MB/s by
 * chunks of 64 KiB.
 */
#define RAIL_CHUNK_BYTES ((uint64_t)64 << 10)
/*
 * Over TCP each request costs an acknowledgement, system calls at both ends.  One rail sends longest in one
 * call: meanwhile its kernel sends all by itself, and acknowledgements of the other's come in between.
 * Several rails have their rates from chunks.
 */
#define RAIL_CHUNK_NET_BYTES ((uint64_t)1 << 20)
#define RAIL_CHUNK_NETS_BYTES ((uint64_t)256 << 10)
/*
 * Where processors copy a chunk is a call of the kernel, dear to begin, with no wire to keep busy: rg_bw
 * --chunk 64K shows how much slower 1 MiB is read in short calls.  Longer ones only hold up other messages.
 */
#define RNDV_CALL_BYTES ((uint64_t)4 << 20)
/* Up to here one end moves a message as fast as two, if both processors are busy. */
#define RNDV_COPY_BYTES ((uint64_t)256 << 10)
/* The least chunk for the sake of more queue pairs. */
#define RAIL_CHUNK_BYTES_MIN ((uint64_t)16 << 10)

/* op->rndv_flags: how the data of a message moves, as an RTS says it. */
enum {
	RNDV_READ = 1,			/* the receiver reads */
	RNDV_CONTROL = 2,		/* plain writes, then a control message on each rail used */
	RNDV_KEYED = 4,			/* the RTS has address and key, without KEYS before it */
	RNDV_BOTH = 8,			/* half is written; the end with RNDV_READ reads the other */
	RNDV_CHOICE = 16,		/* with RNDV_BOTH: whatever the receiver finds best (scheme.h) */
	RNDV_TURNS = 32,		/* with RNDV_BOTH: the ends move whole messages, in turn */
	RNDV_TELL = 64,			/* of an eager message that waits: LONG_TELL */
	RNDV_RING = 64,			/* with RNDV_BOTH: it may go in slices (slices.h), or, without
					   RNDV_CHOICE, does; alone, in an operation: it does */
	RNDV_MORE = 128,		/* with RNDV_BOTH: an earlier offer waits for its answer */
};

/* op->rndv_state: the steps that this end has done or learned of since. */
enum {
	RNDV_CANCELLING = 1,		/* the CANCEL is out, or waits */
	RNDV_AWAITS_FIN = 2,			/* the CTS has come, the FIN is to come */
	RNDV_ONE_END = 4,			/* both ends were offered, and one moves all */
	RNDV_HAS_EDGES = 8,			/* the edges go as a record: edges.h */
	RNDV_MEASURED = 16,			/* receiver: its end is told to scheme.h */
	RNDV_MAP_MEASURED = 32,			/* ... to mapped.h */
};

_Static_assert(SLICINGS <= 4, "two bits hold the length of slices");
_Static_assert(RAIL_SCHEMES <= 8, "three bits hold a scheme");

/* Bits in the word of a CTS: RNDV_ONE_END, RNDV_HAS_EDGES; of a CTS or FIN: more parts, bytes. */
#define CTS_ALONE ((uint64_t)1 << 47)
#define CTS_EDGES ((uint64_t)1 << 46)
#define RECORD_MORE ((uint64_t)1 << 45)
#define RECORD_BYTES (RECORD_MORE - 1)

_Static_assert(RAIL_STRIPE_MAX_BYTES <= RECORD_BYTES, "the bytes of a part fit its records");

/* Immediate: landing:8 generation:8 chunk:16; a control message has its rail for a chunk. */
enum { IMM_CONTROL = 0x8000 };

static inline uint32_t rndv_imm(const struct op *op, uint32_t number)
{
	return (uint32_t)op->slot << 24 | (uint32_t)op->generation << 16 | number;
}

/* The number of chunks of rail k that are written; RNDV_BOTH: the first half, rounded up. */
static inline uint32_t rndv_written(const struct op *op, const struct rail_stripe *s, int k)
{
	const uint32_t half = s->chunk_count - s->chunk_count / 2, first = s->piece[k].first;
	const uint32_t count = s->piece[k].count;

	if (!(op->rndv_flags & RNDV_BOTH) || half >= first + count)
		return count;
	return half > first ? half - first : 0;
}

/* RNDV_BOTH: does this end read? The other end writes. */
static inline bool rndv_reads_half(const struct op *op)
{
	return (op->rndv_flags & (RNDV_BOTH | RNDV_READ)) == (RNDV_BOTH | RNDV_READ);
}

/* The number of chunks of rail k that this end moves, from the rail's chunk *first on. */
static inline uint32_t rndv_own_chunks(const struct op *op, const struct rail_stripe *s, int k,
				  uint32_t *first)
{
	uint32_t written = rndv_written(op, s, k);
	bool reads = rndv_reads_half(op);

	*first = reads ? written : 0;
	return reads ? s->piece[k].count - written : written;
}

/* Does this end choose for messages of both directions that cross? */
static inline bool rndv_leads(const struct rail_peer *peer)
{
	return peer->ctx->cfg.index < peer->index;
}

/* May one end move all of an offer by both?  Where processors copy, one copies as well as two. */
static inline bool rndv_may_move_alone(const struct op *op)
{
	return op->rndv_flags & RNDV_BOTH && op->peer->copies;
}

/* Do the pieces of the rails follow measured rates? */
static inline bool op_is_weighted(const struct op *op)
{
	return rail_policies[op->policy].measures && op->bytes > op->threshold;
}

/* May any rail carry the next chunk? */
static inline bool op_is_pulled(const struct op *op)
{
	return rail_policies[op->policy].spreads == RAIL_SPREADS_CHUNKS &&
	       op->bytes > op->threshold;
}

/* Chunk n of a message takes this lane of rail k; consecutive chunks take the lanes in turn. */
static inline struct rail_lane *chunk_lane(const struct op *op, int k, uint32_t n)
{
	return peer_bulk(op->peer, k, (int)((op->lane + n) % (uint32_t)op->peer->qps));
}

/* The number of chunks in [first, first + count) that take lane q. */
static inline uint32_t chunks_of_lane(const struct op *op, int q, uint32_t first,
				      uint32_t count)
{
	uint32_t qps = (uint32_t)op->peer->qps;
	uint32_t before = ((uint32_t)q + qps - (op->lane + first) % qps) % qps;

	return count > before ? (count - before - 1) / qps + 1 : 0;
}

/*
 * The lane of chunk n, on rail k.  A piece that a control message completes has one lane for all
 * its chunks: only one queue pair's requests are ordered.
 */
static inline struct rail_lane *op_lane(const struct op *op, int k, uint32_t n)
{
	return chunk_lane(op, k, op->rndv_flags & RNDV_CONTROL ? 0 : n);
}

/* The table of op's chunks, the same at both ends once bytes is known. */
void rndv_plan(const struct op *op, struct rail_stripe *s);
/* Release the registration of the buffer, and parts. */
void rndv_release(struct op *op);
/* Give the buffer back, then end op: an upcall, only from within rail_progress. */
void rndv_finish(struct op *op, int status);

/* Answer with the record of this stage.  True when it is out; else it waits in its lane. */
bool rndv_answer(struct op *op, unsigned stage);

/* The record that op waits to send: 1 it is out, 0 there is no room, or -errno. */
int rail_rndv_post(struct rail_tx *tx, struct op *op);
/* A queued record is out. */
void rail_rndv_control_sent(struct op *op);
/* Post the waiting operations.  True while any still waits. */
bool rail_rndv_advance(struct rail_peer *peer);
/* A peer has failed: end all operations but those that flushed completions will end. */
void rail_rndv_peer_failed(struct rail_peer *peer);

#endif
