/*
 * topo_read.c - what railgauge topo and railgauge check know of a machine: ports, links, error
 * counters, the rail that each rank would use, warnings.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/topo_errors.h"
#include "cli/topo_read.h"
#include "cli/topo_warn.h"
#include "mpi/railmpi.h"
#include "rail/programs.h"
#include "util/err.h"
#include "verbs/vrb.h"

enum { RANKS_STANDARD_MAX = 8 };

/* ---- Ports: of this machine --------------------------------------------- */

static const char *gid_type_text(const struct vrb_port *v)
{
	const unsigned type = v->gid_type;

	return v->device->transport_type == IBV_TRANSPORT_IWARP ? "iWARP" :
	       type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" :
	       type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1" : "IB";
}

static void port_from_verbs(const struct vrb_port *v, struct topo_port *p)
{
	static const char *const kinds[] = {
		[VRB_HARDWARE] = "hardware", [VRB_KERNEL_SOFTWARE] = "kernel software",
		[VRB_SOFTHCA] = "software HCA",
	};
	bool infiniband = v->link_layer == IBV_LINK_LAYER_INFINIBAND;

	*p = (struct topo_port){ .number = v->number, .gid_index = v->gid_index, .lid = -1,
				  .rail = -1 };
	snprintf(p->kind, sizeof(p->kind), "%s%s", kinds[v->kind], v->net ? " over TCP" : "");
	snprintf(p->link_layer, sizeof(p->link_layer), "%s",
		 infiniband ? "InfiniBand" : "Ethernet");
	snprintf(p->state, sizeof(p->state), "%s", vrb_port_state_text(v->state));
	snprintf(p->firmware, sizeof(p->firmware), "%s", v->firmware);
	if (infiniband && v->lid)
		p->lid = v->lid;
	if (v->gid_index >= 0) {
		inet_ntop(AF_INET6, v->gid.raw, p->gid, sizeof(p->gid));
		snprintf(p->gid_type, sizeof(p->gid_type), "%s", gid_type_text(v));
	}
	p->gid_link_local = v->gid_link_local;
	p->mtu_bytes = vrb_mtu_bytes(v->mtu);
	/* A device without a speed has an unknown rate, not an unlimited one. */
	p->rate_known = v->rate_bytes_per_s || (v->kind == VRB_SOFTHCA && !v->net);
	p->rate_bytes_per_s = v->rate_bytes_per_s;
}

/* Number the rails as --rails all does. */
static int rails_choose(struct topo_report *r, const struct vrb_ports *ports)
{
	char (*why)[RAIL_WHY_BYTES] = calloc(ports->count ? (size_t)ports->count : 1, sizeof(*why));
	int index[RAIL_MAX], count = why ? rail_ports_all(ports, index, why) : -ENOMEM;

	for (int i = 0; i < count; i++)
		r->rail[index[i]].port.rail = i;
	for (int p = 0; p < ports->count && count >= 0; p++)
		snprintf(r->rail[p].why, sizeof(r->rail[p].why), "%s", why[p]);
	free(why);
	return count < 0 ? count : 0;
}

/* The memory that a process here may pin and lock, where an adapter has rails. */
static void bounds_read(struct topo_report *r, const struct vrb_ports *ports, unsigned processes)
{
	unsigned rails = 0;
	int first = -1;

	for (int i = 0; i < ports->count; i++)
		if (r->rail[i].port.rail >= 0 && ports->port[i].kind != VRB_SOFTHCA) {
			first = first < 0 ? i : first;
			rails++;
		}
	if (rails && r->job_ranks)
		rail_host_bounds(&ports->port[first], rails, processes, r->job_ranks, &r->pinned, &r->lockable);
}

