/* places.c - the hosts of all ranks: the fabric that joins them, and their nodes. */
#include "mpi/job/places.h"

#include <errno.h>
#include <string.h>

#include "util/err.h"

bool places_oversubscribed(const struct hello *all, int n, int rank)
{
	unsigned ranks = 0, cpus = 0;
	uint64_t set[16] = {0};
	int i, w;

	for (i = 0; i < n; i++) {
		if (!rg_host_same_machine(&all[i].at, &all[rank].at))
			continue;
		ranks++;
		for (w = 0; w < 16; w++)
			set[w] |= all[i].cpus[w];
	}
	for (w = 0; w < 16; w++)
		cpus += (unsigned)__builtin_popcountll(set[w]);
	return ranks > cpus;
}

/*
 * Can the software HCA of both meet in memory?  By the network or the IPC namespace that they have in
 * common: containers of one machine may have names of their own, and hosts as namespaces its name.
 */
static bool share_memory(const struct hello *a, const struct hello *b)
{
	return rg_host_same(&a->at, &b->at) || rg_host_shares_memory(&a->at, &b->at);
}

static bool same_name(const struct hello *a, const struct hello *b)
{
	return rg_host_same_machine(&a->at, &b->at) && !strcmp(a->host, b->host);
}

/* ---- Which fabric ------------------------------------------------------------------------ */

static int nets_compare(const struct hello *all, int n)
{
	for (int i = 0; i < n; i++)
		if (all[i].net != all[0].net) {
			rg_error("SOFTHCA_SPEC: rank %d and rank 0 differ in net= (accepted: the same "
				 "on all ranks)", i);
			return -EINVAL;
		}
	return 0;
}

/* A rank that shares no memory with rank 0; 0: none. */
static int other_host(const struct hello *all, int n)
{
	int other = 0;

	while (other < n && share_memory(&all[other], &all[0]))
		other++;
	return other < n ? other : 0;
}

static int memory_check(const struct hello *all, int other)
{
	if (!other)
		return 0;
	rg_error("--soft: this software HCA joins ranks of one host only, rank 0 is on %s and rank %d on %s "
		 "(accepted: network interfaces of all hosts, such as net=eth0+eth1; --rails all; or --over "
		 "native)", all[0].host, other, all[other].host);
	return -EINVAL;
}

/* Nothing is known of that rank's devices: it may have all that others have. */
static int unread(const struct hello *h, int rank)
{
	rg_error("the RDMA devices of host %s cannot be listed and opened by rank %d: %s%s", h->host, rank,
		 strerror(-h->ports), h->ports == -EMFILE ? " (ulimit -n)" : "");
	return h->ports;
}

int places_fabric(const struct hello *all, int n, bool asked, enum places_fabric *out)
{
	int with = 0, without = -1;

	for (int i = 0; i < n && !asked; i++)
		if (all[i].ports < 0)
			return unread(&all[i], i);
	for (int i = 0; i < n; i++)
		if (all[i].ports > 0)
			with++;
		else if (without < 0)
			without = i;
	if (!asked && with == n) {
		*out = PLACES_DEVICES;
		return 0;
	}
	if (!asked && with) {
		rg_error("no ACTIVE RDMA port on host %s (rank %d), others have one: %s; fix the port or use "
			 "--over native", all[without].host, without, *all[without].no_ports ?
			 all[without].no_ports : "the kernel shows no device");
		return -ENODEV;
	}
	*out = all[0].net ? PLACES_NET : PLACES_MEMORY;
	if (nets_compare(all, n))
		return -EINVAL;
	if (all[0].net || asked)
		return all[0].net ? 0 : memory_check(all, other_host(all, n));
	*out = other_host(all, n) ? PLACES_NET_FOUND : PLACES_MEMORY;
	return 0;
}

void places_tell_no_ports(const struct hello *all, int rank)
{
	int first = 0;

	while (!same_name(&all[first], &all[rank]))
		first++;
	if (first == rank && *all[rank].no_ports)
		rg_warn("host %s has no ACTIVE RDMA port, the software HCA takes its place: %s", all[rank].host,
			all[rank].no_ports);
}

/* ---- Nodes ------------------------------------------------------------------------------- */

static bool same_node(enum places_fabric fabric, const struct hello *a, const struct hello *b)
{
	if (fabric == PLACES_NET)
		return rg_host_same(&a->at, &b->at);
	return rg_host_shares_memory(&a->at, &b->at) && a->model_node == b->model_node;
}

void places_nodes(const struct hello *all, int n, enum places_fabric fabric, unsigned virtual_nodes,
		  unsigned node_of[])
{
	for (int i = 0; i < n; i++) {
		int first = 0;

		if (fabric == PLACES_MEMORY) {
			/* Blocks: rank r is on node r * nodes / n. */
			node_of[i] = (unsigned)((uint64_t)i * virtual_nodes / (unsigned)n);
			continue;
		}
		while (!same_node(fabric, &all[first], &all[i]))
			first++;
		node_of[i] = (unsigned)first;
	}
}
