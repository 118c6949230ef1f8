/* loss.h - a peer that is lost, and one that leaves. */
#ifndef RAIL_LOSS_H
#define RAIL_LOSS_H

#include <stdbool.h>

struct rail_ctx;
struct rail_peer;

/* It is lost from now on: its queue pairs stop, rail_progress ends what is under way. */
void rail_peer_fail(struct rail_peer *peer, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* True until all operations have ended and the caller knows. */
bool rail_peer_bury(struct rail_peer *peer);
void rail_peers_probe(struct rail_ctx *ctx);
/* Nothing in flight on any queue pair: they may be destroyed. */
void rail_drain(struct rail_ctx *ctx);

#endif
