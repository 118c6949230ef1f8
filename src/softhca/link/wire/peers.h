/*
 * peers.h - processes of other hosts that datagrams go to and come from: a stream to each.
 *
 * A peer is known by rail, GID and one queue pair number of its process.  There are
 * HCA_WIRE_PEERS_MAX at most: for a new one, the one that was idle for the longest time goes.
 */
#ifndef HCA_WIRE_PEERS_H
#define HCA_WIRE_PEERS_H

#include "softhca/link/wire/wire.h"

#define HCA_WIRE_LIFE_NS 1000000000ull		/* between two looks at an open stream whose data wait */

struct hca_wire_peer {
	enum hca_wire_source source;	/* first; HCA_WIRE_GONE: removed */
	struct hca_wire *wire;
	struct hca_wire_peer *next;	/* in its bucket; among the removed ones */
	struct hca_wire_peer *older, *newer;	/* by last use */
	union ibv_gid gid;
	uint32_t qpn, from;		/* its number; of this end, which the call names */
	unsigned rail;
	bool called, open;
	uint64_t again_ns, since_ns;
	uint64_t stuck_ns;		/* since then packets are sent again and again; 0: none are */
	struct hca_stream stream;
};

/* ---- peers.lock held ----------------------------------------------------- */

/*
 * The peer with a number, made and to be called by `from` if there is none; NULL: no memory, or too
 * many, of which the next pass removes some.
 */
struct hca_wire_peer *hca_wire_peer_for(struct hca_wire *wire, unsigned rail,
					const union ibv_gid *gid, uint32_t qpn, uint32_t from);
void hca_wire_peer_used(struct hca_wire_peer *p);
/* fabric.life held, too.  Its memory lasts until the end of the pass. */
void hca_wire_peer_remove(struct hca_wire_peer *p);

#endif
