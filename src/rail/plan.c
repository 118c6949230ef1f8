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

struct rail_plan_share rail_plan_send(uint64_t ranks, uint64_t eager)
{
	const uint32_t part = eager > RAIL_EAGER_ROW_BYTES ? 2 : 1;	/* of the same memory */
	uint32_t slots = SEND_SLOTS / part;

	while (slots > SEND_SLOTS_LEAST && slots * ranks > SEND_SLOTS_ALL / part)
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

struct rail_plan_need rail_plan_need(const struct rail_plan_peer *p)
{
	const struct rail_plan_share share =
		p->polled ? rail_plan_ring(p->ranks, p->eager, p->copied) :
			    rail_plan_send(p->ranks, p->eager);
	const uint32_t bulk = p->rails * p->qps;
	const uint32_t depth = p->bulk_depth ? p->bulk_depth : rail_plan_bulk_depth(p->ranks);
	/* Each queue has one more request, by which it is drained. */
	const uint32_t eager_entries = RAIL_PLAN_EAGER_SQ + 1 + (p->polled ? 1 : share.slots);

	return (struct rail_plan_need){
		.queue_pairs = p->eager_lanes + bulk,
		.srq_receives = p->polled ? 0 : p->inboxes * share.slots,
		.cq_entries = p->eager_lanes * eager_entries + bulk * 2 * (depth + 1),
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

/* Nodes count as well: ranks of one node may all be even, and those of the next odd. */
uint32_t rail_plan_rail(struct rail_plan_place a, struct rail_plan_place b, uint32_t rails)
{
	const uint32_t apart = a.node > b.node ? a.node - b.node : b.node - a.node;

	return (uint32_t)(((uint64_t)a.local_rank + b.local_rank + apart) % rails);
}

uint64_t rail_plan_reached(uint64_t ranks, uint64_t processes, bool meets)
{
	if (meets || processes <= 1)
		return ranks;
	return ranks > processes ? ranks - processes : 0;
}

uint64_t rail_plan_pairs(const struct rail_plan_peer *peer, uint32_t of, uint64_t processes,
			 uint64_t peers, bool first, bool narrow)
{
	const uint64_t on = (peers * of + peer->rails - 1) / peer->rails;
	struct rail_plan_peer p = *peer;

	if (narrow)
		return processes * (on * rail_plan_narrow(&p).queue_pairs + first);
	p.rails = of;
	return processes * (peers * rail_plan_most(&p).queue_pairs + first);
}
