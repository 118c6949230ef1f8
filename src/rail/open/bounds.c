/*
 * bounds.c - the connections of all ranks to all others, on each host, compared with its adapters and its
 * memory.  Connections are made when a rank first sends to another, and most programs have few
 * peers; an Alltoall has them all.
 */
#include "config.h"		/* _GNU_SOURCE */

#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rail/open/common.h"
#include "rail/open/options.h"
#include "rail/plan.h"
#include "rail/programs.h"
#include "verbs/vrb.h"

enum {
	MEMORY_PART = 8,		/* the part of a host's memory for all peers */
	QUEUES_TRIED = 64 << 20,	/* bytes; usual limits are 64 KiB to 8 MiB */
};

#define RAIL_NARROW "each peer has one rail and smaller shares, which are"

/* A process with CAP_IPC_LOCK in the first user namespace is not bound by the limit of locked memory. */
static bool locks_all(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	unsigned long inside = 1, outside = 1, count = 0;
	FILE *map = fopen("/proc/self/uid_map", "re");
	const bool known = map && fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3;

	if (map)
		fclose(map);
	if (known && (inside || outside || count != UINT32_MAX))
		return false;
	return !syscall(SYS_capget, &head, data) && data[0].effective & 1u << CAP_IPC_LOCK;
}

uint64_t rail_bound_pinned(unsigned processes)
{
	const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
	uint64_t share = UINT64_MAX;
	struct rlimit limit;

	if (pages > 0 && bytes > 0)
		share = (uint64_t)pages * (uint64_t)bytes / MEMORY_PART / (processes ? processes : 1);
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur < share && !locks_all())
		share = limit.rlim_cur ? limit.rlim_cur : 1;
	return share;
}

/*
 * The device is taken to have all rails that there may be, with SENDs, which take most.  Without a limit of locked
 * memory there is nothing to try.
 */
uint64_t rail_bound_queues(const struct rail_settings *set, const struct vrb_port *port, unsigned rails,
			   unsigned ranks)
{
	const struct rail_plan_peer peer = {
		.ranks = ranks, .rails = rails < RAIL_MAX ? rails : RAIL_MAX, .qps = rail_plan_qps(set->qps, true),
		.eager = set->eager == RAIL_AUTO ? rail_plan_eager(ranks, false) : set->eager,
		.bulk_depth = rail_plan_depth_fits(rail_plan_bulk_depth(ranks), port->requests, port->cq_entries),
		.cq_most = port->cq_entries,
	};
	const uint32_t largest = port->cq_entries ? port->cq_entries : UINT32_MAX;
	const uint64_t entries = (uint64_t)ranks * rail_plan_most(&peer).cq_entries;
	const uint64_t most = rail_plan_cq_bytes(entries, rail_plan_lane_entries(&peer), largest, UINT64_MAX) +
			      RAIL_PLAN_DATAGRAMS_CQ_BYTES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	return vrb_cq_lockable(port->device, 2 * most < QUEUES_TRIED ? 2 * most : QUEUES_TRIED);
}

void rail_host_bounds(const struct vrb_port *port, unsigned rails, unsigned processes, unsigned ranks,
		      uint64_t *pinned, uint64_t *queues)
{
	struct rail_settings set;

	rail_settings_init(&set);
	*pinned = rail_bound_pinned(processes);
	*queues = rail_bound_queues(&set, port, rails, ranks);
}

bool rail_hosts_lag(const struct rail_hosts *h)
{
	for (unsigned i = 0; i < h->hosts; i++)
		for (unsigned r = 0; r < h->choice.rails; r++)
			if (h->host[i]->port[h->choice.end[i][r].port].lag)
				return true;
	return false;
}

/* ---- One host ---------------------------------------------------------------- */

/* A host's processes, and what connections with all others take. */
struct crowd {
	const struct rail_hosts *hosts;
	const struct choice_host *host;
	unsigned index;
	struct rail_plan_node node;
	uint64_t peers;				/* rail_plan_reached, */
	bool itself;				/* with one of them */
	struct rail_plan_peer peer, narrow;
};

static const struct choice_port *port_of(const struct crowd *c, unsigned rail)
{
	return &c->host->port[c->hosts->choice.end[c->index][rail].port];
}

