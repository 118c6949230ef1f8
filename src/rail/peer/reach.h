/*
 * reach.h - a peer that does not answer datagrams: is it lost?
 *
 * Silence proves nothing.  A peer that computes is served by its progress thread; one that is
 * stopped (SIGSTOP, a debugger, a suspended machine) answers when it goes on, after minutes.  The
 * sender of a datagram learns nothing of its loss.  What decides is vrb_ud_lost: what this host
 * knows of the way and of the process at its end.  A process that has ended is lost at once.  A way
 * that is cut may come back, as a cable does: the peer is lost when every look has found it cut for
 * REACH_LIMIT_NS.  Looks with a gap between them begin anew: this process may have been stopped.
 *
 * The first look is late, since nearly all peers answer before it.
 */
#ifndef RAIL_REACH_H
#define RAIL_REACH_H

#include <stdbool.h>
#include <stdint.h>

enum { REACH_FIRST_NS = 400000000, REACH_EVERY_NS = 200000000 };
#define REACH_LIMIT_NS 3000000000ull
#define REACH_GAP_NS 2500000000ull

struct rail_reach {
	uint64_t due_ns;		/* the next look; 0: none yet */
	uint64_t cut_ns;		/* since when looks have found the way cut; 0: it is not */
};

/* Is it time for a look? */
bool rail_reach_due(struct rail_reach *r, uint64_t now_ns);
/* A look has found `rc` (vrb_ud_lost): is the peer lost? */
bool rail_reach_is_lost(struct rail_reach *r, int rc, uint64_t now_ns);

#endif
