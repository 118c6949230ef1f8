/*
 * peer_gids.h - the GIDs of rails whose hosts have none in common: each pair of hosts has its own.
 *
 * Other rails have one GID at each host, that of their port.
 */
#ifndef RAIL_PEER_GIDS_H
#define RAIL_PEER_GIDS_H

#include <stdbool.h>

struct rail_ctx;
struct rail_gids;
struct rail_hosts;
struct vrb_port;

/* From the choice of all hosts, for rail_open.  0 or -ENOMEM after a line. */
int rail_gids_make(struct rail_ctx *ctx, const struct rail_hosts *hosts);
void rail_gids_free(struct rail_ctx *ctx);

/* Do the GIDs of this rail differ from peer to peer? */
bool rail_gids_differ(const struct rail_ctx *ctx, int rail);
/* The port of a rail with the GID that leads to a peer: the port itself, or *copy. */
const struct vrb_port *rail_port_towards(const struct rail_ctx *ctx, int rail, unsigned peer,
					 struct vrb_port *copy);
/* The GID of the peer's port, where it differs. */
void rail_gid_there(const struct rail_ctx *ctx, int rail, unsigned peer, unsigned char *gid);

#endif
