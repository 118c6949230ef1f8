/* acceptance_rails.c - the ports of all nodes as rails; names, leaves, the number of rounds. */
#include "bench/acceptance.h"
#include "bench/ranks.h"

#include <stdlib.h>
#include <string.h>

static const struct bench_acceptance *asked(const struct bench_job *job)
{
	return job->def->acceptance;
}

/* ---- Rails ----------------------------------------------------------------------------- */

/* Slurm's place of this node: "spine0.leaf3.n14", without the node. */
static void leaf_find(char *text, size_t size)
{
	const char *at = getenv("SLURM_TOPOLOGY_ADDR"), *end = at ? strrchr(at, '.') : NULL;

	snprintf(text, size, "%.*s", end ? (int)(end - at) : 0, at ? at : "");
}

static void ports_take(const struct bench_job *job, struct acceptance_ports *mine)
{
	struct bench_port port[BENCH_PORTS_MAX];

	memset(mine, 0, sizeof(*mine));
	mine->count = asked(job)->cells->ports(port, BENCH_PORTS_MAX);
	for (int i = 0; i < mine->count; i++) {
		memcpy(mine->port[i].name, port[i].name, sizeof(mine->port[i].name));
		mine->port[i].active = port[i].active;
	}
	leaf_find(mine->leaf, sizeof(mine->leaf));
}

static int port_named(const struct acceptance_ports *p, const char *name)
{
	for (int i = 0; i < p->count; i++)
		if (strcmp(p->port[i].name, name) == 0)
			return i;
	return -1;
}

/* Has any rank this port, and is it up there? */
static bool is_used(const struct bench_job *job, const char *name)
{
	for (int i = 0; i < job->b.size; i++) {
		const struct acceptance_ports *p = &job->got.acceptance->ports[i];
		int at = port_named(p, name);

		if (at >= 0 && p->port[at].active)
			return true;
	}
	return false;
}

/*
 * Rails are the ports of the rank that has most of them, without those that are down everywhere.
 * (Names are the same on hosts of one kind.)
 */
static void rails_find(struct bench_job *job)
{
	struct acceptance *acc = job->got.acceptance;
	const struct acceptance_ports *most = acc->ports;

	for (int i = 1; i < job->b.size; i++)
		if (acc->ports[i].count > most->count)
			most = &acc->ports[i];
	for (int i = 0; i < most->count && acc->rails < ACCEPTANCE_RAILS_MAX; i++)
		if (is_used(job, most->port[i].name))
			memcpy(acc->rail[acc->rails++], most->port[i].name, sizeof(acc->rail[0]));
}

/* Ways have the names that they have with MPI, and no communicator of their own. */
static void ways_name(struct bench_job *job)
{
	for (int r = 0; r < job->got.acceptance->rails; r++) {
		struct bench_column *way = &job->where.way[r];
		const struct opt_choice *c = railmpi_ways();

		while (c->value != RAILMPI_SINGLE_RAIL + r)
			c++;
		way->id = (enum railmpi_way)c->value;
		way->name = c->name;
		MPI_Comm_dup(job->where.comm, &way->comm);
		job->where.way_count++;
	}
}

int acceptance_open(struct bench_job *job)
{
	struct acceptance *acc = bench_must(calloc(1, sizeof(*acc)));
	struct acceptance_ports mine;
	int rc;

	job->got.acceptance = acc;
	rg_errors_hold();
	rc = asked(job)->cells->open(job->opt.sizes.max);
	if (ranks_failed(job, rc))
		return RG_EXIT_FAULT;
	ports_take(job, &mine);
	acc->ports = bench_must(calloc((size_t)job->b.size, sizeof(acc->ports[0])));
	MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, acc->ports, sizeof(mine), MPI_BYTE,
		      job->where.comm);
	rails_find(job);
	ways_name(job);
	return 0;
}

/* Number of a node's port on a rail: by its name; else, with other names, by its place. */
static int port_of_rail(const struct bench_job *job, const struct acceptance_ports *p, int rail)
{
	const struct acceptance *acc = job->got.acceptance;
	int at = port_named(p, acc->rail[rail]);

	for (int r = 0; at < 0 && r < acc->rails; r++)
		if (port_named(p, acc->rail[r]) >= 0)
			return -1;
	return at >= 0 ? at : rail < p->count ? rail : -1;
}

void acceptance_ports_assign(struct bench_job *job)
{
	struct acceptance *acc = job->got.acceptance;
	size_t ports = (size_t)job->where.node_count * (size_t)acc->rails;

	acc->port = bench_must(calloc(ports + 1, sizeof(acc->port[0])));
	acc->missing = bench_must(calloc(ports + 1, sizeof(acc->missing[0])));
	for (int n = 0; n < job->where.node_count; n++)
		for (int r = 0; r < acc->rails; r++) {
			const struct acceptance_ports *p = &acc->ports[job->where.player[n]];
			int at = port_of_rail(job, p, r), i = n * acc->rails + r;

			acc->port[i] = at;
			acc->missing[i] = at < 0 || !p->port[at].active;
		}
}

/* ---- Nodes ------------------------------------------------------------------------------- */

void acceptance_node_name(const struct bench_job *job, int node, char *text, size_t size)
{
	if (job->where.host_count > 1)
		snprintf(text, size, "%s", job->where.place[job->where.player[node]].host);
	else
		snprintf(text, size, "node%d", node);
}

int *acceptance_leaves(const struct bench_job *job)
{
	const struct acceptance *acc = job->got.acceptance;
	uint64_t each = *asked(job)->leaf_nodes;
	int *leaf = bench_must(calloc((size_t)job->where.node_count, sizeof(leaf[0])));
	bool known = each;

	for (int n = 0; n < job->where.node_count; n++) {
		const char *name = acc->ports[job->where.player[n]].leaf;
		int first = 0;

		while (strcmp(acc->ports[job->where.player[first]].leaf, name))
			first++;
		known = known || *name;
		leaf[n] = each ? (int)((uint64_t)n / each) : *name ? first : -1;
	}
	if (known)
		return leaf;
	free(leaf);
	return NULL;
}

int acceptance_rounds(const struct bench_job *job)
{
	if (*asked(job)->tournament)
		return 0;
	if (*asked(job)->rounds != OPT_SPECIAL)
		return (int)*asked(job)->rounds;
	return job->where.node_count > ACCEPT_TOURNAMENT_MAX ? ACCEPT_ROUNDS : 0;
}
