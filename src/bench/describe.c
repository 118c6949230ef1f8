/* describe.c - the run record and the '#' lines: measurement, fabric and caveats. */
#include "bench/describe.h"
#include "bench/acceptance.h"
#include "bench/app.h"
#include "bench/buffers.h"
#include "bench/collective.h"
#include "bench/learned.h"
#include "bench/options_use.h"
#include "bench/preset.h"
#include "bench/ways.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "accept/rounds.h"
#include "util/text.h"
#include "util/units.h"

__attribute__((format(printf, 2, 3)))
static void add_line(json_t *lines, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	json_array_append_new(lines, report_string(text));
}

/* "Open MPI v4.1.4", "MPICH Version: 4.0.2": the first few words of a long text. */
static const char *library(char *text, size_t size)
{
	char whole[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;

	MPI_Get_library_version(whole, &length);
	whole[strcspn(whole, ",\n")] = '\0';
	rg_text_squeeze(whole);
	snprintf(text, size, "%.*s", (int)size - 1, whole);
	return text;
}

static const char *plural(int n)
{
	return n == 1 ? "" : "s";
}

/* ---- '#' lines ------------------------------------------------------------------------ */

static const char *fabric_label(const struct bench_job *job)
{
	if (job->where.fabric.rail_count == 0)
		return "";
	if (job->where.fabric.hardware)
		return "";
	return job->where.fabric.modelled ? " - a model in software, not hardware" :
		" - software, not hardware";
}

/* The medium of the MPI library's messages on one host, if it can be known. */
static const char *native_medium(void)
{
	static const char *const told[] = {"OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl",
					   "UCX_TLS", "UCX_NET_DEVICES", "FI_PROVIDER"};

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (getenv(told[i]))
			return "what the environment told the library to use";
	return "shared memory";
}

void describe_fabric(const struct bench_job *job, char *text, size_t size)
{
	if (job->where.fabric.rail_count)
		snprintf(text, size, "%s%s", job->where.fabric.text, fabric_label(job));
	else if (job->where.host_count == 1)
		snprintf(text, size, "no rails: native messages on one host, through %s",
			 native_medium());
	else
		snprintf(text, size, "no rails: native messages between %d hosts",
			 job->where.host_count);
}

static void ranks_line(const struct bench_job *job, char *text, size_t size)
{
	int n = job->b.size;

	if (job->where.host_count == 1 && job->where.node_count > 1)
		snprintf(text, size, "%d rank%s on one host, standing for %d virtual nodes", n,
			 plural(n), job->where.node_count);
	else
		snprintf(text, size, "%d rank%s on %d host%s", n, plural(n), job->where.host_count,
			 plural(job->where.host_count));
}

static void pairs_line(const struct bench_job *job, char *text, size_t size)
{
	snprintf(text, size, "%d pair%s at once:", job->where.pair_count,
		 plural(job->where.pair_count));
	for (int p = 0; p < job->where.pair_count; p++) {
		if (p == 8) {
			rg_text_add(text, size, " ...");
			break;
		}
		rg_text_add(text, size, " %d-%d",
			 job->where.pair[p].rank[0], job->where.pair[p].rank[1]);
	}
}

static void way_line(const struct bench_job *job, const struct bench_column *way, json_t *lines)
{
	char version[128], extra[256];
	const struct opt_table *table;
	const struct opt_choice *c = options_find(job, "over", &table)->choices;

	while (c->value != (int)way->id)
		c++;
	if (way->id == RAILMPI_NATIVE)
		add_line(lines, "native: %s by itself%s%s%s", library(version, sizeof(version)),
			 job->where.host_count == 1 ? ", through " : "",
			 job->where.host_count == 1 ? native_medium() : "",
			 way->foreign ? ": not this fabric" : "");
	else if (job->got.acceptance)
		add_line(lines, "%s: RDMA writes on %s, a queue pair for each cell", way->name,
			 way_rail(job, way));
	else if (job->def->carrier)
		add_line(lines, "%s: %s", way->name, c->help);
	else {
		options_of_communicator(job, extra, sizeof(extra));
		if (way->settings)
			rg_text_add(extra, sizeof(extra), ",%s", way->settings);
		add_line(lines, "%s: %s%s%s%s", way->name, c->help ? c->help : "",
			 *extra ? " (" : "", *extra ? extra + 1 : "", *extra ? ")" : "");
	}
}

static bool has_window(const struct bench_job *job)
{
	return job->def->metric != REPORT_LATENCY && job->def->layout != BENCH_ALL &&
	       !app_is(job) && !job->def->carrier;
}

/* A paper's values appear in the lines above the table, and nowhere else. */
static void experiment_lines(const struct bench_job *job, json_t *lines)
{
	char text[EXPERIMENT_TEXT];

	if (!job->opt.experiment)
		return;
	add_line(lines, "experiment: %s, %s", job->opt.experiment->id,
		 experiment_text(job->opt.experiment, text, sizeof(text)));
	if (*preset_changes(job, text, sizeof(text)))
		add_line(lines, "not as preset: %s", text);
	add_line(lines, "quoted: %s", experiment_quoted(job->opt.experiment, text, sizeof(text)));
}

/* Does the fabric map buffers?  The software HCA does; a carrier registers its own. */
static bool maps_buffers(const struct bench_job *job)
{
	const struct opt_table *table;
	const struct opt *row = options_find(job, "map-buffers", &table);

	return row && OPT_VALUE(table, row, bool) && job->where.fabric.nodes && !job->def->carrier;
}

static json_t *notes(const struct bench_job *job)
{
	json_t *lines = json_array();
	char text[512], pairs[256] = "";

	experiment_lines(job, lines);
	if (app_is(job))
		add_line(lines, "%s", job->def->app->remark);
	describe_fabric(job, text, sizeof(text));
	add_line(lines, "fabric: %s", text);
	if (*job->where.fabric.doubt)
		add_line(lines, "model: %s", job->where.fabric.doubt);
	if (*job->where.fabric.threshold)
		add_line(lines, "threshold %s", job->where.fabric.threshold);
	ranks_line(job, text, sizeof(text));
	if (job->def->layout == BENCH_PAIRS)
		pairs_line(job, pairs, sizeof(pairs));
	if (job->def->layout == BENCH_STAR)
		snprintf(pairs, sizeof(pairs), "rank 0 is the master of 1 to %d slaves",
			 job->where.pair_count);
	if (acceptance_is(job) && acceptance_rounds(job))
		snprintf(pairs, sizeof(pairs), "%d random pairings of %d nodes, both ways, %d at once",
			 acceptance_rounds(job), job->where.node_count, job->where.node_count / 2);
	else if (job->def->layout == BENCH_TOURNAMENT)
		snprintf(pairs, sizeof(pairs), "every pair of %d nodes once, both ways, in %d "
			 "round%s, %d at once", job->where.node_count,
			 rounds_count(job->where.node_count),
			 plural(rounds_count(job->where.node_count)), job->where.node_count / 2);
	add_line(lines, "ranks: %s%s%s", text, *pairs ? "; " : "", pairs);
	for (int w = 0; w < job->where.way_count && !job->def->variants; w++)
		way_line(job, &job->where.way[w], lines);
	if (job->def->carrier) {
		job->def->carrier->describe(text, sizeof(text));
		add_line(lines, "verbs: %s%s", text,
			 job->def->layout == BENCH_STAR ? "; values are the master's" :
			 job->where.pair_count > 1 && job->def->metric != REPORT_LATENCY ?
			 "; values are sums over all pairs" : "");
	}
	if (has_window(job))
		add_line(lines, "window: %llu messages%s", (unsigned long long)job->opt.window,
			 job->where.pair_count > 1 ? "; values are sums over all pairs" : "");
	if (collective_text(job))
		add_line(lines, "timing: %s", collective_text(job));
	if (!job->def->app)
		add_line(lines, "buffers: %s%s", buffers_text(job), maps_buffers(job) ?
			 "; peers map those that are received into (--map-buffers)" : "");
	if (job->where.oversubscribed)
		add_line(lines, "oversubscribed: more ranks than cores, which take turns; latency "
			 "and CPU-bound values say little");
	return lines;
}

static json_t *caption(const struct bench_job *job)
{
	json_t *lines = json_array();
	char text[512], version[128], pairs[64] = "", window[64] = "";

	ranks_line(job, text, sizeof(text));
	if (job->def->layout == BENCH_PAIRS)
		snprintf(pairs, sizeof(pairs), ", %d pair%s", job->where.pair_count,
			 plural(job->where.pair_count));
	if (has_window(job))
		snprintf(window, sizeof(window), ", window %llu",
			 (unsigned long long)job->opt.window);
	add_line(lines, "%s, %s%s%s%s", library(version, sizeof(version)), text, pairs, window,
		 job->where.oversubscribed ? ", oversubscribed" : "");
	describe_fabric(job, text, sizeof(text));
	add_line(lines, "%s", text);
	if (job->def->carrier) {
		job->def->carrier->describe(text, sizeof(text));
		add_line(lines, "%s", text);
	}
	return lines;
}

/* ---- Records -------------------------------------------------------------------------------- */

static json_t *options(const struct bench_job *job)
{
	static const char *const from[] = {
		[OPT_FROM_DEFAULT] = "default", [OPT_FROM_PRESET] = "experiment",
		[OPT_FROM_ENVIRONMENT] = "environment",
		[OPT_FROM_COMMAND_LINE] = "command line", [OPT_FROM_CALL] = "call",
	};
	json_t *all = json_object();

	for (int t = 0; t < job->opt.table_count; t++)
		opt_each(row, &job->opt.table[t]) {
			const struct opt_table *table = &job->opt.table[t];
			char text[1024];
			json_t *value = report_string(opt_text(table, row, text, sizeof(text)));

			json_object_set_new(all, row->name, json_pack("{s:o, s:s}", "value", value,
				"from", from[table->origin[row - table->rows]]));
		}
	return all;
}

static json_t *fabric(const struct bench_job *job)
{
	const struct railmpi_fabric *f = &job->where.fabric;
	json_t *rails = json_array();

	for (int i = 0; i < f->rail_count; i++)
		json_array_append_new(rails, json_pack("{s:s, s:I, s:i, s:b}",
			"name", f->rail[i].name,
			"rate_bytes_per_s", (json_int_t)f->rail[i].rate_bytes_per_s,
			"mtu_bytes", (int)f->rail[i].mtu_bytes,
			"polls_memory", (int)f->rail[i].polls_memory));
	return json_pack("{s:s, s:b, s:b, s:s, s:s, s:s, s:s, s:i, s:o}", "kind", f->kind,
			 "hardware", (int)f->hardware, "modelled", (int)f->modelled,
			 "text", f->text, "spec", f->spec, "doubt", f->doubt,
			 "threshold", f->threshold, "nodes", (int)f->nodes,
			 "rails", rails);
}

static json_t *cpu_list(const cpu_set_t *set)
{
	json_t *list = json_array();

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set))
			json_array_append_new(list, json_integer(cpu));
	return list;
}

