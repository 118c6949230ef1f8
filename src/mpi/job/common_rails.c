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
#include "mpi/job/start_coll.h"
#include "rail/rail.h"
#include "util/err.h"

enum {
	CHOICES_MAX = 16,		/* each excludes a GID at least */
	PROBED_MAX = 16,		/* choices of pairs; datagrams try each but the last */
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
		rc = rail_hosts_list(&world_settings.rail, ranks_here(), (unsigned)ranks, &l->mine,
				     &l->mine_bytes);
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

	start_allgather(&mine, sizeof(mine), l->count);
	rg_errors_hold();
	rc = agree(lists_place(l));
	if (!rc)
		start_allgatherv(l->mine, mine, l->all, l->count, l->at);
	return rc;
}

static bool faults_exclude(struct rail_hosts *hosts)
{
	struct rail_hosts_fault mine = { .rails = 0 }, all;

	if (is_lowest(layer.world_rank))
		rail_hosts_try(hosts, &mine);
	start_allreduce(&mine.rails, &all.rails, 1, MPI_UINT32_T, MPI_BOR);
	return rail_hosts_exclude(hosts, &all);
}

/* ---- Datagrams over the rails ------------------------------------------------- */

/* Ranks that list no ports have no prober, and take part where all meet. */
struct probing {
	struct rail_prober *prober;
	struct rail_hosts *hosts;
	unsigned count;			/* hosts */
	unsigned char *marked;		/* [count] */
	struct rail_loss *mine;		/* [count * RAIL_MAX] */
	int *bytes, *at;		/* [ranks] */
	bool failed;			/* some rank has no memory for losses, which others know */
};

static int probing_begin(struct probing *p, unsigned char *address)
{
	p->marked = calloc(p->count, sizeof(*p->marked));
	p->mine = calloc((size_t)p->count * RAIL_MAX, sizeof(*p->mine));
	p->bytes = calloc((size_t)layer.world_size, sizeof(*p->bytes));
	p->at = calloc((size_t)layer.world_size, sizeof(*p->at));
	if (is_lowest(layer.world_rank))
		p->prober = rail_probe_open(&world_settings.rail, p->hosts, address);
	return p->marked && p->mine && p->bytes && p->at && (p->prober || !is_lowest(layer.world_rank));
}

static void probing_end(struct probing *p)
{
	rail_probe_close(p->prober);
	free(p->marked);
	free(p->mine);
	free(p->bytes);
	free(p->at);
}

static int on_every(int ready)
{
	int every;

	start_allreduce(&ready, &every, 1, MPI_INT, MPI_MIN);
	return every;
}

/* The addresses of all hosts, in their order: each lowest rank's, no others. */
static void addresses_gather(struct probing *p, const unsigned char *mine, unsigned char *all)
{
	int used = 0;

	for (int r = 0; r < layer.world_size; r++) {
		p->bytes[r] = is_lowest(r) ? RAIL_PROBE_BYTES : 0;
		p->at[r] = used;
		used += p->bytes[r];
	}
	start_allgatherv(mine, p->bytes[layer.world_rank], all, p->bytes, p->at);
}

/* False: some host cannot probe, or nothing needs to be. */
static bool probe_start(struct probing *p)
{
	unsigned char mine[RAIL_PROBE_BYTES] = { 0 };
	unsigned char *all = malloc((size_t)p->count * RAIL_PROBE_BYTES);
	const int ready = probing_begin(p, mine);
	bool started = on_every(ready && all);

	if (started) {
		addresses_gather(p, mine, all);
		started = on_every(!p->prober || rail_probe_start(p->prober, all));
	}
	free(all);
	return started;
}

/* Rounds of such times, until nothing is missing at any host. */
static bool is_missing(const struct probing *p, const uint64_t *most_ms, int rounds)
{
	int mine, any = 1;

	for (int i = 0; i < rounds && any; i++) {
		mine = p->prober && rail_probe_round(p->prober, most_ms[i] * 1000000);
		start_allreduce(&mine, &any, 1, MPI_INT, MPI_MAX);
	}
	return any;
}

/* The losses of all hosts, for free(); NULL: some rank has no memory. */
static struct rail_loss *losses_gather(struct probing *p, size_t *count)
{
	const size_t mine = p->prober ? rail_probe_lost(p->prober, p->mine) : 0;
	const int bytes = (int)(mine * sizeof(*p->mine));
	struct rail_loss *all;
	uint64_t used = 0;

	start_allgather(&bytes, sizeof(bytes), p->bytes);
	for (int r = 0; r < layer.world_size; r++) {
		p->at[r] = (int)used;
		used += (uint64_t)p->bytes[r];
	}
	all = used <= INT_MAX ? malloc(used ? used : 1) : NULL;
	if (on_every(all != NULL)) {
		start_allgatherv(p->mine, bytes, all, p->bytes, p->at);
		*count = used / sizeof(*all);
		return all;
	}
	free(all);
	return NULL;
}

/* All ports of the hosts marked, NULL: the reference.  True: losses that the choice did not know. */
static bool pairs_probe(struct probing *p, const unsigned char *marked)
{
	static const uint64_t pairs_ms[] = { 200, 800 };
	struct rail_loss *all;
	bool news = false;
	size_t count = 0;

	if (p->prober)
		rail_probe_pairs(p->prober, marked);
	is_missing(p, pairs_ms, 2);
	all = losses_gather(p, &count);
	p->failed = !on_every(all && !rail_hosts_lose(p->hosts, all, count, &news));
	free(all);
	return news && !p->failed;
}

static bool suspects_probe(struct probing *p)
{
	if (p->prober)
		rail_probe_suspects(p->prober, p->marked);
	start_allreduce(MPI_IN_PLACE, p->marked, (int)p->count, MPI_BYTE, MPI_BOR);
	return pairs_probe(p, p->marked);
}

/* True: ports do not reach each other as they are paired, so that the hosts choose again. */
static bool probe(struct rail_hosts *hosts, unsigned count)
{
	static const uint64_t rails_ms[] = { 20, 200, 1000 };
	struct probing p = { .hosts = hosts, .count = count };
	bool news = false;

	if (probe_start(&p) && is_missing(&p, rails_ms, 3))
		news = pairs_probe(&p, NULL) || (!p.failed && suspects_probe(&p));
	probing_end(&p);
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

static char narrow[320];

void common_rails_tell(void)
{
	if (layer.world_rank == 0 && *narrow)
		say(NULL, narrow);
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
	rail_hosts_narrow_text(hosts, narrow, sizeof(narrow));
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
