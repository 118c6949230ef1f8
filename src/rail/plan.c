/* plan.c - see plan.h. */
#include "rail/lane/ring.h"
#include "rail/message/rail_record.h"
#include "rail/message/stripe.h"
#include "rail/open/options.h"
#include "rail/plan.h"

enum {
	SLOTS = 128, SLOTS_MANY = 64,
	BYTES_LEAST = 128 * 1024, BYTES_LEAST_MANY = 16 * 1024,
	/*
	 * A ring that processors fill and empty.  Where a core has 2 MiB of L2, a line that is written
	 * again within 256 KiB costs both ends twice the time: windows of 2 to 8 KiB double their rate.
	 */
	BYTES_COPIED = 256 * 1024,
	EAGER_MANY = 4096 - 8,		/* with its mark a quarter of BYTES_LEAST_MANY */
	SEND_SLOTS = 128, SEND_SLOTS_LEAST = 16,
	SEND_SLOTS_ALL = 8192,		/* of all peers, while each has more than the least */
	BULK_DEPTH = 256, BULK_DEPTH_ALL = 4096,
	MARK_BYTES = 8,
};

static bool is_many(uint64_t ranks)
{
	return ranks >= RAIL_PLAN_MANY;
}

uint64_t rail_plan_eager(uint64_t ranks, bool net)
{
	return net ? RAIL_EAGER_NET_BYTES : is_many(ranks) ? EAGER_MANY : RAIL_EAGER_BYTES;
}

uint32_t rail_plan_qps(uint64_t qps, bool lag)
{
	return qps == RAIL_AUTO ? (lag ? 2 : 1) : qps ? (uint32_t)qps : 1;
}

uint32_t rail_plan_bulk_depth(uint64_t ranks)
{
	uint32_t depth = BULK_DEPTH;

	while (depth > RAIL_CHUNKS_MAX && depth * ranks > BULK_DEPTH_ALL)
		depth /= 2;
	return depth;
}

/* A queue pair keeps one of its requests for a marker (vrb_qp_stop_marked), so requests exceed the depth. */
uint32_t rail_plan_depth_fits(uint32_t depth, uint32_t requests, uint32_t cq_entries)
{
	while (depth > RAIL_CHUNKS_MAX && ((requests && depth >= requests) ||
					   (cq_entries && 2 * (depth + 1) > cq_entries)))
		depth /= 2;
	return depth;
}

struct rail_plan_share rail_plan_ring(uint64_t ranks, uint64_t eager, bool copied)
{
	uint32_t bytes = is_many(ranks) ? BYTES_LEAST_MANY :
			 copied && ranks <= RAIL_PLAN_FEW ? BYTES_COPIED : BYTES_LEAST;

	while (bytes < 4 * (eager + MARK_BYTES))
		bytes *= 2;
	return (struct rail_plan_share){
		.slots = is_many(ranks) ? SLOTS_MANY : SLOTS,
		.slot_bytes = sizeof(struct rail_slot),
		.units = bytes / RAIL_UNIT_BYTES,
	};
}

/* The sends, the receives, and a request of each to drain by are in one queue. */
static bool slots_fit(uint32_t slots, uint32_t cq_most)
{
	return !cq_most || RAIL_PLAN_EAGER_SQ + 1 + slots + 1 <= cq_most;
}

struct rail_plan_share rail_plan_send(uint64_t ranks, uint64_t eager, uint32_t cq_most)
{
	const uint32_t part = eager > RAIL_EAGER_ROW_BYTES ? 2 : 1;	/* of the same memory */
	uint32_t slots = SEND_SLOTS / part;

	while (slots > SEND_SLOTS_LEAST && (slots * ranks > SEND_SLOTS_ALL / part || !slots_fit(slots, cq_most)))
		slots /= 2;
	return (struct rail_plan_share){
		.slots = slots,
		.slot_bytes = (uint32_t)(sizeof(struct rail_slot) + eager + 63) & ~63u,
	};
}

uint64_t rail_plan_ring_bytes(const struct rail_plan_share *share)
{
	return (uint64_t)share->slots * share->slot_bytes + (uint64_t)share->units * RAIL_UNIT_BYTES;
}

