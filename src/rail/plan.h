/*
 * plan.h - what the connection to a peer takes: queue pairs, receives, entries of completion queues
 * and memory.  Pure: librail builds by these numbers, and `railgauge topo --ranks` prints them.
 *
 * All processes of a job compute the same from its number of ranks.
 */
#ifndef RAIL_PLAN_H
#define RAIL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Ranks of a job from which on peers have smaller shares, and one rail for both directions. */
	RAIL_PLAN_MANY = 257,
	RAIL_PLAN_FEW = 64,		/* to so many ranks, memory for speed between processes of a host */
	RAIL_PLAN_EAGER_SQ = 128,	/* send requests of an eager lane */
	RAIL_PLAN_GRANTS = 256,		/* bytes for the credit of all eager lanes of a peer */
};

/* The receiving end of an eager lane: a ring of slots and one of bytes, or buffers for SENDs. */
struct rail_plan_share {
	uint32_t slots, slot_bytes, units;
};

/* --eager auto, in bytes.  net: the software HCA over TCP. */
uint64_t rail_plan_eager(uint64_t ranks, bool net);
/*
 * --qps of each rail, queue pairs of large messages: 0 is 1, RAIL_AUTO 1 or, where queue pairs of a LAG share
 * its cables, 2.  The rail of small messages has one more: there none waits for chunks of large messages.
 */
uint32_t rail_plan_qps(uint64_t qps, bool lag);
/* Chunks under way on a bulk lane, at most. */
uint32_t rail_plan_bulk_depth(uint64_t ranks);
/* copied: the processors of both ends move the bytes. */
struct rail_plan_share rail_plan_ring(uint64_t ranks, uint64_t eager, bool copied);
struct rail_plan_share rail_plan_send(uint64_t ranks, uint64_t eager);
uint64_t rail_plan_ring_bytes(const struct rail_plan_share *share);
uint64_t rail_plan_send_bytes(const struct rail_plan_share *share);

/* A peer on another node. */
struct rail_plan_peer {
	uint64_t ranks, eager;		/* of the job; bytes of --eager */
	uint32_t rails, qps;
	uint32_t eager_lanes;		/* on rail 0 and on the rails bound, 1 to 3 */
	uint32_t inboxes;		/* eager lanes that this end receives from, 1 or 2 */
	bool polled;			/* rings; else SENDs into a shared receive queue */
	bool copied;			/* by the processors of both ends */
	uint32_t bulk_depth;		/* of the devices; 0: rail_plan_bulk_depth */
};

struct rail_plan_need {
	uint32_t queue_pairs, srq_receives, cq_entries;
	uint64_t pinned_bytes;		/* registered */
};

struct rail_plan_need rail_plan_need(const struct rail_plan_peer *peer);
/* The same peer with as many eager lanes as one of the job can have. */
struct rail_plan_need rail_plan_most(const struct rail_plan_peer *peer);
/*
 * The same peer where adapters or memory want less (rail/open/bounds.c): one rail, one eager lane, and the
 * shares of a job of many ranks.  eager is the caller's.
 */
struct rail_plan_need rail_plan_narrow(const struct rail_plan_peer *peer);

/* A narrow pair's rail, the same at both ends; each rank has about as many peers on each. */
struct rail_plan_place { uint32_t node, local_rank; };
uint32_t rail_plan_rail(struct rail_plan_place a, struct rail_plan_place b, uint32_t rails);

/*
 * Processes that one of a node with so many reaches over the rails, of so many of the job.  Those of its node
 * have its memory, unless they meet over the rails (--intranode rails); a process that is alone on its node
 * reaches itself over the rails as well.
 */
uint64_t rail_plan_reached(uint64_t ranks, uint64_t processes, bool meets);

/*
 * Queue pairs of an adapter with `of` of the peers' rails, for so many processes of a node that each have
 * so many such peers (rail_plan_reached), and, on the adapter of the first rail, one of each process for
 * datagrams.  Narrow: by rail_plan_narrow.
 */
uint64_t rail_plan_pairs(const struct rail_plan_peer *peer, uint32_t of, uint64_t processes,
			 uint64_t peers, bool first, bool narrow);

#endif
