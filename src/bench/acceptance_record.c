/* acceptance_record.c - the record of an acceptance: nodes, ports, faults, the list to drain. */
#include "bench/acceptance.h"
#include "bench/place.h"
#include "bench/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "util/host_list.h"

enum { RECORD_TAG = 44 };

/* ---- Counters of all nodes --------------------------------------------------------------- */

/* A port's counters over the job. */
struct tally { int present, active; uint64_t errors, retries; };

static void error_add(void *user, const char *name, uint64_t value)
{
	struct tally *t = user;

	t->errors += value;
	if (railmpi_counter_is_retry(name) && t->retries != UINT64_MAX)
		t->retries += value;
}

/* Counters of retries are only those of real ports; a software HCA counts its queue pairs'. */
static void tallies_take(const struct bench_job *job, struct tally *mine)
{
	const struct acceptance *acc = job->got.acceptance;
	const struct bench_cells *cells = job->def->acceptance->cells;
	struct bench_port port[BENCH_PORTS_MAX];
	int count = cells->ports(port, BENCH_PORTS_MAX);
	int node = job->where.place[job->b.rank].node;

	for (int r = 0; r < acc->rails; r++) {
		int at = acc->port[node * acc->rails + r];

		mine[r] = (struct tally){ .retries = UINT64_MAX };
		if (at < 0 || at >= count)
			continue;
		mine[r].present = 1;
		mine[r].active = port[at].active;
		if (cells->errors(at, error_add, &mine[r]))
			mine[r].errors -= acc->errors[at];
		if (port[at].counts_retries)
			mine[r].retries = port[at].retries - acc->retries[at];
	}
}

/* The counters of all ports, [node * rails + rail], at rank 0. */
static struct tally *tallies_gather(const struct bench_job *job)
{
	const int rails = job->got.acceptance->rails, bytes = rails * (int)sizeof(struct tally);
	struct tally mine[ACCEPTANCE_RAILS_MAX], *all;

	tallies_take(job, mine);
	if (job->b.rank) {
		if (place_plays(job))
			MPI_Send(mine, bytes, MPI_BYTE, 0, RECORD_TAG, job->where.comm);
		return NULL;
	}
	all = bench_must(calloc((size_t)job->where.node_count * (size_t)rails + 1, sizeof(all[0])));
	for (int n = 0; n < job->where.node_count; n++)
		if (job->where.player[n] == 0)
			memcpy(&all[n * rails], mine, (size_t)bytes);
		else
			MPI_Recv(&all[n * rails], bytes, MPI_BYTE, job->where.player[n], RECORD_TAG,
				 job->where.comm, MPI_STATUS_IGNORE);
	return all;
}

/* A port that is down now is accused, whenever that happened. */
static void downs_accuse(const struct bench_job *job, const struct tally *tally)
{
	const struct acceptance *acc = job->got.acceptance;

	for (int i = 0; i < job->where.node_count * acc->rails; i++)
		if (!tally[i].active)
			accept_port_down(acc->a, i / acc->rails, i % acc->rails);
}

/* ---- Names --------------------------------------------------------------------------------- */

struct names {
	struct accept_names of;
	char (*node)[96];
	const char **node_text, **port_text, *rail_text[ACCEPTANCE_RAILS_MAX];
	uint64_t *retries;
};

static void names_make(const struct bench_job *job, const struct tally *tally, struct names *n)
{
	const struct acceptance *acc = job->got.acceptance;
	size_t nodes = (size_t)job->where.node_count, ports = nodes * (size_t)acc->rails;

	n->node = bench_must(calloc(nodes + 1, sizeof(n->node[0])));
	n->node_text = bench_must(calloc(nodes + 1, sizeof(n->node_text[0])));
	n->port_text = bench_must(calloc(ports + 1, sizeof(n->port_text[0])));
	n->retries = bench_must(calloc(ports + 1, sizeof(n->retries[0])));
	for (int i = 0; i < job->where.node_count; i++) {
		acceptance_node_name(job, i, n->node[i], sizeof(n->node[i]));
		n->node_text[i] = n->node[i];
	}
	for (int i = 0; i < (int)ports; i++) {
		const struct acceptance_ports *p =
			&acc->ports[job->where.player[i / acc->rails]];

		n->port_text[i] = acc->port[i] < 0 ? acc->rail[i % acc->rails] :
				  p->port[acc->port[i]].name;
		n->retries[i] = tally[i].retries;
	}
	for (int r = 0; r < acc->rails; r++)
		n->rail_text[r] = acc->rail[r];
	n->of = (struct accept_names){ n->node_text, n->port_text, n->rail_text, n->retries,
				       acc->rails };
}

static void names_free(struct names *n)
{
	free(n->node);
	free(n->node_text);
	free(n->port_text);
	free(n->retries);
}

/* ---- Nodes --------------------------------------------------------------------------------- */

/* To four places, so that a file and its table agree. */
static json_t *number(double value)
{
	return isfinite(value) ? json_real(round(value * 1e4) / 1e4) : json_null();
}

static json_t *count_or_null(uint64_t count)
{
	return count == UINT64_MAX ? json_null() : json_integer((json_int_t)count);
}

