/*
 * topo.c - railgauge topo: the rails of a machine, the devices and cores near them, the rail
 * that each rank would use, and warnings.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/topo.h"
#include "util/err.h"
#include "util/opt.h"
#include "cli/topo_nodes.h"
#include "cli/topo_read.h"

enum { RANKS_MAX = 4096, JOB_MAX = 1 << 24, NODES = 8 };

struct topo_values {
	bool json;
	const char *xml, *save, *soft, *sysfs;
	uint64_t ranks, job;
};

#define AT(member) .offset = offsetof(struct topo_values, member)
static struct opt rows[] = {
	{ .name = "ranks", .type = OPT_COUNT, AT(ranks), .arg = "N", .standard = "auto",
	  .special = "auto", .min = 1, .max = RANKS_MAX,
	  .help = "show the rails of N local ranks, each bound to its share of the cores, and what "
		  "their connections need; auto: one per core, at most 8" },
	{ .name = "job", .type = OPT_COUNT, AT(job), .arg = "N", .standard = "auto",
	  .special = "auto", .min = 2, .max = JOB_MAX,
	  .help = "ranks of the job whose needs --ranks shows; auto: eight nodes" },
	{ .name = "xml", .type = OPT_TEXT, AT(xml), .arg = "FILE",
	  .help = "show a saved topology instead of this machine: a file of --save, or of lstopo "
		  "--of xml, which has no rates" },
	{ .name = "save", .type = OPT_TEXT, AT(save), .arg = "FILE",
	  .help = "also write this machine's topology, with its ports and links, for --xml" },
	{ .name = "json", .type = OPT_FLAG, AT(json),
	  .help = "print one JSON object (RAILGAUGE_JSON, a file name of the benchmarks, is not "
		  "read)" },
	{ .name = "sysfs", .type = OPT_TEXT, AT(sysfs), .arg = "DIR",
	  .help = "read error counters of ports below this directory instead of /sys" },
	{ .name = "soft", .type = OPT_TEXT, AT(soft) },		/* completed by topo_soft_option */
	{ .name = NULL },
};

/* ---- All of it ---------------------------------------------------------- */

/* Saving changes the topology. */
static int report_save(struct topo_report *r, const char *path)
{
	int rc = 0;

	for (int i = 0; i < r->rail_count && !rc; i++) {
		const char *device = r->rail[i].spot.name;

		if (topo_is_saved(r->topo, device))
			rc = topo_port_note(r->topo, device, &r->rail[i].port);
		else if (!i || strcmp(device, r->rail[i - 1].spot.name))
			rg_warn("--save: hwloc knows no device %s, so it is left out", device);
	}
	return rc ? rc : topo_save(r->topo, path);
}

/*
 * Is the option on the command line?  RAILGAUGE_SOFT, set for the transport, is no contradiction.
 */
static bool is_on_line(const struct opt_table *t, const char *name)
{
	opt_each(row, t)
		if (!strcmp(row->name, name))
			return t->origin[row - t->rows] == OPT_FROM_COMMAND_LINE;
	return false;
}

static int options_check(const struct opt_table *t, const struct topo_values *v)
{
	if (v->xml && v->save)
		rg_error("--save: not with --xml (accepted: alone, of this machine)");
	else if (v->xml && is_on_line(t, "soft"))
		rg_error("--soft: not with --xml (accepted: alone, on this machine)");
	else
		return 0;
	return -EINVAL;
}

/* Print this machine, or in a job all of its nodes, at rank 0.  The exit code. */
static int show(const struct topo_values *v, const struct topo_request *q)
{
	json_t *nodes = NULL;
	int rc = topo_nodes_read(q, !v->json, &nodes), code;

	if (!rc && nodes)
		rc = v->json ? topo_nodes_print_json(nodes, stdout) :
			       topo_nodes_print_text(nodes, stdout);
	code = rc ? topo_exit_code(rc) : topo_nodes_failed(nodes);
	json_decref(nodes);
	return code;
}

static int save(const struct topo_values *v, const struct topo_request *q)
{
	struct topo_report report = { .topo = NULL };
	int rc = topo_report_make(&report, q);

	if (!rc)
		rc = report_save(&report, v->save);
	topo_report_free(&report);
	return rc;
}

int cli_topo(int argc, char **argv)
{
	static unsigned char origin[OPT_ROWS_MAX];
	static struct topo_values values;
	struct opt_table table = { "Topology", rows, &values, origin };
	struct opt_program program = {
		.name = "railgauge topo",
		.summary = "Show the rails of a machine, the devices and cores near them, and their "
			   "limits.",
		.tables = &table, .table_count = 1,
		.notes = "Paths: X itself; PIX at most one PCIe bridge or switch; PXB several; PHB "
			 "the host bridge, in one NUMA node; NODE within a package; SYS between "
			 "packages (once SOC); - not known.\n\n"
			 "Started by mpirun or srun, one report of all nodes: identical ones as one, "
			 "and where each\nother one differs from most, as in mpirun -N 1 railgauge topo",
	};
	struct topo_request request = { .gpus = true };
	int rc, first;

	rg_set_quiet(rg_launch_rank() > 0);
	/* RAILGAUGE_JSON names a file of the benchmarks, and may be set for them. */
	unsetenv("RAILGAUGE_JSON");
	topo_soft_option(rows);
	rc = opt_parse(&program, argc, argv, &first);
	if (rc == 1)
		return RG_EXIT_OK;
	if (rc || options_check(&table, &values)) {
		rg_let_rank_0_speak();
		return RG_EXIT_USAGE;
	}
	request.xml = values.xml;
	request.soft = values.soft;
	request.sysfs = values.sysfs;
	request.ranks = values.ranks == OPT_SPECIAL ? TOPO_RANKS_AUTO : (int)values.ranks;
	if (values.ranks != OPT_SPECIAL)
		request.job = (unsigned)(values.job == OPT_SPECIAL ? NODES * values.ranks : values.job);
	rc = show(&values, &request);
	return rc || !values.save ? rc : topo_exit_code(save(&values, &request));
}
