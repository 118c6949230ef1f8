/*
 * wr_id.h - work request identities.
 *
 * lane:24 | kind:4 | count:16 | value:20.  Numbers, no pointers: a failed completion has only a
 * valid wr_id, which names the lane that failed.
 */
#ifndef RAIL_WR_ID_H
#define RAIL_WR_ID_H

#include <stdint.h>

enum rail_wr_kind {
	WR_EAGER,		/* count: requests posted on the lane, this one included */
	WR_STAGED,		/* the same; value: the staging buffer, free again */
	WR_RECEIVE,		/* lane: the pool; value: its receive buffer */
	WR_CHUNK,
	WR_PROBE,		/* on a bulk lane */
	WR_LANDING,
	WR_MARK,
};

static inline uint64_t wr_id(uint32_t lane, unsigned kind, uint32_t count, uint32_t value)
{
	return (uint64_t)lane << 40 | (uint64_t)kind << 36 | (uint64_t)(count & 0xffff) << 20 |
	       value;
}

static inline uint32_t wr_lane(uint64_t id)
{
	return (uint32_t)(id >> 40);
}

static inline unsigned wr_kind(uint64_t id)
{
	return id >> 36 & 0xf;
}

static inline uint16_t wr_count(uint64_t id)
{
	return (uint16_t)(id >> 20);
}

static inline uint32_t wr_value(uint64_t id)
{
	return id & 0xfffff;
}

#endif