static uint32_t depth_of(const struct crowd *c, uint64_t ranks)
{
	uint32_t depth = rail_plan_bulk_depth(ranks);

	for (unsigned r = 0; r < c->peer.rails; r++)
		depth = rail_plan_depth_fits(depth, port_of(c, r)->requests, port_of(c, r)->cq_entries);
	return depth;
}

/* ranks: of all hosts, and of those before this one; lag: rail_hosts_lag. */
static struct crowd crowd_of(const struct rail_hosts *h, unsigned index, unsigned ranks, unsigned before,
			     bool lag)
{
	struct crowd c = { .hosts = h, .host = h->host[index], .index = index };

	c.node = (struct rail_plan_node){ ranks, before, c.host->processes, c.host->meets };
	c.peers = rail_plan_reached(&c.node);
	c.itself = c.peers == ranks;
	c.peer = (struct rail_plan_peer){
		.ranks = ranks, .rails = h->choice.rails,
		.eager = c.host->eager == RAIL_AUTO ? rail_plan_eager(ranks, false) : c.host->eager,
		.qps = rail_plan_qps(c.host->qps, lag),
	};
	c.peer.bulk_depth = depth_of(&c, ranks);
	for (unsigned r = 0; r < c.peer.rails; r++)
		c.peer.cq_most = rail_plan_cq_least(c.peer.cq_most, port_of(&c, r)->cq_entries);
	c.narrow = c.peer;
	c.narrow.ranks = ranks < RAIL_PLAN_MANY ? RAIL_PLAN_MANY : ranks;
	c.narrow.eager = c.host->eager == RAIL_AUTO ? rail_plan_eager(RAIL_PLAN_MANY, false) : c.host->eager;
	c.narrow.qps = rail_plan_qps(c.host->qps, false);
	c.narrow.bulk_depth = depth_of(&c, c.narrow.ranks);
	return c;
}

/* The rails on the adapter of this one, as bits; 0: one before it is, too. */
static uint32_t rails_on(const struct crowd *c, unsigned rail)
{
	uint32_t on = 0;

	for (unsigned r = 0; r < c->peer.rails; r++)
		on |= (uint32_t)choice_same_device(port_of(c, r), port_of(c, rail)) << r;
	return on & ((UINT32_C(1) << rail) - 1) ? 0 : on;
}

/* "4 ranks there, each connected with 3 peers and itself, take" */
static const char *ranks_text(const struct crowd *c, char *buf, size_t size)
{
	const unsigned processes = (unsigned)c->node.processes, others = (unsigned)(c->peers - c->itself);

	snprintf(buf, size, "%u rank%s there, each connected with %u peer%s%s, take%s", processes,
		 processes == 1 ? "" : "s", others, others == 1 ? "" : "s", c->itself ? " and itself" : "",
		 processes == 1 ? "s" : "");
	return buf;
}

/* Where narrow is not enough, each host has a warning of its own (limits.c). */
static bool pairs_are_few(const struct crowd *c, unsigned rail, char *why, size_t size)
{
	const struct choice_port *port = port_of(c, rail);
	const uint32_t on = rails_on(c, rail);
	const uint64_t all = rail_plan_pairs(&c->peer, &c->node, on, false);
	const uint64_t narrow = rail_plan_pairs(&c->narrow, &c->node, on, true);
	char ranks[128];

	if (!port->queue_pairs || !on || all <= port->queue_pairs)
		return false;
	if (why && !*why && narrow <= port->queue_pairs)
		snprintf(why, size, "%.*s of %s has %u queue pairs; %s %llu: " RAIL_NARROW " %llu",
			 (int)choice_device_length(port), port->name, c->host->name, port->queue_pairs,
			 ranks_text(c, ranks, sizeof(ranks)), (unsigned long long)all, (unsigned long long)narrow);
	return true;
}

