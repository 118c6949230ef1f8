/* peer_end.h - how a peer ends: the operations of a failed one, signs of life, leaving. */
#ifndef RAIL_PEER_END_H
#define RAIL_PEER_END_H

#include <stdbool.h>

struct rail_ctx;
struct rail_peer;

/* End the operations of a failed peer.  True until all have ended and on_peer_error was called. */
bool rail_peer_failure_advance(struct rail_peer *peer);
/* Probe every connected peer. */
void rail_peers_probe(struct rail_ctx *ctx);
/* Empty all queue pairs: afterwards they may be destroyed. */
void rail_drain(struct rail_ctx *ctx);

#endif
