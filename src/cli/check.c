/*
 * check.c - railgauge check: rules over the nodes of a job and over records, a node's health, and a
 * cluster as it was at acceptance.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check.h"
#include "cli/check_judge.h"
#include "cli/check_print.h"
#include "cli/check_records.h"
#include "cli/check_state.h"
#include "cli/gather.h"
#include "cli/topo_nodes.h"
#include "report/files.h"
#include "util/err.h"
#include "util/opt.h"

#define STATE "/var/lib/railgauge/check.json"

struct check_values {
	bool node, json;
	const char *rules, *against, *state, *xml, *sysfs, *soft;
};

#define AT(member) .offset = offsetof(struct check_values, member)
static struct opt rows[] = {
	{ .name = "rules", .type = OPT_TEXT, AT(rules), .arg = "FILE",
	  .help = "judge by the rules of a file; about nodes: this one, or in a job all; about "
		  "results: the records of FILE|DIR" },
	{ .name = "node", .type = OPT_FLAG, AT(node),
	  .help = "judge this node, without MPI, also by the errors since the last time; without "
		  "--rules: ports up, rates equal, pcie full, errors <= 0" },
	{ .name = "against", .type = OPT_TEXT, AT(against), .arg = "DIR",
	  .help = "judge by what a directory has kept at acceptance; without --rules: topology "
		  "same, errors <= 0, and with records medians within 5%" },
	{ .name = "state", .type = OPT_TEXT, AT(state), .arg = "FILE", .standard = STATE,
	  .help = "with --node, the error counters of the last time" },
	{ .name = "json", .type = OPT_FLAG, AT(json),
	  .help = "print one JSON object (RAILGAUGE_JSON, a file name of the benchmarks, is not "
		  "read)" },
	{ .name = "xml", .type = OPT_TEXT, AT(xml), .arg = "FILE",
	  .help = "judge a saved topology instead of this machine (railgauge topo --save)" },
	{ .name = "sysfs", .type = OPT_TEXT, AT(sysfs), .arg = "DIR",
	  .help = "read error counters of ports below this directory instead of /sys" },
	{ .name = "soft", .type = OPT_TEXT, AT(soft) },		/* completed by topo_soft_option */
	{ .name = NULL },
};

/* ---- Rules ----------------------------------------------------------------------------------- */

static int rules_choose(const struct check_values *v, bool records, struct check_rules *rules)
{
	if (v->rules)
		return check_rules_read(v->rules, rules);
	if (v->node)
		return check_rules_parse("--node", "ports up\nrates equal\npcie full\nerrors <= 0",
					 rules);
	return check_rules_parse("--against", records ?
				 "topology same\nerrors <= 0\nmedians within 5%" :
				 "topology same\nerrors <= 0", rules);
}

enum source { FROM_NODES, FROM_BEFORE, FROM_KEPT, FROM_RECORDS };

static enum source source_of(enum check_kind kind)
{
	switch (kind) {
	case CHECK_ERRORS:
		return FROM_BEFORE;
	case CHECK_TOPOLOGY:
		return FROM_KEPT;
	case CHECK_STRIPE:
	case CHECK_RAIL:
	case CHECK_MEDIANS:
		return FROM_RECORDS;
	default:
		return FROM_NODES;
	}
}

/* Does each rule have what it judges by? */
static int sources_check(const struct check_rules *rules, const struct check_values *v, bool records)
{
	for (int i = 0; i < rules->count; i++) {
		const struct check_rule *rule = &rules->rule[i];
		const enum source source = source_of(rule->kind);
		const char *lacks = NULL;

		if (source == FROM_BEFORE && !v->node && !v->against)
			lacks = "--node or --against DIR, for earlier counters";
		if ((source == FROM_KEPT || rule->kind == CHECK_MEDIANS) && !v->against)
			lacks = "--against DIR";
		else if (source == FROM_RECORDS && !records)
			lacks = "records: FILE|DIR... of --json";
		if (!lacks)
			continue;
		rg_error("rule '%s' needs %s", rule->text, lacks);
		return -EINVAL;
	}
	return 0;
}

