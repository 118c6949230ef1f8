/* landing.h - receives on the bulk lanes, and chunks that land. */
#ifndef RAIL_LANDING_H
#define RAIL_LANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rail_lane;
struct op;
struct rail_peer;
struct rail_record;
struct rail_rx;

/* Post all receives for immediates that the lane ever has.  0 or -errno. */
int rail_receives_start(struct rail_lane *lane);
/* Take a landing for op, if everything that its chunks need is free at once. */
bool rndv_landing_take(struct op *op);
/* RNDV_BOTH: is the written half still to come? */
bool rndv_is_landing(const struct op *op);
void rndv_landings_peer_failed(struct rail_peer *peer);
/* An immediate has come: `written` by a write, else by a SEND. */
void rail_chunk_landed(struct rail_lane *lane, uint32_t imm, uint32_t bytes, bool written);
/* An EDGES record has come. */
void rail_edges_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload,
			size_t bytes);
/* A slice has come. */
void rail_slice_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload,
			size_t bytes);

#endif
