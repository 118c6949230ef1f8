/*
 * common_rails.c - the rails that all hosts of the job have, among their RDMA ports.
 *
 * The lowest rank of each host lists its ports.  All ranks get all lists and choose the same
 * (rail.h).  Where the choice has GIDs of Ethernet, each lowest rank tries address handles to the hosts
 * 1, 2, 4, ... further on; what fails at one host is chosen by none.  Then datagrams over each rail
 * tell whether its ports reach each other; ports that do not are paired anew.
 */
#include "mpi/job/common_rails.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/comm/peers.h"
#include "mpi/job/agree.h"
#include "mpi/job/options.h"
#include "mpi/job/progress.h"
#include "rail/rail.h"
#include "util/err.h"

enum {
	CHOICES_MAX = 16,		/* each excludes a GID at least */
	PROBED_MAX = 4,			/* choices of pairs; datagrams try each but the last */
};

struct lists {
	void *mine, *all;
	size_t mine_bytes;
	int *count, *at;		/* [ranks]: bytes */
	size_t *bytes;			/* [hosts] */
	unsigned hosts, host;		/* number of hosts; this rank's */
};

/* A node's number is its lowest rank. */
static bool is_lowest(int rank)
{
	return world_node_of[rank] == (unsigned)rank;
}

static unsigned ranks_here(void)
{
	unsigned n = 0;

	for (int r = 0; r < layer.world_size; r++)
		n += world_node_of[r] == world_node_of[layer.world_rank];
	return n;
}

static int lists_begin(struct lists *l)
{
	const size_t ranks = (size_t)layer.world_size;
	int rc = 0;

	rg_errors_hold();
	l->count = calloc(ranks, sizeof(*l->count));
	l->at = calloc(ranks, sizeof(*l->at));
	l->bytes = calloc(ranks, sizeof(*l->bytes));
	if (!l->count || !l->at || !l->bytes) {
		rc = -ENOMEM;
		rg_error("no memory for the ports of %d ranks", layer.world_size);
	} else if (is_lowest(layer.world_rank)) {
		rc = rail_hosts_list(&world_settings.rail, ranks_here(), &l->mine, &l->mine_bytes);
	}
	return agree(rc);
}

static int lists_place(struct lists *l)
{
	uint64_t used = 0;

	for (int r = 0; r < layer.world_size; r++) {
		if (world_node_of[layer.world_rank] == (unsigned)r)
			l->host = l->hosts;
		if (is_lowest(r))
			l->bytes[l->hosts++] = (size_t)l->count[r];
		l->at[r] = (int)used;
		used += (uint64_t)l->count[r];
	}
	l->all = used <= INT_MAX ? malloc(used ? used : 1) : NULL;
	if (!l->all)
		rg_error("no memory for the ports of %u hosts", l->hosts);
	return l->all ? 0 : -ENOMEM;
}

static int lists_gather(struct lists *l)
{
	const int mine = (int)l->mine_bytes;
	int rc;

	native.Allgather(&mine, 1, MPI_INT, l->count, 1, MPI_INT, MPI_COMM_WORLD);
	rg_errors_hold();
	rc = agree(lists_place(l));
	if (!rc)
		native.Allgatherv(l->mine, mine, MPI_BYTE, l->all, l->count, l->at, MPI_BYTE,
				  MPI_COMM_WORLD);
	return rc;
}

static bool faults_exclude(struct rail_hosts *hosts)
{
	struct rail_hosts_fault mine = { .rails = 0 }, all;

	if (is_lowest(layer.world_rank))
		rail_hosts_try(hosts, &mine);
	native.Allreduce(&mine.rails, &all.rails, 1, MPI_UINT32_T, MPI_BOR, MPI_COMM_WORLD);
	return rail_hosts_exclude(hosts, &all);
}

/* ---- Datagrams over the rails ------------------------------------------------- */