uint64_t rail_plan_send_bytes(const struct rail_plan_share *share)
{
	return (uint64_t)share->slots * share->slot_bytes;
}

static uint32_t depth_of(const struct rail_plan_peer *p)
{
	return p->bulk_depth ? p->bulk_depth : rail_plan_bulk_depth(p->ranks);
}

static struct rail_plan_share share_of(const struct rail_plan_peer *p)
{
	return p->polled ? rail_plan_ring(p->ranks, p->eager, p->copied) :
			   rail_plan_send(p->ranks, p->eager, p->cq_most);
}

/* Each queue has one more request, by which it is drained. */
static uint32_t eager_entries(const struct rail_plan_peer *p)
{
	return RAIL_PLAN_EAGER_SQ + 1 + (p->polled ? 1 : share_of(p).slots);
}

struct rail_plan_need rail_plan_need(const struct rail_plan_peer *p)
{
	const struct rail_plan_share share = share_of(p);
	const uint32_t bulk = p->rails * p->qps;

	return (struct rail_plan_need){
		.queue_pairs = p->eager_lanes + bulk,
		.srq_receives = p->polled ? 0 : p->inboxes * share.slots,
		.cq_entries = p->eager_lanes * eager_entries(p) + bulk * 2 * (depth_of(p) + 1),
		.pinned_bytes = RAIL_PLAN_GRANTS + p->inboxes *
				(p->polled ? rail_plan_ring_bytes(&share) : rail_plan_send_bytes(&share)),
	};
}

struct rail_plan_need rail_plan_most(const struct rail_plan_peer *peer)
{
	const uint32_t lanes = is_many(peer->ranks) ? 2 : 3;
	struct rail_plan_peer p = *peer;

	p.eager_lanes = p.rails < lanes ? p.rails : lanes;
	p.inboxes = p.rails > 1 ? 2 : 1;
	return rail_plan_need(&p);
}

struct rail_plan_need rail_plan_narrow(const struct rail_plan_peer *peer)
{
	struct rail_plan_peer p = *peer;

	p.ranks = is_many(p.ranks) ? p.ranks : RAIL_PLAN_MANY;
	p.rails = 1;
	return rail_plan_most(&p);
}

uint64_t rail_plan_reached(const struct rail_plan_node *node)
{
	if (node->meets || node->processes <= 1)
		return node->ranks;
	return node->ranks > node->processes ? node->ranks - node->processes : 0;
}

uint32_t rail_plan_rail(uint64_t a, uint64_t b, uint32_t rails)
{
	return (uint32_t)((a + b) % rails);
}

/* Numbers below n with that rest. */
static uint64_t with_rest(uint64_t n, uint32_t rest, uint32_t rails)
{
	return (n + rails - 1 - rest) / rails;
}

static uint64_t between(uint64_t from, uint64_t to, uint32_t rest, uint32_t rails)
{
	return with_rest(to, rest, rails) - with_rest(from, rest, rails);
}

uint64_t rail_plan_connections(const struct rail_plan_node *node, uint64_t from, uint64_t count,
			       uint32_t rails, uint32_t on, bool narrow)
{
	const uint64_t end = node->first + node->processes, peers = rail_plan_reached(node);
	uint64_t sum = 0;

	if (!narrow)
		return count * peers;
	for (uint32_t a = 0; a < rails; a++)
		for (uint32_t b = 0; b < rails; b++) {
			const uint64_t own = between(node->first, end, b, rails);
			const uint64_t all = with_rest(node->ranks, b, rails);

			if (on >> rail_plan_rail(a, b, rails) & 1)
				sum += between(from, from + count, a, rails) *
				       (peers == node->ranks ? all : all - own);
		}
	return sum;
}

static uint32_t rails_in(uint32_t on)
{
	uint32_t n = 0;

	for (; on; on &= on - 1)
		n++;
	return n;
}

/* A peer's needs of an adapter that has these of its rails. */
static struct rail_plan_need need_on(const struct rail_plan_peer *peer, uint32_t on, bool narrow)
{
	struct rail_plan_peer p = *peer;

	p.rails = rails_in(on);
	return narrow ? rail_plan_narrow(&p) : rail_plan_most(&p);
}

