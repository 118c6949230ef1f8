/*
 * bounds.c - the connections of all ranks to all others, on each host, compared with its adapters and its
 * memory.  Connections are made when a rank first sends to another, and most programs have few
 * peers; an Alltoall has them all.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rail/open/common.h"
#include "rail/open/options.h"
#include "rail/plan.h"

enum { MEMORY_PART = 8 };		/* of a host's memory, for the eager lanes of all peers */

/* Root is not bound by the limit of locked memory. */
uint64_t rail_bound_pinned(unsigned processes)
{
	const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
	uint64_t share = UINT64_MAX;
	struct rlimit limit;

	if (pages > 0 && bytes > 0)
		share = (uint64_t)pages * (uint64_t)bytes / MEMORY_PART / (processes ? processes : 1);
	if (geteuid() && !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur < share)
		share = limit.rlim_cur;
	return share;
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

/* A host's processes, each with so many peers that the rails reach. */
struct crowd {
	const struct rail_hosts *hosts;
	const struct choice_host *host;
	unsigned index, processes;
	uint32_t peers;				/* rail_plan_reached */
	bool itself;				/* one of them */
	struct rail_plan_peer peer, narrow;
};

/* ranks: of all hosts; lag: rail_hosts_lag. */
static struct crowd crowd_of(const struct rail_hosts *h, unsigned index, unsigned ranks, bool lag)
{
	struct crowd c = { .hosts = h, .host = h->host[index], .index = index };

	c.processes = c.host->processes;
	c.peers = (uint32_t)rail_plan_reached(ranks, c.processes, c.host->meets);
	c.itself = c.peers == ranks;
	c.peer = (struct rail_plan_peer){
		.ranks = ranks, .rails = h->choice.rails,
		.eager = c.host->eager == RAIL_AUTO ? rail_plan_eager(ranks, false) : c.host->eager,
		.qps = rail_plan_qps(c.host->qps, lag),
	};
	c.narrow = c.peer;
	c.narrow.eager = c.host->eager == RAIL_AUTO ? rail_plan_eager(RAIL_PLAN_MANY, false) : c.host->eager;
	c.narrow.qps = rail_plan_qps(c.host->qps, false);
	return c;
}

static const struct choice_port *port_of(const struct crowd *c, unsigned rail)
{
	return &c->host->port[c->hosts->choice.end[c->index][rail].port];
}

static size_t device_length(const char *port)
{
	return strcspn(port, ":");
}

/* Rails on the adapter of this one; those before it, too. */
static unsigned rails_beside(const struct crowd *c, unsigned rail, unsigned until)
{
	const char *name = port_of(c, rail)->name;
	unsigned n = 0;

	for (unsigned r = 0; r < until; r++)
		n += device_length(port_of(c, r)->name) == device_length(name) &&
		     !strncmp(port_of(c, r)->name, name, device_length(name));
	return n;
}

/* Eager lanes by SEND pin more than those by a ring. */
static uint64_t pinned_all(const struct crowd *c)
{
	return c->peers * rail_plan_most(&c->peer).pinned_bytes;
}

static uint64_t pinned_narrow(const struct crowd *c)
{
	return c->peers * rail_plan_narrow(&c->narrow).pinned_bytes;
}

/* Where narrow is not enough, each host has a warning of its own (limits.c). */
static bool pairs_are_few(const struct crowd *c, unsigned rail, char *why, size_t size)
{
	const struct choice_port *port = port_of(c, rail);
	const unsigned rails = rails_beside(c, rail, c->peer.rails);
	const uint64_t all = rail_plan_pairs(&c->peer, rails, c->processes, c->peers, !rail, false);
	const uint64_t narrow = rail_plan_pairs(&c->narrow, rails, c->processes, c->peers, !rail, true);
	const unsigned others = c->peers - c->itself;

	if (!port->queue_pairs || rails_beside(c, rail, rail) || all <= port->queue_pairs)
		return false;
	if (why && !*why && narrow <= port->queue_pairs)
		snprintf(why, size, "%.*s of %s has %u queue pairs; %u rank%s there, each connected with %u "
			 "peer%s%s, take%s %llu: each peer has one rail and smaller shares, which are %llu",
			 (int)device_length(port->name), port->name, c->host->name, port->queue_pairs,
			 c->processes, c->processes == 1 ? "" : "s", others, others == 1 ? "" : "s",
			 c->itself ? " and itself" : "", c->processes == 1 ? "s" : "", (unsigned long long)all,
			 (unsigned long long)narrow);
	return true;
}

static bool memory_is_short(const struct crowd *c, char *why, size_t size)
{
	const uint64_t all = pinned_all(c), narrow = pinned_narrow(c);
	const unsigned others = c->peers - c->itself;

	if (!c->host->pinned || all <= c->host->pinned)
		return false;
	if (why && !*why)
		snprintf(why, size, "a process of %s may pin %llu MiB (ulimit -l, or its part of an eighth of the "
			 "memory); connections with %u peer%s%s pin %llu: each peer has one rail and smaller shares, "
			 "which are %llu", c->host->name, (unsigned long long)(c->host->pinned >> 20), others,
			 others == 1 ? "" : "s", c->itself ? " and itself" : "", (unsigned long long)(all >> 20),
			 (unsigned long long)(narrow >> 20));
	return true;
}

bool rail_hosts_narrow(const struct rail_hosts *h, char *why, size_t size)
{
	const bool lag = rail_hosts_lag(h);
	bool narrow = false;
	unsigned ranks = 0;

	if (why && size)
		*why = 0;
	for (unsigned i = 0; i < h->hosts; i++)
		ranks += h->host[i]->processes;
	for (unsigned i = 0; i < h->hosts; i++) {
		const struct crowd c = crowd_of(h, i, ranks, lag);

		for (unsigned r = 0; r < h->choice.rails; r++)
			narrow |= pairs_are_few(&c, r, why, size);
		narrow |= memory_is_short(&c, why, size);
	}
	return narrow;
}
