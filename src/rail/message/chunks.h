/* chunks.h - chunks posted and completed, at the end that moves the data. */
#ifndef RAIL_CHUNKS_H
#define RAIL_CHUNKS_H

#include <stdbool.h>

struct rail_lane;
struct op;
struct rail_peer;

/*
 * remote, rkey, bytes of op are known: post as many chunks as the lanes take now, the rest
 * from rail_progress.
 */
void rndv_chunks_start(struct op *op);
/* True while chunks wait for room. */
bool rndv_chunks_advance(struct rail_peer *peer);
void rndv_chunks_peer_failed(struct rail_peer *peer);
/* The oldest request of a bulk lane is done, or its lane has failed. */
void rail_chunk_sent(struct rail_lane *lane);

#endif