static int rails_from_verbs(struct topo_report *r, const char *soft, unsigned processes)
{
	struct vrb_ports ports;
	int rc = vrb_ports_look(soft, &ports);

	if (rc)
		return rc;
	r->rail = calloc(ports.count ? (size_t)ports.count : 1, sizeof(*r->rail));
	if (!r->rail)
		rc = -ENOMEM;
	for (int i = 0; i < ports.count && !rc; i++) {
		struct topo_rail *rail = &r->rail[r->rail_count++];
		char device[TOPO_NAME_BYTES];

		port_from_verbs(&ports.port[i], &rail->port);
		rail->unusable = !ports.port[i].usable;
		rail->lag = ports.port[i].lag;
		rail->queue_pairs = ports.port[i].queue_pairs;
		rail->objects = ports.port[i].objects;
		rail->requests = ports.port[i].requests;
		rail->cq_entries = ports.port[i].cq_entries;
		snprintf(rail->netdev, sizeof(rail->netdev), "%s", ports.port[i].netdev);
		snprintf(rail->name, sizeof(rail->name), "%s", ports.port[i].name);
		snprintf(device, sizeof(device), "%.*s", (int)strcspn(rail->name, ":"), rail->name);
		topo_find(r->topo, device, &rail->spot);
	}
	if (!rc)
		rc = rails_choose(r, &ports);
	if (!rc)
		bounds_read(r, &ports, processes);
	if (!ports.count)
		vrb_ports_why_none(&ports, "", r->none, sizeof(r->none));
	vrb_ports_free(&ports);
	return rc;
}

/* ---- Ports: of a file --------------------------------------------------- */

static int rails_from_file(struct topo_report *r)
{
	struct topo *t = r->topo;

	r->rail = calloc((size_t)t->adapter_count * TOPO_PORTS_MAX + 1, sizeof(*r->rail));
	if (!r->rail)
		return -ENOMEM;
	for (int a = 0; a < t->adapter_count; a++) {
		struct topo_port port[TOPO_PORTS_MAX] = { { .gid_index = -1, .lid = -1,
							      .rail = -1 } };
		int count = topo_ports(t, a, port);

		/* An adapter without ports in the file has at least one. */
		for (int p = 0; p < (count ? count : 1); p++) {
			struct topo_rail *rail = &r->rail[r->rail_count++];

			rail->spot = t->adapter[a];
			rail->port = port[p];
			if (count)
				snprintf(rail->name, sizeof(rail->name), "%s:%u", rail->spot.name,
					 port[p].number);
			else
				snprintf(rail->name, sizeof(rail->name), "%s", rail->spot.name);
		}
	}
	return 0;
}

/* ---- Rails and ranks ---------------------------------------------------- */

static bool could_be_rail(const struct topo_rail *rail)
{
	return !rail->unusable && (!*rail->port.state || !strcmp(rail->port.state, "ACTIVE"));
}

/*
 * Does the file have rail numbers?  A file of --save numbers ports that are up: 0, 1, ..., each
 * once.
 */
static bool rails_are_numbered(const struct topo_report *r)
{
	unsigned seen = 0;

	for (int i = 0; i < r->rail_count; i++) {
		const struct topo_rail *rail = &r->rail[i];

		if (rail->port.rail < 0)
			continue;
		if (!could_be_rail(rail) || rail->port.rail >= RAILMPI_RAILS_MAX ||
		    seen & 1u << rail->port.rail)
			return false;
		seen |= 1u << rail->port.rail;
	}
	return seen && !(seen & (seen + 1));
}

/* The number of ports of the same adapter before this port. */
static int adapter_ports_before(const struct topo_report *r, int which)
{
	int n = 0;

	for (int i = 0; i < which; i++)
		n += !strcmp(r->rail[i].spot.name, r->rail[which].spot.name);
	return n;
}

/*
 * Number the rails of a file without numbers: all possible rails, first ports of adapters before
 * second ones, in the order of their addresses.  librail sorts by subnet first, and the file lacks
 * subnets.
 */
