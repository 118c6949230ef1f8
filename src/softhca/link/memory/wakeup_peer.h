/* wakeup_peer.h - sending wake-ups to other processes (mechanism: object/wakeup.h). */
#ifndef HCA_WAKEUP_PEER_H
#define HCA_WAKEUP_PEER_H

#include <stdint.h>

#include "softhca/base/layout.h"

struct hca_peer;

/* Descriptors of a peer's wake-ups, kept as long as the peer. */
struct hca_wakeup_cache {
	struct hca_wakeup_line {
		uint64_t ino;
		int fd;
	} *line;
	uint32_t count, next;
};

/*
 * Send a wake-up of a peer's, given as index + 1 (0: none).  0, or -errno: not sent.
 */
int hca_wakeup_send_peer(struct hca_peer *p, uint32_t wakeup);
void hca_wakeup_cache_drop(struct hca_wakeup_cache *c);

/*
 * An adapter's ports have changed in the fabric segment: raise every member's
 * `attention` and wake members that have the adapter open.  The caller needs the segment mapped;
 * it need not be a member.
 */
void hca_wakeup_send_adapter(struct hca_shm_fabric *shm, uint32_t node, uint32_t hca);

#endif