static bool rules_need_nodes(const struct check_rules *rules)
{
	for (int i = 0; i < rules->count; i++)
		if (source_of(rules->rule[i].kind) != FROM_RECORDS)
			return true;
	return false;
}

/* ---- Facts ------------------------------------------------------------------------------------- */

/* Records that have been read; the struct check_facts borrows them. */
struct material {
	json_t *nodes, *before, *kept, *measured;
};

static void material_free(struct material *m)
{
	json_decref(m->nodes);
	json_decref(m->before);
	json_decref(m->kept);
	json_decref(m->measured);
}

static int nodes_read(const struct check_values *v, struct material *m)
{
	const struct topo_request request = { .xml = v->xml, .soft = v->soft, .sysfs = v->sysfs,
					      .gpus = v->against != NULL };

	return v->node ? topo_node_read(&request, &m->nodes) :
		topo_nodes_read(&request, false, &m->nodes);
}

static int records_read(const struct check_values *v, char **path, int count, struct material *m)
{
	struct report_files now, kept;
	char *dir = (char *)v->against;
	int rc = report_files_read(path, count, &now);

	if (rc)
		return rc;
	if (now.damaged)
		rc = -EINVAL;
	else if (!v->against)
		rc = check_measure(&now, NULL, &m->measured);
	else if (!(rc = report_files_read(&dir, 1, &kept))) {
		rc = kept.damaged ? -EINVAL : check_measure(&now, &kept, &m->measured);
		report_files_free(&kept);
	}
	report_files_free(&now);
	return rc;
}

/* Are there values for each rule about records? */
static int measured_check(const struct check_rules *rules, const json_t *measured)
{
	static const struct { enum check_kind kind; const char *member, *lacks; } each[] = {
		{ CHECK_STRIPE, "stripe", "a bandwidth of single and stripe over several rails "
					  "(rg_bw --over single,stripe --json FILE)" },
		{ CHECK_RAIL, "rail", "nodes' rails (rg_pairs --json FILE)" },
		{ CHECK_MEDIANS, "medians", "a job that was also measured at acceptance, with the same "
					    "options" },
	};

	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		if (check_rules_have(rules, each[i].kind) &&
		    !json_array_size(json_object_get(measured, each[i].member))) {
			rg_error("the records have no rows of %s", each[i].lacks);
			return -EINVAL;
		}
	return 0;
}

/* Counters at acceptance. */
static json_t *kept_counters(const json_t *kept)
{
	json_t *nodes = json_array(), *topo, *counters;
	size_t i;

	json_array_foreach(kept, i, topo)
		json_array_append_new(nodes, json_pack("{s:O}", "topo", topo));
	counters = check_counters(nodes);
	json_decref(nodes);
	return counters;
}

/*
 * Read everything.  Ranks of a job other than the first only bring their node: they read no file, and
 * m->nodes is NULL.
 */
static int material_read(const struct check_values *v, const struct check_rules *rules, char **path,
			 int count, struct material *m)
{
	const bool first = v->node || gather_ranks() == 1 || rg_launch_rank() == 0;
	int rc = 0;

	if (rules_need_nodes(rules))
		rc = nodes_read(v, m);
	if (rc || !first)
		return rc;
	if (v->node)
		rc = check_state_read(v->state, &m->before);
	if (v->against && !rc)
		rc = check_kept_read(v->against, &m->kept);
	if (v->against && !rc)
		m->before = kept_counters(m->kept);
	if (count && !rc)
		rc = records_read(v, path, count, m);
	return rc || !count ? rc : measured_check(rules, m->measured);
}

/* ---- The command ---------------------------------------------------------------------------------- */

