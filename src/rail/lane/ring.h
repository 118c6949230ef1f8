/*
 * ring.h - arithmetic of the rings that one process writes in another's memory.
 *
 * Positions count for ever and wrap with their 32 bits.  The slot or unit in the ring is the
 * position modulo the ring's size, a power of two.  The writer may be at most one size
 * ahead of the reader's last grant.  All functions are pure.
 *
 * Slots are of one size.  The byte ring holds payloads in units of 64 bytes, each payload
 * contiguous.  A payload that does not fit before the end starts at the beginning, and the
 * gap counts as used.  The reader needs only the end of a payload: it grants everything up
 * to this end, gap included.
 *
 * Every wait ends: the reader grants after a quarter of a ring, so the writer finds at
 * least three quarters free when everything is read.  A payload is at most a quarter of the
 * byte ring, and needs at most twice its size, gap included.
 */
#ifndef RAIL_RING_H
#define RAIL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RAIL_UNIT_BYTES = 64 };

static inline uint32_t rail_ring_units(size_t bytes)
{
	return (uint32_t)((bytes + RAIL_UNIT_BYTES - 1) / RAIL_UNIT_BYTES);
}

/* The longest payload, bytes. */
static inline uint32_t rail_ring_payload_most(uint32_t size)
{
	return size * RAIL_UNIT_BYTES / 4;
}

/* May position `next` be written, when everything before `granted` is free again? */
static inline bool rail_ring_free(uint32_t next, uint32_t granted, uint32_t size)
{
	return next - granted < size;
}

/*
 * Find the first unit of a payload of `units` after `position`; false when it does not fit yet.
 * The next payload's position is *first + units.
 */
static inline bool rail_ring_place(uint32_t position, uint32_t granted, uint32_t size,
				   uint32_t units, uint32_t *first)
{
	uint32_t at = position & (size - 1);
	uint32_t gap = at + units > size ? size - at : 0;

	if (position + gap + units - granted > size)
		return false;
	*first = position + gap;
	return true;
}

/* Is a grant to the writer due? */
static inline bool rail_ring_grant_due(uint32_t read, uint32_t granted, uint32_t size)
{
	return read - granted >= size / 4;
}

/* Both counters in a word that the reader writes into the writer's memory. */
static inline uint64_t rail_grant_word(uint32_t slots, uint32_t units)
{
	return (uint64_t)units << 32 | slots;
}

static inline uint32_t rail_grant_slots(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t rail_grant_units(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

#endif
