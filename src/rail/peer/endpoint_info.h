/*
 * endpoint_info.h - the data that two processes exchange before messages flow.
 *
 * Fixed sizes, native byte order: another order is recognised by the magic.  Every
 * field is checked (connect.c) before it is used.
 */
#ifndef RAIL_ENDPOINT_INFO_H
#define RAIL_ENDPOINT_INFO_H

#include <stdint.h>

#include "rail/lane/eager_lane.h"
#include "rail/rail.h"
#include "verbs/vrb.h"

enum {
	ENDPOINT_INFO_BYTES = 1024,	/* on the wire; unused bytes are 0 */
	ENDPOINT_INFO_USED = 848,
};

/* "rgrail08": another byte order reads another. */
#define ENDPOINT_INFO_MAGIC 0x38306c6961726772ull

/* The queue pairs of a rail have the port's data and the first packet number in common. */
struct endpoint_rail {
	struct vrb_address port;	/* qpn: of the eager lane; 0: none */
	unsigned char subnet[VRB_GID_BYTES];
	uint32_t bulk[RAIL_QPS_MAX];	/* queue pair numbers */
	uint32_t rkey;			/* key of the block */
	uint32_t lane;			/* number of the eager lane, for SENDs there */
	uint8_t gid_type, pad[3];
};

struct endpoint_info {
	uint64_t magic;
	uint32_t index, wanted_peer;
	uint32_t tx_k;			/* the rail of the sender's small messages */
	uint32_t rail_count;
	uint64_t chunk, eager, threshold;
	uint64_t ring[LANE_ROLES], grant[LANE_ROLES];	/* addresses in the sender */
	uint64_t key;
	uint32_t slots, units, slot_bytes, qps;
	uint8_t polled, trailing, pad[2];
	uint32_t chunk_most;		/* bytes of a request on any of the rails */
	struct endpoint_rail rail[RAIL_MAX];
};

_Static_assert(sizeof(struct endpoint_info) == ENDPOINT_INFO_USED, "its size is known");

#endif