static json_t *ranks(const struct bench_job *job)
{
	json_t *list = json_array();

	for (int i = 0; i < job->b.size; i++) {
		const struct bench_place *p = &job->where.place[i];

		json_array_append_new(list, json_pack("{s:i, s:o, s:i, s:o, s:o}", "rank", i,
			"host", report_string(p->host), "node", p->node, "cpus", cpu_list(&p->cpus),
			"cores", CPU_COUNT(&p->cores) ? cpu_list(&p->cores) : json_null()));
	}
	return list;
}

static json_t *pairs(const struct bench_job *job)
{
	json_t *list = json_array();

	for (int p = 0; p < job->where.pair_count; p++)
		json_array_append_new(list, json_pack("[i, i]", job->where.pair[p].rank[0],
						      job->where.pair[p].rank[1]));
	return list;
}

static json_t *foreign_ways(const struct bench_job *job)
{
	json_t *list = json_array();

	for (int w = 0; w < job->where.way_count; w++)
		if (job->where.way[w].foreign)
			json_array_append_new(list, json_string(job->where.way[w].name));
	return list;
}

json_t *describe_run(const struct bench_job *job, json_t *hosts)
{
	json_t *run = json_object();
	char version[128];

	json_object_set_new(run, "notes", notes(job));
	json_object_set_new(run, "caption", caption(job));
	json_object_set_new(run, "foreign_ways", foreign_ways(job));
	json_object_set_new(run, "mpi", report_string(library(version, sizeof(version))));
	json_object_set_new(run, "options", options(job));
	json_object_set_new(run, "fabric", fabric(job));
	json_object_set_new(run, "learned", learned_json(true));
	json_object_set_new(run, "oversubscribed", json_boolean(job->where.oversubscribed));
	json_object_set_new(run, "pairs", pairs(job));
	json_object_set_new(run, "ranks", ranks(job));
	if (job->opt.experiment)
		json_object_set_new(run, "experiment", experiment_record(job->opt.experiment));
	if (app_is(job))
		json_object_set_new(run, "app", app_describe(job));
	json_object_set_new(run, "hosts", hosts);
	json_object_set_new(run, "provenance", report_provenance(job->opt.argc, job->opt.argv));
	return run;
}