static json_t *port_json(const struct bench_job *job, const struct names *names,
			 const struct tally *tally, int node, int rail)
{
	const struct acceptance *acc = job->got.acceptance;
	int i = node * acc->rails + rail;
	const char *state = !tally[i].present ? "missing" : tally[i].active ? "active" : "down";

	return json_pack("{s:s, s:s, s:s, s:b, s:o, s:o, s:i, s:b, s:I, s:o}",
			 "rail", acc->rail[rail], "port", names->port_text[i], "state", state,
			 "missing_at_start", (int)acc->missing[i],
			 "sending", number(accept_relative(acc->a, node, rail, ACCEPT_OUT)),
			 "receiving", number(accept_relative(acc->a, node, rail, ACCEPT_IN)),
			 "failed_rounds", accept_fails(acc->a, node, rail),
			 "left", (int)accept_has_left(acc->a, node, rail),
			 "errors", (json_int_t)tally[i].errors,
			 "retries", count_or_null(tally[i].retries));
}

static json_t *nodes_json(const struct bench_job *job, const struct names *names,
			  const struct tally *tally)
{
	json_t *nodes = json_array();

	for (int n = 0; n < job->where.node_count; n++) {
		json_t *ports = json_array();

		for (int r = 0; r < job->got.acceptance->rails; r++)
			json_array_append_new(ports, port_json(job, names, tally, n, r));
		json_array_append_new(nodes, json_pack("{s:o, s:o, s:o}", "name",
			report_string(names->node[n]), "host",
			report_string(job->where.place[job->where.player[n]].host), "ports",
			ports));
	}
	return nodes;
}

static double latency_of(const struct acceptance *acc, int rail)
{
	uint64_t *ns = bench_must(calloc((size_t)acc->latency_count + 1, sizeof(ns[0])));
	double median;
	size_t count = 0;

	for (int i = 0; i < acc->latency_count; i++)
		if (acc->latency_rail[i] == rail)
			ns[count++] = acc->latency[i];
	stats_sort(ns, count);
	median = stats_median(ns, count) / 1e3;
	free(ns);
	return median;
}

static json_t *rails_json(const struct acceptance *acc)
{
	json_t *rails = json_array();

	for (int r = 0; r < acc->rails; r++)
		json_array_append_new(rails, json_pack("{s:s, s:o, s:o}", "rail", acc->rail[r],
			"level", number(accept_level(acc->a, r)), "latency_us",
			number(latency_of(acc, r))));
	return rails;
}

/* ---- Faults --------------------------------------------------------------------------------- */

static json_t *index_or_null(int i)
{
	return i < 0 ? json_null() : json_integer(i);
}

static json_t *members_json(const struct accept_fault *f)
{
	json_t *list = json_array();

	for (int i = 0; i < f->member_count; i++)
		json_array_append_new(list, json_integer(f->member[i]));
	return list;
}

static json_t *fault_json(const struct accept_fault *f, const struct names *names)
{
	static const char *const kinds[] = {
		[ACCEPT_PORT_MISSING] = "port missing", [ACCEPT_PORT_DOWN] = "port down",
		[ACCEPT_PORT_SLOW] = "port slow", [ACCEPT_NODE_DOWN] = "node down",
		[ACCEPT_NODE_SLOW] = "node slow", [ACCEPT_PATH_DOWN] = "path down",
		[ACCEPT_PATH_SLOW] = "path slow", [ACCEPT_LEAF_SLOW] = "leaf slow",
		[ACCEPT_RAIL_SLOW] = "rail slow", [ACCEPT_ROUTING] = "routing",
	};
	static const char *const directions[] = { "both", "sending", "receiving" };
	char text[2048];

	accept_text(f, &names->of, text, sizeof(text));
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:f, s:o, s:b}", "kind", kinds[f->kind],
			 "text", report_string(text), "node", index_or_null(f->node), "other",
			 index_or_null(f->other), "rail", index_or_null(f->rail), "direction",
			 directions[f->direction], "low", f->low, "members", members_json(f),
			 "drain", (int)accept_drains(f));
}

static json_t *faults_json(const struct acceptance *acc, const struct names *names)
{
	json_t *list = json_array();

	for (int i = 0; i < accept_fault_count(acc->a); i++)
		json_array_append_new(list, fault_json(accept_fault(acc->a, i), names));
	return list;
}

/* The nodes to drain in Slurm's form; null: none. */
static json_t *drain_json(const struct acceptance *acc, const struct names *names)
{
	int faults = accept_fault_count(acc->a), count = 0;
	const char **list = bench_must(calloc((size_t)faults + 1, sizeof(list[0])));
	json_t *text = json_null();
	char *all;

	for (int i = 0; i < faults; i++)
		if (accept_drains(accept_fault(acc->a, i)))
			list[count++] = names->node[accept_fault(acc->a, i)->node];
	if (count) {
		all = bench_must(rg_host_list(list, count));
		text = report_string(all);
		free(all);
	}
	free(list);
	return text;
}

json_t *acceptance_record(struct bench_job *job)
{
	const struct acceptance *acc = job->got.acceptance;
	struct tally *tally = tallies_gather(job);
	struct names names;
	json_t *record;

	if (!tally)
		return NULL;
	downs_accuse(job, tally);
	names_make(job, tally, &names);
	record = json_pack("{s:i, s:s, s:{s:f, s:f, s:f}, s:f, s:o, s:o, s:o, s:o}",
			   "random_rounds", acceptance_rounds(job), "estimate", acc->estimate,
			   "estimate_s", "rounds", (double)acc->estimates.rounds_ns / 1e9,
			   "suspects", (double)acc->estimates.suspects_ns / 1e9,
			   "bad_port", (double)acc->estimates.bad_port_ns / 1e9,
			   "seconds", (double)acc->took_ns / 1e9, "rails", rails_json(acc),
			   "nodes", nodes_json(job, &names, tally), "faults",
			   faults_json(acc, &names), "drain", drain_json(acc, &names));
	names_free(&names);
	free(tally);
	return json_pack("{s:o}", "acceptance", record);
}