static void rails_assume(struct topo_report *r)
{
	int left = RAILMPI_RAILS_MAX, count = 0;

	for (int turn = 0; turn < TOPO_PORTS_MAX; turn++)
		for (int i = 0; i < r->rail_count && left; i++)
			if (could_be_rail(&r->rail[i]) && adapter_ports_before(r, i) == turn) {
				r->rail[i].rail = 0;
				left--;
			}
	for (int i = 0; i < r->rail_count; i++)
		if (!r->rail[i].rail)
			r->rail[i].rail = count++;
}

static void rails_number(struct topo_report *r)
{
	r->assumed = r->file && !rails_are_numbered(r);
	for (int i = 0; i < r->rail_count; i++) {
		struct topo_rail *rail = &r->rail[i];

		rail->rail = r->assumed ? -1 : rail->port.rail;
		rail->link_count = topo_links(r->topo, &rail->spot, rail->link);
	}
	if (r->assumed)
		rails_assume(r);
}

/* Devices of rails by number, and their indices in r->rail. */
static int rails_used(const struct topo_report *r, const char *device[], int index[])
{
	int count = 0;

	for (int i = 0; i < r->rail_count; i++)
		if (r->rail[i].rail >= 0) {
			device[r->rail[i].rail] = r->rail[i].spot.name;
			index[r->rail[i].rail] = i;
			count++;
		}
	return count;
}

static int rank_paths(const struct topo_report *r, struct topo_rank *rank)
{
	int rc = 0;

	for (int b = 0; b < TOPO_BINDS && !rc; b++) {
		rank->path[b] = TOPO_UNKNOWN;
		if (rank->uses[b] >= 0)
			rc = topo_path_cpus(r->topo, &r->rail[rank->uses[b]].spot,
					    rank->block.cpus, &rank->path[b]);
	}
	return rc;
}

static int ranks_place(struct topo_report *r, unsigned ranks)
{
	const char *device[RAILMPI_RAILS_MAX];
	int index[RAILMPI_RAILS_MAX], rails = rails_used(r, device, index), rc = 0;
	uint32_t *mask = calloc(ranks, sizeof(*mask));
	int *near = calloc(ranks, sizeof(*near));

	r->rank = calloc(ranks, sizeof(*r->rank));
	if (!mask || !near || !r->rank)
		rc = -ENOMEM;
	for (unsigned i = 0; i < ranks && !rc; i++) {
		rc = topo_block(r->topo, i, ranks, &r->rank[i].block);
		if (rc)
			break;
		r->rank_count++;
		if (rails)
			rc = topo_near(r->topo, device, rails, r->rank[i].block.cpus, &mask[i]);
	}
	if (!rc)
		topo_spread(mask, (int)ranks, near);
	for (unsigned i = 0; i < ranks && !rc; i++) {
		r->rank[i].uses[TOPO_BIND_RANK] = rails ? index[i % (unsigned)rails] : -1;
		r->rank[i].uses[TOPO_BIND_NEAR] = near[i] >= 0 ? index[near[i]] : -1;
		rc = rank_paths(r, &r->rank[i]);
	}
	free(mask);
	free(near);
	return rc;
}

/* ---- All of it ---------------------------------------------------------- */

void topo_report_free(struct topo_report *r)
{
	for (unsigned i = 0; i < r->rank_count; i++) {
		free(r->rank[i].block.cores);
		free(r->rank[i].block.cpus);
	}
	for (int i = 0; i < r->warning_count; i++)
		free(r->warning[i].text);
	free(r->rail);
	free(r->rank);
	free(r->warning);
	topo_close(r->topo);
}

/* Local ranks that are shown. */
static unsigned ranks_of(const struct topo_report *r, const struct topo_request *q)
{
	if (q->ranks != TOPO_RANKS_AUTO)
		return (unsigned)q->ranks;
	return r->topo->usable_count < RANKS_STANDARD_MAX ? (unsigned)r->topo->usable_count :
		RANKS_STANDARD_MAX;
}