/* False: some host cannot probe, or nothing needs to be. */
static bool probe_start(struct rail_prober *prober, const unsigned char *mine)
{
	unsigned char *all = malloc((size_t)layer.world_size * RAIL_PROBE_BYTES);
	int ready = all && (prober || !is_lowest(layer.world_rank)), every;
	unsigned hosts = 0;

	native.Allreduce(&ready, &every, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (every)
		native.Allgather(mine, RAIL_PROBE_BYTES, MPI_BYTE, all, RAIL_PROBE_BYTES, MPI_BYTE,
				 MPI_COMM_WORLD);
	for (int r = 0; every && r < layer.world_size; r++)
		if (is_lowest(r))
			memmove(all + (size_t)hosts++ * RAIL_PROBE_BYTES, all + (size_t)r * RAIL_PROBE_BYTES,
				RAIL_PROBE_BYTES);
	ready = every && (!prober || rail_probe_start(prober, all));
	free(all);
	native.Allreduce(&ready, &every, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	return every;
}

/* Rounds of such times, until nothing is missing at any host. */
static bool is_missing(struct rail_prober *prober, bool all_pairs, const uint64_t *most_ms, int rounds)
{
	int mine, any = 1;

	for (int i = 0; i < rounds && any; i++) {
		mine = prober && rail_probe_round(prober, all_pairs, most_ms[i] * 1000000);
		native.Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	}
	return any;
}

/* Ports that the hosts' probes have found lost are marked; true: some were not marked before. */
static bool losses_add(struct rail_prober *prober, struct rail_hosts *hosts, unsigned count)
{
	uint32_t (*mine)[RAIL_MAX] = calloc(2 * (size_t)count, sizeof(*mine));
	uint32_t (*all)[RAIL_MAX] = mine ? mine + count : NULL;
	int ready = mine != NULL, every;
	bool news = false;

	native.Allreduce(&ready, &every, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (every) {
		if (prober)
			rail_probe_lost(prober, mine);
		native.Allreduce(mine, all, (int)count * RAIL_MAX, MPI_UINT32_T, MPI_BOR, MPI_COMM_WORLD);
		news = rail_hosts_lose(hosts, (const uint32_t (*)[RAIL_MAX])all);
	}
	free(mine);
	return news;
}

/* True: ports do not reach each other as they are paired, so that the hosts choose again. */
static bool probe(struct rail_hosts *hosts, unsigned count)
{
	static const uint64_t rails_ms[] = { 20, 200, 1000 }, pairs_ms[] = { 200, 800 };
	unsigned char address[RAIL_PROBE_BYTES] = { 0 };
	struct rail_prober *prober = NULL;
	bool news = false;

	if (is_lowest(layer.world_rank))
		prober = rail_probe_open(&world_settings.rail, hosts, address);
	if (probe_start(prober, address) && is_missing(prober, false, rails_ms, 3)) {
		is_missing(prober, true, pairs_ms, 2);
		news = losses_add(prober, hosts, count);
	}
	rail_probe_close(prober);
	return news;
}

static int choose(struct rail_hosts *hosts)
{
	int rc, turn = 0;

	do {
		rg_errors_hold();
		rc = agree(rail_hosts_choose(hosts));
	} while (!rc && ++turn < CHOICES_MAX && faults_exclude(hosts));
	return rc;
}

static void say(void *arg, const char *text)
{
	(void)arg;
	rg_note("%s", text);
}

static int lists_choose(struct lists *l, struct rail_hosts **out)
{
	struct rail_hosts *hosts = NULL;
	int rc, turn = 0;

	rg_errors_hold();
	rc = agree(rail_hosts_open(l->all, l->bytes, l->hosts, l->host, &hosts));
	do {
		if (!rc)
			rc = choose(hosts);
	} while (!rc && ++turn < PROBED_MAX && probe(hosts, l->hosts));
	if (rc) {
		rail_hosts_close(hosts);
		return rc;
	}
	if (layer.world_rank == 0)
		rail_hosts_tell(hosts, say, NULL);
	*out = hosts;
	return 0;
}

int common_rails(struct rail_hosts **out)
{
	struct lists l = { .hosts = 0 };
	int rc = lists_begin(&l);

	if (!rc)
		rc = lists_gather(&l);
	if (!rc)
		rc = lists_choose(&l, out);
	free(l.mine);
	free(l.all);
	free(l.count);
	free(l.at);
	free(l.bytes);
	return rc;
}