uint64_t rail_plan_pairs(const struct rail_plan_peer *peer, const struct rail_plan_node *node, uint32_t on,
			 bool narrow)
{
	return need_on(peer, on, narrow).queue_pairs *
	       rail_plan_connections(node, node->first, node->processes, peer->rails, on, narrow) +
	       (on & 1) * node->processes;
}

uint64_t rail_plan_objects(const struct rail_plan_peer *peer, const struct rail_plan_node *node, uint32_t on,
			   bool narrow)
{
	const uint64_t inboxes = !narrow && rails_in(on) > 1 ? 2 : 1, handles = on & 1 ? rail_plan_reached(node) : 0;

	/* The block of a peer is one region of memory, receives of an inbox by SEND another one. */
	return rail_plan_pairs(peer, node, on, narrow) + (1 + inboxes) *
	       rail_plan_connections(node, node->first, node->processes, peer->rails, on, narrow) +
	       node->processes * (handles + RAIL_PLAN_OBJECTS);
}

uint64_t rail_plan_entries(const struct rail_plan_peer *peer, const struct rail_plan_node *node, int64_t rank,
			   uint32_t on, bool narrow)
{
	const uint64_t kinds = node->processes < peer->rails ? node->processes : peer->rails;
	uint64_t most = 0;

	for (uint64_t i = 0; i < (rank < 0 ? kinds : 1); i++) {
		const uint64_t of = rank < 0 ? node->first + i : (uint64_t)rank;
		const uint64_t n = rail_plan_connections(node, of, 1, peer->rails, on, narrow);

		most = n > most ? n : most;
	}
	return most * need_on(peer, on, narrow).cq_entries;
}

/* ---- Completion queues --------------------------------------------------------- */

uint32_t rail_plan_lane_entries(const struct rail_plan_peer *peer)
{
	const uint32_t bulk = 2 * (depth_of(peer) + 1), eager = eager_entries(peer);

	return bulk > eager ? bulk : eager;
}

/* The smallest power of two with room for so many entries, but for those left over. */
static uint64_t cq_room(uint64_t entries, uint32_t lane)
{
	uint64_t room = RAIL_PLAN_CQ_ENTRIES;

	while (room / 2 > lane && room / 2 - lane >= entries)
		room /= 2;
	while (room <= lane)
		room *= 2;
	return room;
}

uint32_t rail_plan_cq_size(uint64_t entries, uint32_t lane, uint32_t most)
{
	const uint64_t size = cq_room(entries, lane) - 1;

	return size < most ? (uint32_t)size : most;
}

uint32_t rail_plan_cq_holds(uint32_t size, uint32_t lane)
{
	return size < lane ? 0 : size + 1 - lane;
}

static uint64_t cq_locks(uint64_t size)
{
	uint64_t room = 1;

	while (room < size + 1)
		room *= 2;
	return room * RAIL_PLAN_CQE_BYTES;
}

uint64_t rail_plan_cq_bytes(uint64_t entries, uint32_t lane, uint32_t most, uint64_t bound)
{
	uint64_t bytes = 0;

	while (entries) {
		uint32_t size = rail_plan_cq_size(entries, lane, most), holds;

		while (size >= lane && cq_locks(size) > bound - bytes)
			size /= 2;
		holds = rail_plan_cq_holds(size, lane);
		if (!holds)
			return 0;
		bytes += cq_locks(size);
		entries -= entries < holds ? entries : holds;
	}
	return bytes;
}

uint64_t rail_plan_queues(const struct rail_plan_peer *peer, const struct rail_plan_node *node,
			  const struct rail_plan_adapter *adapter, unsigned adapters, bool narrow, uint64_t bound)
{
	uint64_t sum = RAIL_PLAN_DATAGRAMS_CQ_BYTES;

	for (unsigned a = 0; a < adapters; a++) {
		const uint64_t entries = rail_plan_entries(peer, node, -1, adapter[a].on, narrow);
		const uint32_t most = adapter[a].cq_most ? adapter[a].cq_most : UINT32_MAX;
		const uint64_t bytes = sum > bound ? 0 :
			rail_plan_cq_bytes(entries, rail_plan_lane_entries(peer), most, bound - sum);

		if (entries && !bytes)
			return 0;
		sum += bytes;
	}
	return sum;
}