static void errors_read(struct topo_report *r, const struct topo_request *q)
{
	if (r->file && !q->sysfs)
		return;
	for (int i = 0; i < r->rail_count; i++)
		topo_errors_read(q->sysfs ? q->sysfs : "/sys", &r->rail[i]);
}

static bool has_lag(const struct topo_report *r)
{
	for (int i = 0; i < r->rail_count; i++)
		if (r->rail[i].rail >= 0 && r->rail[i].lag)
			return true;
	return false;
}

static struct rail_plan_peer peer_of(const struct topo_report *r, unsigned ranks)
{
	struct rail_plan_peer peer = { .ranks = ranks, .qps = rail_plan_qps(RAIL_AUTO, has_lag(r)), .eager = rail_plan_eager(ranks, false),
				       .bulk_depth = rail_plan_bulk_depth(ranks) };

	for (int i = 0; i < r->rail_count; i++) {
		const struct topo_rail *rail = &r->rail[i];

		if (rail->rail < 0)
			continue;
		peer.rails++;
		peer.bulk_depth = rail_plan_depth_fits(peer.bulk_depth, rail->requests, rail->cq_entries);
		peer.cq_most = rail_plan_cq_least(peer.cq_most, rail->cq_entries);
	}
	return peer;
}

static struct rail_plan_peer narrow_of(const struct topo_report *r)
{
	struct rail_plan_peer peer = peer_of(r, r->job_ranks < RAIL_PLAN_MANY ? RAIL_PLAN_MANY : r->job_ranks);

	peer.qps = rail_plan_qps(RAIL_AUTO, false);
	return peer;
}

/* A node of the job, with so many ranks before it. */
static struct rail_plan_node node_of(const struct topo_report *r, uint64_t first)
{
	return (struct rail_plan_node){ .ranks = r->job_ranks, .first = first, .processes = r->rank_count };
}

/* Where the node may stand among the others: by turns a narrow job's rails have more connections there. */
static uint64_t places_of(const struct topo_report *r, uint32_t rails)
{
	const uint64_t others = r->job_ranks > r->rank_count ? r->job_ranks - r->rank_count : 0;

	return others < rails ? others + 1 : rails;
}

/* The rails on the adapter of this one, as bits; 0: an earlier one is, too. */
static uint32_t rails_on(const struct topo_report *r, int rail)
{
	const size_t length = strcspn(r->rail[rail].name, ":");
	uint32_t on = 0;

	for (int i = 0; i < r->rail_count && r->rail[rail].rail >= 0; i++)
		if (r->rail[i].rail >= 0 && strcspn(r->rail[i].name, ":") == length &&
		    !strncmp(r->rail[i].name, r->rail[rail].name, length)) {
			if (i < rail)
				return 0;
			on |= UINT32_C(1) << r->rail[i].rail;
		}
	return on;
}

/* The completion queues of a rank on all adapters, wherever its node is; 0: they do not fit in the bound. */
static uint64_t cq_bytes(const struct topo_report *r, const struct rail_plan_peer *peer, bool narrow, uint64_t bound)
{
	struct rail_plan_adapter of[32];	/* a rail is a bit */
	unsigned adapters = 0;
	uint64_t most = 0;

	for (int i = 0; i < r->rail_count; i++)
		if (rails_on(r, i))
			of[adapters++] = (struct rail_plan_adapter){ rails_on(r, i), r->rail[i].cq_entries };
	for (uint64_t first = 0; first < places_of(r, peer->rails); first++) {
		const struct rail_plan_node node = node_of(r, first);
		const uint64_t bytes = rail_plan_queues(peer, &node, of, adapters, narrow, bound);

		if (!bytes)
			return 0;
		most = bytes > most ? bytes : most;
	}
	return most;
}

