/*
 * stripe.h - how a message is cut into chunks: arithmetic only.
 *
 * Both ends compute the same table from the RTS and the CTS, so no table travels.  Guaranteed for
 * every input, and property-tested: the chunks cover every byte exactly once; none is empty; all
 * but the last begin and end on multiples of RAIL_STRIPE_ALIGN; there are at most RAIL_CHUNKS_MAX.
 */
#ifndef RAIL_STRIPE_H
#define RAIL_STRIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/rail.h"

enum {
	RAIL_CHUNKS_MAX = 64,			/* per message: one word of bitmap */
	RAIL_STRIPE_ALIGN = 128,		/* bytes; two cache lines, a prefetch pair */
	RAIL_WEIGHT_MAX = 1 << 16,
};

/* A chunk is one RDMA write, and verbs allow at most 2 GiB. */
#define RAIL_CHUNK_MAX_BYTES ((uint64_t)1 << 30)
/* The longest message whose chunks are at most RAIL_CHUNK_MAX_BYTES. */
#define RAIL_STRIPE_MAX_BYTES ((RAIL_CHUNKS_MAX - RAIL_MAX) * RAIL_CHUNK_MAX_BYTES)

/* The least request size of a port: with shorter ones a table of chunks would not move a part. */
#define RAIL_CHUNK_LEAST_BYTES (RAIL_PART_BYTES / (RAIL_CHUNKS_MAX - 2 * RAIL_MAX) + RAIL_STRIPE_ALIGN)

/* The longest message whose chunks are at most chunk_bytes, pulled or not. */
static inline uint64_t rail_stripe_table(uint64_t chunk_bytes)
{
	return (RAIL_CHUNKS_MAX - 2 * RAIL_MAX) * (chunk_bytes & ~(uint64_t)(RAIL_STRIPE_ALIGN - 1));
}

/*
 * The chunks of a message that rails pull (RAIL_SPREADS_CHUNKS) are not larger than this,
 * unless there would be too many of them.
 */
#define RAIL_PULL_BYTES ((uint64_t)64 << 10)

enum { RAIL_ANY = -1 };		/* a chunk that any rail may carry */

/* How to cut; policy.h makes it. */
struct rail_cut {
	int rail_count;
	bool pull;			/* chunks for any rail; the rest does not matter then */
	uint32_t weight[RAIL_MAX];	/* part of each rail, 0: none; at least one is not 0 */
	uint64_t chunk_bytes;		/* larger pieces are cut; at least two alignments */
};

/* The part of one rail: contiguous, cut into count chunks numbered from first. */
struct rail_piece {
	uint64_t offset, bytes;
	uint32_t first, count;		/* count 0: this rail carries nothing */
};

struct rail_stripe {
	uint32_t chunk_count;
	int rail_count;
	bool pull;
	union {
		struct rail_piece piece[RAIL_MAX];	/* rail_count of them */
		/* Pull: whole chunks of four units, then halves, then quarters. */
		struct {
			uint64_t bytes;
			uint32_t wholes, halves, units;	/* units in the whole message */
		};
	};
};

struct rail_chunk {
	uint64_t offset, bytes;
	int rail;			/* or RAIL_ANY */
};

/*
 * Make the table.  Pull: enough chunks for each rail to divide the message, smaller ones at the
 * end, so that rails of any speed end together.  0, or -EMSGSIZE beyond RAIL_STRIPE_MAX_BYTES.
 * A message of 0 bytes has no chunks.
 */
int rail_stripe_plan(struct rail_stripe *s, uint64_t bytes, const struct rail_cut *cut);

/* Chunk n of the table, n < chunk_count. */
struct rail_chunk rail_stripe_chunk(const struct rail_stripe *s, uint32_t n);

#endif
