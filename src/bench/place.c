/*
 * place.c - the nodes of ranks, and the pairs that ranks form.
 *
 * On a software fabric, and natively on one host, ranks are spread over --nodes virtual
 * nodes: rank r of n is on node r * nodes / n.  The k-th rank of node 2j is paired with the
 * k-th of node 2j + 1.  On a real fabric rank i is paired with i + n/2, which is on another
 * node if ranks are placed in blocks.
 */
#include "bench/place.h"
#include "bench/acceptance.h"
#include "bench/cores.h"
#include "bench/options_use.h"
#include "bench/ranks.h"
#include "bench/star.h"
#include "bench/ways.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Hosts and CPUs ------------------------------------------------------------- */

static bool same_machine(const struct bench_job *job, int a, int b)
{
	return rg_host_same_machine(&job->where.place[a].at, &job->where.place[b].at);
}

static bool same_host(const struct bench_job *job, int a, int b)
{
	return same_machine(job, a, b) &&
	       strcmp(job->where.place[a].host, job->where.place[b].host) == 0;
}

/* Has any machine more ranks than CPUs that they may use? */
static bool is_oversubscribed(const struct bench_job *job)
{
	for (int first = 0; first < job->b.size; first++) {
		cpu_set_t all;
		int ranks = 0;

		CPU_ZERO(&all);
		for (int i = 0; i < job->b.size; i++)
			if (same_machine(job, first, i)) {
				if (i < first)
					break;		/* this machine has been counted */
				CPU_OR(&all, &all, &job->where.place[i].cpus);
				ranks++;
			}
		if (ranks > CPU_COUNT(&all))
			return true;
	}
	return false;
}

/* The number of hosts; sets each rank's first_of_host. */
static int hosts_count(struct bench_job *job)
{
	int count = 0;

	for (int i = 0; i < job->b.size; i++) {
		int first = 0;

		while (!same_host(job, first, i))
			first++;
		job->where.place[i].first_of_host = first;
		count += first == i;
	}
	return count;
}

static uint64_t nodes_wanted(const struct bench_job *job)
{
	const struct opt_table *table;
	const struct opt *row = options_find(job, "nodes", &table);

	/* A single rank is one node. */
	if (job->b.size == 1)
		return 1;
	return row ? OPT_VALUE(table, row, uint64_t) : 2;
}

static int count_check(const struct bench_job *job)
{
	const struct bench_def *def = job->def;
	int n = job->b.size;

	if (n < def->min_ranks) {
		rg_error("%d rank%s: too few (accepted: %d or more, such as mpirun -np %d %s)", n,
			 n == 1 ? "" : "s", def->min_ranks, def->min_ranks, rg_program());
		return RG_EXIT_USAGE;
	}
	if (def->layout == BENCH_PAIRS && n % 2) {
		rg_error("%d ranks: pairs need an even number (accepted: %d or %d)", n, n - 1,
			 n + 1);
		return RG_EXIT_USAGE;
	}
	if (job->where.host_count == 1 && nodes_wanted(job) > (uint64_t)n) {
		rg_error("--nodes %llu: more virtual nodes than ranks (accepted: 1 to %d)",
			 (unsigned long long)nodes_wanted(job), n);
		return RG_EXIT_USAGE;
	}
	return 0;
}

/* From here on a host has its placeholder as its name, the same on all ranks. */
static void hosts_redact(struct bench_job *job)
{
	struct redact *r = job->opt.redact ? bench_must(redact_new()) : NULL;
	const char *const paths[] = { job->opt.json, job->opt.samples, job->opt.argv[0] };

	for (int i = 0; r && i < job->b.size; i++) {
		char *host = job->where.place[i].host;

		snprintf(host, sizeof(job->where.place[i].host), "%s",
			 redact_name(r, "host", host));
	}
	for (size_t i = 0; r && i < sizeof(paths) / sizeof(paths[0]); i++)
		if (paths[i])
			redact_name(r, "/path", paths[i]);
	if (r)
		redact_user(r);
	job->where.redact = r;
}

int place_find(struct bench_job *job)
{
	struct bench_place mine;
	int rc = 0;

	memset(&mine, 0, sizeof(mine));
	gethostname(mine.host, sizeof(mine.host) - 1);
	rg_host_find(&mine.at);
	sched_getaffinity(0, sizeof(mine.cpus), &mine.cpus);
	cores_of("/sys/devices/system/cpu", &mine.cpus, &mine.cores);
	job->where.place = calloc((size_t)job->b.size, sizeof(job->where.place[0]));
	if (!job->where.place)
		MPI_Abort(MPI_COMM_WORLD, RG_EXIT_FAULT);
	MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, job->where.place, sizeof(mine), MPI_BYTE,
		      job->where.comm);
	hosts_redact(job);
	job->where.oversubscribed = is_oversubscribed(job);
	job->where.host_count = hosts_count(job);
	rc = star_nodes(job);
	return rc ? rc : count_check(job);
}

/* ---- Nodes and pairs ---------------------------------------------------------------- */

/* Over TCP the fabric says who shares memory: containers may have other names than their host. */
static bool same_node(const struct bench_job *job, int a, int b)
{
	return job->where.fabric.net ? railmpi_node_of(a) == railmpi_node_of(b) :
				       same_host(job, a, b);
}

static void nodes_set(struct bench_job *job)
{
	uint64_t nodes = job->where.fabric.nodes;
	int n = job->b.size;

	if (nodes == 0 && job->where.fabric.rail_count == 0 && job->where.host_count == 1)
		nodes = nodes_wanted(job);
	for (int i = 0; i < n; i++) {
		int first = 0;

		if (nodes) {
			job->where.place[i].node = (int)((uint64_t)i * nodes / (uint64_t)n);
			continue;
		}
		while (!same_node(job, first, i))
			first++;
		job->where.place[i].node = first == i ? job->where.node_count++ :
					   job->where.place[first].node;
	}
	if (nodes)
		job->where.node_count = (int)nodes;
	else
		job->where.fabric.nodes = 0;
}