/* Judge and print.  The exit code. */
static int judge(const struct check_values *v, const struct check_rules *rules,
		 const struct material *m)
{
	const struct check_facts facts = { m->nodes, m->before, m->kept, m->measured };
	json_t *result = check_judge(rules, &facts);
	const char *verdict = json_string_value(json_object_get(result, "verdict"));
	const bool failed = !verdict || !strcmp(verdict, "fail");
	int rc = 0;

	if (!result) {
		rg_error("check: no memory");
		return RG_EXIT_FAULT;
	}
	if (v->json)
		rc = check_print_json(result, stdout);
	else
		rc = check_print_text(result, stdout);
	json_decref(result);
	if (rc)
		return RG_EXIT_FAULT;
	return failed ? RG_EXIT_FAILED : RG_EXIT_OK;
}

static int check(const struct check_values *v, char **path, int count)
{
	struct material m = { NULL, NULL, NULL, NULL };
	struct check_rules rules;
	int rc = rules_choose(v, count > 0, &rules), status;

	if (!rc)
		rc = sources_check(&rules, v, count > 0);
	if (rc && !v->node)
		rg_let_rank_0_speak();
	if (!rc)
		rc = material_read(v, &rules, path, count, &m);
	status = topo_exit_code(rc);
	if (!rc && (v->node || rg_launch_rank() <= 0))
		status = judge(v, &rules, &m);
	if (!rc && v->node && m.nodes) {
		json_t *counters = check_counters(m.nodes);

		rc = check_state_write(v->state, counters);
		status = rc ? topo_exit_code(rc) : status;
		json_decref(counters);
	}
	material_free(&m);
	return status;
}

static int options_check(const struct check_values *v, bool records)
{
	if (!v->rules && !v->node && !v->against)
		rg_error("check: nothing to judge by (accepted: --rules FILE, --node or --against DIR)");
	else if (v->node && v->against)
		rg_error("--node: not with --against (accepted: one of them)");
	else if (v->node && records)
		rg_error("--node: no records (accepted: --rules FILE FILE|DIR..., without --node)");
	else
		return 0;
	return -EINVAL;
}

int cli_check(int argc, char **argv)
{
	static unsigned char origin[OPT_ROWS_MAX];
	static struct check_values values;
	static char notes[4096];
	struct opt_table table = { "Check", rows, &values, origin };
	struct opt_program program = {
		.name = "railgauge check", .operands = "[FILE|DIR]...",
		.summary = "Check the nodes of a job, a node's health, or records, by rules.",
		.tables = &table, .table_count = 1, .notes = notes,
	};
	int rc, first;

	rg_set_quiet(rg_launch_rank() > 0);
	/* RAILGAUGE_JSON names a file of the benchmarks, and may be set for them. */
	unsetenv("RAILGAUGE_JSON");
	topo_soft_option(rows);
	snprintf(notes, sizeof(notes), "%s\n\n%s", check_rules_help,
		 "Exit code: 0 no rule fails, 1 a rule fails, 3 wrong use or damaged input, 4 a fault.  "
		 "A rule that\nknows of nothing to judge is unknown, and fails nothing.\n\n"
		 "At acceptance: mpirun -N 1 railgauge topo --json >DIR/topo.json; benchmarks with "
		 "--json DIR/NAME.jsonl.\n"
		 "Slurm's HealthCheckProgram: railgauge check --node >/run/railgauge || scontrol update \\\n"
		 "  nodename=$(hostname -s) state=drain reason=\"$(tail -n 1 /run/railgauge)\"");
	rc = opt_parse(&program, argc, argv, &first);
	if (rc == 1)
		return RG_EXIT_OK;
	if (rc || options_check(&values, first < argc)) {
		rg_let_rank_0_speak();
		return RG_EXIT_USAGE;
	}
	/* Each node has a result of its own. */
	if (values.node)
		rg_set_quiet(false);
	return check(&values, argv + first, argc - first);
}