/* The control group of a host's processes is taken to be one. */
static bool objects_are_few(const struct crowd *c, unsigned rail, char *why, size_t size)
{
	const struct choice_port *port = port_of(c, rail);
	const uint32_t on = rails_on(c, rail);
	const uint64_t all = rail_plan_objects(&c->peer, &c->node, on, false);
	const uint64_t narrow = rail_plan_objects(&c->narrow, &c->node, on, true);
	char ranks[128];

	if (!port->objects || !on || all <= port->objects)
		return false;
	if (why && !*why && narrow <= port->objects)
		snprintf(why, size, "the control group of %s has %u objects of %.*s (rdma.max); %s %llu, of which "
			 "%llu are queue pairs: " RAIL_NARROW " %llu", c->host->name, port->objects,
			 (int)choice_device_length(port), port->name, ranks_text(c, ranks, sizeof(ranks)),
			 (unsigned long long)all,
			 (unsigned long long)rail_plan_pairs(&c->peer, &c->node, on, false), (unsigned long long)narrow);
	return true;
}

/* The bytes of a process's completion queues; 0: they do not fit in the bound. */
static uint64_t queues_bytes(const struct crowd *c, bool narrow, uint64_t bound)
{
	struct rail_plan_adapter adapter[RAIL_MAX];

	for (unsigned r = 0; r < c->peer.rails; r++)
		adapter[r] = (struct rail_plan_adapter){ rails_on(c, r), port_of(c, r)->cq_entries };
	return rail_plan_queues(narrow ? &c->narrow : &c->peer, &c->node, adapter, c->peer.rails, narrow, bound);
}

static bool queues_are_short(const struct crowd *c, char *why, size_t size)
{
	const uint64_t has = c->host->cq_bytes;
	const unsigned others = (unsigned)(c->peers - c->itself);

	if (!has || queues_bytes(c, false, has))
		return false;
	if (why && !*why && queues_bytes(c, true, has))
		snprintf(why, size, "a process of %s may lock %llu KiB for completion queues (ulimit -l); those of "
			 "connections with %u peer%s%s take %llu: " RAIL_NARROW " %llu", c->host->name,
			 (unsigned long long)(has >> 10), others, others == 1 ? "" : "s",
			 c->itself ? " and itself" : "",
			 (unsigned long long)(queues_bytes(c, false, UINT64_MAX) >> 10),
			 (unsigned long long)(queues_bytes(c, true, has) >> 10));
	return true;
}

/* Eager lanes by SEND pin more than those by a ring. */
static uint64_t pinned(const struct crowd *c, bool narrow)
{
	return queues_bytes(c, narrow, UINT64_MAX) + c->peers *
	       (narrow ? rail_plan_narrow(&c->narrow) : rail_plan_most(&c->peer)).pinned_bytes;
}

static bool memory_is_short(const struct crowd *c, char *why, size_t size)
{
	const uint64_t all = pinned(c, false);
	const unsigned others = (unsigned)(c->peers - c->itself);

	if (!c->host->pinned || all <= c->host->pinned)
		return false;
	/* With less a process is refused, and that line tells. */
	if (why && !*why && c->host->pinned >= RAIL_PLAN_DATAGRAMS_BYTES)
		snprintf(why, size, "a process of %s may pin %llu MiB (ulimit -l, or its part of an eighth of the "
			 "memory); connections with %u peer%s%s pin %llu: " RAIL_NARROW " %llu", c->host->name,
			 (unsigned long long)(c->host->pinned >> 20), others, others == 1 ? "" : "s",
			 c->itself ? " and itself" : "", (unsigned long long)(all >> 20),
			 (unsigned long long)(pinned(c, true) >> 20));
	return true;
}

bool rail_hosts_narrow(const struct rail_hosts *h, char *why, size_t size)
{
	const bool lag = rail_hosts_lag(h);
	bool narrow = false;
	unsigned ranks = 0, before = 0;

	if (why && size)
		*why = 0;
	for (unsigned i = 0; i < h->hosts; i++)
		ranks += h->host[i]->processes;
	for (unsigned i = 0; i < h->hosts; i++) {
		const struct crowd c = crowd_of(h, i, ranks, before, lag);

		for (unsigned r = 0; r < h->choice.rails; r++) {
			narrow |= pairs_are_few(&c, r, why, size);
			narrow |= objects_are_few(&c, r, why, size);
		}
		narrow |= queues_are_short(&c, why, size);
		narrow |= memory_is_short(&c, why, size);
		before += h->host[i]->processes;
	}
	return narrow;
}
