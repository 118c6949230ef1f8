/* bell_peer.h - waking other processes (object/bell.h says how). */
#ifndef HCA_WAKEUP_PEER_H
#define HCA_WAKEUP_PEER_H

#include <stdint.h>

#include "base/layout.h"

struct hca_peer;

/* Descriptors to a peer's bells, kept while it is known. */
struct hca_wakeup_cache {
	struct hca_wakeup_line {
		uint64_t ino;
		int fd;
	} *line;
	uint32_t count, next;
};

/*
 * Ring a peer's, which it told by index + 1 (0: none).  0, or -errno: it could
 * not be reached.
 */
int hca_wakeup_send_peer(struct hca_peer *p, uint32_t bell);
void hca_wakeup_cache_drop(struct hca_wakeup_cache *c);

/*
 * Something about an adapter has changed in the fabric segment (its ports):
 * every process that has it open has `attention` raised and is woken.  For
 * whoever has the segment mapped, member or not.
 */
void hca_wakeup_send_adapter(struct hca_shm_fabric *shm, uint32_t node, uint32_t hca);

#endif
