/* connect.h - the endpoint info of both ends becomes a connection. */
#ifndef RAIL_CONNECT_H
#define RAIL_CONNECT_H

#include <stdint.h>

#include "rail/peer/endpoint_info.h"
#include "rail/rail.h"

/* Settings that must agree at both ends.  Checks: 0, or -errno after a line. */
struct rail_terms { uint64_t rail_count, qps, chunk, eager, threshold; };
int rail_terms_check(const struct rail_peer *peer, const struct rail_terms *theirs);
int rail_port_check(const struct rail_peer *peer, int k, uint8_t link_layer, uint8_t gid_type,
		    const unsigned char *subnet);
/* Does every rail's adapter take a slot of a ring inline, so that it writes the slot in one piece? */
bool rail_writes_slots(const struct rail_ctx *ctx);
/* Over TCP: this host, hashed, or 0; by it and the peer's GID on rail k, does the rail reach its host? */
uint64_t rail_net_host(void);
int rail_net_check(const struct rail_peer *peer, int k, const unsigned char *gid, uint64_t host);

/* Connect the queue pairs, able to receive; then start to send. */
int rail_peer_link(struct rail_peer *peer, const unsigned char theirs[ENDPOINT_INFO_BYTES]);
void rail_peer_start(struct rail_peer *peer);

#endif