struct topo_need topo_need(const struct topo_report *r)
{
	struct rail_plan_peer peer = peer_of(r, r->job_ranks), narrow = narrow_of(r);
	const struct rail_plan_node node = node_of(r, 0);
	struct topo_need n = { .eager = peer.eager, .qps = peer.qps };

	for (int kind = 0; kind < TOPO_EAGER_KINDS; kind++) {
		peer.polled = kind == TOPO_BY_RING;
		n.peer[kind] = rail_plan_most(&peer);
		n.cq_bytes[kind] = cq_bytes(r, &peer, false, UINT64_MAX);
		narrow.polled = peer.polled;
		n.narrow[kind] = rail_plan_narrow(&narrow);
		n.narrow_cq_bytes[kind] = cq_bytes(r, &narrow, true, UINT64_MAX);
	}
	n.peers = rail_plan_reached(&node);
	n.connections = n.peers * r->rank_count;
	return n;
}

uint64_t topo_queues(const struct topo_report *r, bool narrow)
{
	const struct rail_plan_peer peer = narrow ? narrow_of(r) : peer_of(r, r->job_ranks);

	return cq_bytes(r, &peer, narrow, r->lockable ? r->lockable : UINT64_MAX);
}

/* The count that all connections take of a rail's adapter, at the node with most; 0: an earlier rail is on it. */
static uint64_t most_on(const struct topo_report *r, int rail, bool narrow,
			uint64_t (*count)(const struct rail_plan_peer *peer, const struct rail_plan_node *node,
					  uint32_t on, bool narrow))
{
	const struct rail_plan_peer peer = narrow ? narrow_of(r) : peer_of(r, r->job_ranks);
	const uint32_t on = rails_on(r, rail);
	uint64_t most = 0;

	if (!on)
		return 0;
	for (uint64_t first = 0; first < places_of(r, peer.rails); first++) {
		const struct rail_plan_node node = node_of(r, first);
		const uint64_t taken = count(&peer, &node, on, narrow);

		most = taken > most ? taken : most;
	}
	return most;
}

uint64_t topo_pairs(const struct topo_report *r, int rail, bool narrow)
{
	return r->rail[rail].queue_pairs ? most_on(r, rail, narrow, rail_plan_pairs) : 0;
}

uint64_t topo_objects(const struct topo_report *r, int rail, bool narrow)
{
	return r->rail[rail].objects ? most_on(r, rail, narrow, rail_plan_objects) : 0;
}

int topo_report_make(struct topo_report *r, const struct topo_request *q)
{
	unsigned ranks;
	int rc;

	r->file = q->xml;
	rc = q->xml ? topo_open_xml(q->xml, &r->topo) :
	     topo_open(q->gpus ? TOPO_ALL : TOPO_RAILS, &r->topo);
	if (rc)
		return rc;
	ranks = ranks_of(r, q);
	r->job_ranks = q->job;
	rc = q->xml ? rails_from_file(r) : rails_from_verbs(r, q->soft, ranks);
	if (rc)
		goto out;
	rails_number(r);
	errors_read(r, q);
	if (ranks)
		rc = ranks_place(r, ranks);
	if (!rc)
		rc = topo_warn(r);
out:
	if (rc == -ENOMEM)
		rg_error("topo: no memory");
	return rc;
}

void topo_soft_option(struct opt *mine)
{
	while (strcmp(mine->name, "soft"))
		mine++;
	for (const struct opt *row = railmpi_options(); row->name; row++)
		if (!strcmp(row->name, "soft")) {
			size_t offset = mine->offset;

			*mine = *row;
			mine->offset = offset;
			mine->help = "show the software HCA's ports, as [PROFILE][,key=value...]";
		}
}

int topo_exit_code(int rc)
{
	switch (rc) {
	case 0:
		return RG_EXIT_OK;
	case -ENOMEM:
	case -EIO:
	case -ENOSPC:
		return RG_EXIT_FAULT;
	default:
		return RG_EXIT_USAGE;
	}
}
