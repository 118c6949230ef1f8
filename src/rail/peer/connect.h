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

/* Connect the queue pairs, able to receive; then start to send. */
int rail_peer_link(struct rail_peer *peer, const unsigned char theirs[ENDPOINT_INFO_BYTES]);
void rail_peer_start(struct rail_peer *peer);

#endif