/* The k-th rank of a node, or -1. */
static int rank_on_node(const struct bench_job *job, int node, int k)
{
	for (int i = 0; i < job->b.size; i++)
		if (job->where.place[i].node == node && k-- == 0)
			return i;
	return -1;
}

static void pairs_across_virtual_nodes(struct bench_job *job)
{
	for (int node = 0; node + 1 < job->where.node_count; node += 2)
		for (int k = 0; ; k++) {
			int a = rank_on_node(job, node, k), b = rank_on_node(job, node + 1, k);

			if (a < 0 || b < 0)
				break;
			job->where.pair[job->where.pair_count++] = (struct bench_pair){ { a, b } };
		}
}

static void pairs_across_halves(struct bench_job *job)
{
	int half = job->b.size / 2, sharing = -1;

	for (int i = 0; i < half; i++) {
		job->where.pair[job->where.pair_count++] = (struct bench_pair){ { i, i + half } };
		if (sharing < 0 && same_node(job, i, i + half))
			sharing = i;
	}
	if (sharing >= 0 && job->where.host_count > 1)
		rg_warn("ranks %d and %d are a pair but share host %s: place ranks in blocks, half "
			"of them on either side", sharing, sharing + half,
			job->where.place[sharing].host);
}

static int pairs_limit(struct bench_job *job)
{
	if (job->opt.pairs == OPT_SPECIAL)
		return 0;
	if (job->opt.pairs > (uint64_t)job->where.pair_count) {
		rg_error("--pairs %llu: %d ranks make %d pair%s (accepted: 1 to %d)",
			 (unsigned long long)job->opt.pairs, job->b.size, job->where.pair_count,
			 job->where.pair_count == 1 ? "" : "s", job->where.pair_count);
		return RG_EXIT_USAGE;
	}
	job->where.pair_count = (int)job->opt.pairs;
	return 0;
}

/* ---- The players of a tournament --------------------------------------------------- */

/* The first rank of each node, by node. */
static void players_find(struct bench_job *job)
{
	job->where.player = bench_must(calloc((size_t)job->where.node_count,
					     sizeof(job->where.player[0])));
	for (int rank = job->b.size; rank-- > 0; )
		job->where.player[job->where.place[rank].node] = rank;
}

bool place_plays(const struct bench_job *job)
{
	return job->where.player[job->where.place[job->b.rank].node] == job->b.rank;
}

/*
 * Refuse sizes up to --eager: all ways send them over the same lane, so that rails cannot be
 * compared.
 */
static bool takes_small(const struct bench_job *job)
{
	uint64_t eager = ways_eager_limit(job);

	for (int w = 0; w < job->where.way_count; w++)
		if (way_rail(job, &job->where.way[w]) && job->opt.sizes.max <= eager) {
			rg_error("--sizes %llu: rails carry only messages above --eager alone "
				 "(accepted: from %llu on)",
				 (unsigned long long)job->opt.sizes.max,
				 (unsigned long long)eager + 1);
			return true;
		}
	return false;
}

static int players_join(struct bench_job *job)
{
	if (job->opt.pairs != OPT_SPECIAL) {
		rg_error("--pairs %llu: each round joins all nodes (accepted: auto)",
			 (unsigned long long)job->opt.pairs);
		return RG_EXIT_USAGE;
	}
	if (job->opt.sizes.min != job->opt.sizes.max) {
		rg_error("--sizes: a matrix is of one message size (accepted: one, such as 1M)");
		return RG_EXIT_USAGE;
	}
	if (job->where.node_count < 2 || job->where.node_count > REPORT_MATRIX_MAX) {
		rg_error("%d node%s: a matrix needs 2 to %d (on one host: --nodes)",
			 job->where.node_count, job->where.node_count == 1 ? "" : "s",
			 REPORT_MATRIX_MAX);
		return RG_EXIT_USAGE;
	}
	if (!acceptance_is(job) && takes_small(job))
		return RG_EXIT_USAGE;
	players_find(job);
	job->where.pair = bench_must(calloc((size_t)job->where.node_count,
					   sizeof(job->where.pair[0])));
	return 0;
}

/* ---- All of it ------------------------------------------------------------------------ */

int place_join(struct bench_job *job)
{
	struct bench *b = &job->b;
	int rc;

	nodes_set(job);
	b->pair = b->peer = -1;
	if (job->def->layout == BENCH_TOURNAMENT)
		return players_join(job);
	if (job->def->layout == BENCH_STAR)
		return star_join(job);
	if (job->def->layout != BENCH_PAIRS)
		return 0;
	job->where.pair = calloc((size_t)b->size, sizeof(job->where.pair[0]));
	if (!job->where.pair)
		MPI_Abort(MPI_COMM_WORLD, RG_EXIT_FAULT);
	if (job->where.host_count == 1 && job->where.node_count > 1)
		pairs_across_virtual_nodes(job);
	else
		pairs_across_halves(job);
	rc = pairs_limit(job);
	if (rc)
		return rc;
	for (int p = 0; p < job->where.pair_count; p++)
		for (int side = 0; side < 2; side++)
			if (job->where.pair[p].rank[side] == b->rank) {
				b->pair = p;
				b->side = side;
				b->peer = job->where.pair[p].rank[!side];
				b->peers = 1;
			}
	return 0;
}
