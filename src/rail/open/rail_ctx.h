/* rail_ctx.h - the context: ports used, adapters, and the state that all peers share. */
#ifndef RAIL_CTX_H
#define RAIL_CTX_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/memory/mr.h"
#include "rail/message/eager_choice.h"
#include "rail/message/scheme.h"
#include "rail/peer/on_demand.h"
#include "rail/message/op_queue.h"
#include "rail/plan.h"
#include "rail/rail.h"
#include "rail/lane/staging.h"
#include "rail/message/table.h"
#include "verbs/vrb.h"

struct rail_cq;
struct rail_lane;
struct rail_mapped;
struct rail_poll;
struct rail_pool;
struct rail_connector;

enum { RAIL_CQ_MAX = 1024 };

/* A port in use. */
struct rail {
	struct vrb_port *port;
	int adapter;
	struct rail_ledger ledger;
	struct vrb_port_place place;	/* the place that peers know; events.c */
	uint64_t down_ns;		/* since when the port is DOWN; 0: it is not */
	bool ended;
};

/* The sample under way of eager_choice. */
struct rail_eager_sample {
	const struct rail_peer *peer;	/* of the last message that was chosen for */
	const struct op *op;		/* the last message, an offer; NULL: none */
	uint32_t end;			/* the last message, sent: its end in the ring */
	bool told;			/* such a message is under way */
};

struct rail_ctx {
	/* Read by every rail_progress. */
	struct rail_poll *poll;
	int poll_count, poll_hot;	/* the first ones are polled in every call */
	uint32_t poll_turn, poll_cooled;	/* the next of the others; the next hot one to be one */
	bool polled;			/* the eager lanes need no CQ: memory is polled */
	bool progressing, closing;
	uint32_t cq_wanted;		/* completions that are still to come */
	uint32_t tick, idle;		/* calls of rail_progress; the last ones without event */
	uint32_t events;		/* counted for ever: records, completions, ends */
	struct rail_peer *working;
	struct rail_op_queue completed;
	uint64_t ops;			/* in flight */
	/* Chunks whose rate is measured: under way; last poll for them; last poll that found any. */
	uint32_t measured;
	uint64_t looked_ns, completed_ns;
	uint64_t eager_max;
	size_t part_bytes;		/* RAIL_PART_BYTES, but for tests */
	uint64_t striped_bytes;		/* rail_striped_bytes */
	uint32_t bulk_depth;
	uint32_t cq_most;		/* entries of the smallest completion queue of the adapters; 0: not known */
	struct rail_eager_choice eager_choice;	/* by this end, of its messages to such peers */
	struct rail_eager_sample eager_sample;
	struct rail_peer *watched;	/* whose answers are watched: late.h */
	uint64_t late_reads;		/* messages that were read because their senders were late */
	struct rail_schemes schemes;	/* by this end, of messages of peers whose processors copy */
	uint8_t places;			/* bits: such peers' */
	struct rail_cq *cq[RAIL_CQ_MAX];
	int cq_count;
	uint32_t cq_turn;		/* the next queue of rail_cq_poll_some */

	struct rail_config cfg;		/* with copies of the strings */
	struct rail_settings settings;
	struct vrb_ports ports, local_ports;
	int adapter_count;
	int rail_count;			/* rails to other nodes */
	int local;			/* the rail to this node, after them; or -1 */
	struct rail_gids *gids;		/* NULL: each rail has one GID here */
	bool lag;			/* a rail of the job has a LAG at any host */
	bool limited;			/* by its P_Key on a rail this process is a limited member there */
	bool narrow;			/* each peer has one rail, and a small share (bounds.c) */
	uint64_t cq_bytes;		/* that this process may lock, choice_host.cq_bytes */
	uint64_t plan_ranks;		/* plan.h: those of the job, narrow: many at least */
	unsigned bound;			/* rail of whole messages; see rail_peer_bound */
	uint32_t near;			/* rails nearest to this process's cores, bits */
	uint32_t *near_of;		/* the same for every peer, when --bind near */
	unsigned added;			/* peers, by rail_peer_add */
	struct vrb_adapter adapter[RAIL_ALL];
	uint64_t dead_ns[RAIL_ALL];	/* index: adapter; when it failed; 0: it has not */
	struct rail rail[RAIL_ALL];
	struct rail_peer **peer;
	struct rail_lane **lane;	/* index: id */
	uint32_t lane_count, lane_capacity;
	struct rail_table table;
	struct rail_mr_cache mr;
	struct rail_mapped *mapped;	/* receive buffers that peers map; NULL: none */
	size_t map_from;		/* least bytes of such a receive */
	const char *unwatched;		/* rail_unwatched */
	struct rail_staging staging;
	struct rail_pool **pool;	/* all adapters' */
	uint32_t pool_count;
	struct rail_connector *connector[RAIL_CONNECTORS];
	uint64_t cookie;		/* datagrams for this process carry it */
	uint32_t unlinked;		/* peers that may still want to connect */
	uint64_t probed_ns;		/* last time that peers were probed */
	int marks_out;			/* while closing */
	/* trace.c: the caller's on_message, and the eager messages that have arrived, by rail. */
	void (*untraced)(void *user, const struct rail_message *msg);
	uint64_t traced[RAIL_ALL];
	char host[64];			/* this one's name, for lines */
	char text[512], spec[1024], doubt[256];
};

/* Is this peer on the node of this process?  The process itself is, where nodes are known. */
static inline bool config_shares_node(const struct rail_config *cfg, unsigned index)
{
	return cfg->node_of && cfg->node_of[index] == cfg->node_of[cfg->index];
}

/* The rails on an adapter, as bits. */
static inline uint32_t ctx_rails_on(const struct rail_ctx *ctx, int adapter)
{
	uint32_t on = 0;

	for (int r = 0; r < ctx->rail_count; r++)
		on |= (uint32_t)(ctx->rail[r].adapter == adapter) << r;
	return on;
}

/* A peer over all rails of this process. */
static inline struct rail_plan_peer ctx_plan_peer(const struct rail_ctx *ctx)
{
	return (struct rail_plan_peer){ .ranks = ctx->plan_ranks, .rails = (uint32_t)ctx->rail_count,
					.eager = ctx->eager_max, .qps = (uint32_t)ctx->settings.qps,
					.bulk_depth = ctx->bulk_depth, .cq_most = ctx->cq_most };
}

/* The number of a rank in plan.h, which counts ranks node by node. */
static inline uint64_t config_number(const struct rail_config *cfg, unsigned index)
{
	uint64_t before = 0;

	if (!cfg->node_of)
		return index;
	for (unsigned i = 0; i < cfg->peer_count; i++)
		before += cfg->node_of[i] < cfg->node_of[index] ||
			  (cfg->node_of[i] == cfg->node_of[index] && i < index);
	return before;
}

/* The node of this process; meets: its processes reach each other over the rails, too. */
static inline struct rail_plan_node config_node(const struct rail_config *cfg, bool meets)
{
	struct rail_plan_node node = { .ranks = cfg->peer_count, .meets = meets };

	if (!cfg->node_of)
		return (struct rail_plan_node){ cfg->peer_count, cfg->index, 1, meets };
	for (unsigned i = 0; i < cfg->peer_count; i++) {
		node.first += cfg->node_of[i] < cfg->node_of[cfg->index];
		node.processes += config_shares_node(cfg, i);
	}
	return node;
}

#endif
