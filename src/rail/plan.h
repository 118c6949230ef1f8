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
	RAIL_PLAN_OBJECTS = 16,		/* PD, CQs, SRQs, and memory that is not of one peer */
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
/* The same on a device with so many requests of a queue pair, entries of a completion queue; 0: not known. */
uint32_t rail_plan_depth_fits(uint32_t depth, uint32_t requests, uint32_t cq_entries);
/* copied: the processors of both ends move the bytes. */
struct rail_plan_share rail_plan_ring(uint64_t ranks, uint64_t eager, bool copied);
/* cq_most: entries of the smallest completion queue of the devices; 0: not known. */
struct rail_plan_share rail_plan_send(uint64_t ranks, uint64_t eager, uint32_t cq_most);
/* The smaller of two cq_most. */
static inline uint32_t rail_plan_cq_least(uint32_t a, uint32_t b)
{
	return !a || (b && b < a) ? b : a;
}
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
	uint32_t cq_most;		/* as of rail_plan_send */
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

/*
 * Ranks are numbered node by node: `first` of them on nodes before this one, `processes` on it, of so many of
 * the job.  Those of its node have its memory, unless they meet over the rails (--intranode rails); a
 * process that is alone on its node reaches itself over the rails as well.
 */
struct rail_plan_node { uint64_t ranks, first, processes; bool meets; };
/* Processes that one of the node reaches over the rails. */
uint64_t rail_plan_reached(const struct rail_plan_node *node);
/* A narrow pair's rail, by the numbers of its ranks, the same at both ends. */
uint32_t rail_plan_rail(uint64_t a, uint64_t b, uint32_t rails);
/* Connections of `count` ranks of the node, from that number on, over the rails in `on`, as bits; narrow: exact. */
uint64_t rail_plan_connections(const struct rail_plan_node *node, uint64_t from, uint64_t count,
			       uint32_t rails, uint32_t on, bool narrow);

/*
 * Queue pairs of an adapter, with these of the rails, for all connections of the node's processes; on that of the
 * first rail, one of each process for datagrams, too.  Narrow: by rail_plan_narrow.
 */
uint64_t rail_plan_pairs(const struct rail_plan_peer *peer, const struct rail_plan_node *node, uint32_t on,
			 bool narrow);
/*
 * Objects of the adapter that a control group counts, in the kernel, of the same connections: queue pairs, the memory
 * of lanes, an address handle for datagrams; and of each process RAIL_PLAN_OBJECTS.
 */
uint64_t rail_plan_objects(const struct rail_plan_peer *peer, const struct rail_plan_node *node, uint32_t on,
			   bool narrow);
/* CQ entries there for a rank's connections; -1: for those of the rank with most. */
uint64_t rail_plan_entries(const struct rail_plan_peer *peer, const struct rail_plan_node *node, int64_t rank,
			   uint32_t on, bool narrow);
/* CQ entries of the largest lane. */
uint32_t rail_plan_lane_entries(const struct rail_plan_peer *peer);

/*
 * Completion queues of an adapter.  One of N entries is N + 1 entries of locked memory, rounded up to a power of
 * two.  A lane takes all its entries from one queue, so up to lane - 1 of each are left over.
 */
enum {
	RAIL_PLAN_CQE_BYTES = 64, RAIL_PLAN_CQ_ENTRIES = 65536,
	RAIL_PLAN_DATAGRAMS_CQ_BYTES = 16384,	/* 160 entries */
	RAIL_PLAN_DATAGRAMS_BYTES = 160 * 1088,	/* registered; the least that a process pins */
};
/* The next queue, while so many entries are missing; most: of the device. */
uint32_t rail_plan_cq_size(uint64_t entries, uint32_t lane, uint32_t most);
/* Entries of such a queue that lanes have for certain. */
uint32_t rail_plan_cq_holds(uint32_t size, uint32_t lane);
/* Bytes of locked memory for so many entries in such queues, as small as a bound makes them; 0: they do not fit. */
uint64_t rail_plan_cq_bytes(uint64_t entries, uint32_t lane, uint32_t most, uint64_t bound);
/* An adapter: its rails, as bits, and the entries of its largest completion queue; 0: not known. */
struct rail_plan_adapter { uint32_t on, cq_most; };
/* The same of the process with most, for all adapters, and one queue for datagrams. */
uint64_t rail_plan_queues(const struct rail_plan_peer *peer, const struct rail_plan_node *node,
			  const struct rail_plan_adapter *adapter, unsigned adapters, bool narrow, uint64_t bound);

#endif
