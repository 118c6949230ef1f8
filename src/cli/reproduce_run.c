/*
 * reproduce_run.c - experiments of a paper, a launch each, compared with the paper's values.
 *
 * `--time` is split evenly over the cells of all tables as --time-cap, so that the total is known
 * in advance.  A cell whose single run is longer exceeds it.  A value is the median of its samples.
 */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/reproduce_run.h"
#include "cli/launch.h"
#include "util/err.h"
#include "report/citable.h"
#include "report/experiment.h"
#include "report/report.h"
#include "topo/topo.h"

#define START_NS UINT64_C(2000000000)	/* a launch without its cells, at most */
#define CAP_MAX_NS UINT64_C(1000000000)	/* cap of a cell: more improves no value */
#define CAP_MIN_NS UINT64_C(10000000)
enum {
	WARM_PERCENT = 10,		/* warm-up, in addition to the cap */
	HANGS_AFTER = 3,		/* limit: so many times the longest time, plus a minute */
	LIST_MAX = 256,			/* experiments of a paper */
};

/* ---- The plan -------------------------------------------------------------------------- */

struct plan {
	const struct experiment *run[LIST_MAX];
	int runs;
	uint64_t cells;			/* cells of all runs */
	uint64_t cap_ns;		/* cap of each cell */
};

/* Can memory be in another NUMA node than the rank? */
static bool is_numa(void)
{
	struct topo *t = NULL;
	bool answer = topo_open(TOPO_RAILS, &t) == 0 && t->numa_count > 1;

	topo_close(t);
	return answer;
}

/* The reason for not running the experiment, or NULL. */
static const char *left_out(const struct experiment *e)
{
	const char *buffers = json_string_value(json_object_get(e->options, "buffers"));

	if (buffers && strcmp(buffers, "far") == 0 && !is_numa())
		return "this machine has one NUMA node";
	/* NAS kernels have classes, and no rows to cut. */
	return json_object_get(e->options, "class") ?
		"it is timed as a whole and cannot be made shorter" : NULL;
}

static bool plan_make(const struct experiment_paper *p, uint64_t time_ns, struct plan *plan)
{
	uint64_t starts, least;

	*plan = (struct plan){ .runs = 0 };
	for (int i = 0; i < p->count && plan->runs < LIST_MAX; i++) {
		const struct experiment *e = &p->list[i];

		if (left_out(e))
			continue;
		plan->run[plan->runs++] = e;
		plan->cells += (uint64_t)e->cells;
	}
	starts = (uint64_t)plan->runs * START_NS;
	least = starts + plan->cells * CAP_MIN_NS * (100 + WARM_PERCENT) / 100;
	if (time_ns < least) {
		rg_error("reproduce: --time %" PRIu64 "s: too short for %d launches (accepted: %"
			 PRIu64 "s and more)", time_ns / 1000000000, plan->runs,
			 least / 1000000000 + 1);
		return false;
	}
	plan->cap_ns = CAP_MAX_NS;
	if (plan->cells)
		plan->cap_ns = (time_ns - starts) / plan->cells * 100 / (100 + WARM_PERCENT);
	if (plan->cap_ns > CAP_MAX_NS)
		plan->cap_ns = CAP_MAX_NS;
	return true;
}

/* The longest time of `launches` launches with so many cells. */
static uint64_t longest_ns(const struct plan *plan, uint64_t cells, int launches)
{
	return (uint64_t)launches * START_NS + cells * plan->cap_ns * (100 + WARM_PERCENT) / 100;
}

/* ---- Values ----------------------------------------------------------------------------- */

static void line(const struct experiment *e, const char *what, const char *paper,
		 const char *here, const char *unit, const char *ratio, const char *mark)
{
	char figure[EXPERIMENT_FIGURE];

	printf("%-6s %-20s %-36s %10s %10s %-6s %6s  %s\n", experiment_figure(e, figure), e->id,
	       what, paper, here, unit, ratio, mark);
}

/* A number with at least four digits and no exponent. */
static const char *number(double value, char *buf, size_t size)
{
	snprintf(buf, size, "%.*f", value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0, value);
	return buf;
}

static double value_of(const struct report_file *f, const char *way, double x)
{
	const struct report_row *row = report_file_row(f, way, x);

	return row ? row->stat[STATS_MEDIAN] : 0;
}

/* A way and its table: this record's, or another record's in the same directory. */
struct curve {
	const struct report_file *table;
	struct report_file other;
	const char *way;
};

static bool curve_open(struct curve *p, const char *text, const struct report_file *mine,
		       const char *folder)
{
	const char *space = strchr(text, ' ');
	char path[PATH_MAX];

	*p = (struct curve){ .table = mine, .way = space ? space + 1 : text };
	if (!space)
		return true;
	snprintf(path, sizeof(path), "%s/%.*s.jsonl", folder, (int)(space - text), text);
	if (access(path, R_OK) || report_read(path, &p->other))
		return false;
	p->table = &p->other;
	return true;
}

static void curve_close(struct curve *p)
{
	if (p->table == &p->other)
		report_file_free(&p->other);
}

/*
 * The largest advantage over the rows of both, in per cent of the other's time or bandwidth;
 * negative if `better` is better in no row; NAN: no common row.
 */
static double most(const struct curve *better, const struct curve *than)
{
	double best = NAN;

	report_each(row, than->table) {
		double b = value_of(better->table, better->way, row->x),
		       t = value_of(than->table, than->way, row->x);
		double share = than->table->metric == REPORT_LATENCY ? 1 - b / t : b / t - 1;

		if (b > 0 && t > 0 && !(share <= best))
			best = share;
	}
	return best * 100;
}

static double related(const struct experiment_relation *r, const struct report_file *mine,
		      const char *folder)
{
	struct curve better, than;
	double value = NAN;

	if (curve_open(&better, r->better, mine, folder)) {
		if (curve_open(&than, r->than, mine, folder)) {
			value = most(&better, &than);
			curve_close(&than);
		}
		curve_close(&better);
	}
	return value;
}

/* A quoted value and, where the table has its row, ours. */
static void quoted_line(const struct experiment *e, size_t i, const struct report_file *f,
			const char *folder)
{
	const json_t *q = json_array_get(e->quoted, i);
	char paper[32], here[32] = "-", ratio[32] = "-", key[64], said[96], why[CITABLE_TEXT];
	struct experiment_relation relation;
	struct experiment_point point;
	const char *mark = "not compared";
	const double value = json_number_value(json_object_get(q, "value"));
	bool is_point = experiment_point(e->quoted, i, &point);

	snprintf(paper, sizeof(paper), "%.10g", value);
	if (is_point || experiment_relation(e->quoted, i, &relation)) {
		double ours = is_point ? value_of(f, point.way, point.x) *
				experiment_scale(f->metric, point.unit) :
				related(&relation, f, folder);

		mark = "predicted";
		if (is_point ? ours > 0 : !isnan(ours)) {
			number(ours, here, sizeof(here));
			snprintf(ratio, sizeof(ratio), "%.3f", ours / value);
		} else {
			mark = "no such row was measured";
		}
	}
	if (point.calibrated) {
		snprintf(key, sizeof(key), "calibrated: %.32s%s", point.calibrated,
			 strcmp(here, "-") == 0 ? "; not compared" : "");
		mark = key;
	}
	snprintf(said, sizeof(said), "%s%s", mark, strcmp(ratio, "-") &&
		 *citable_text(&f->citable, CITABLE_DOUBTFUL, why, sizeof(why)) ? "; doubtful" : "");
	line(e, json_string_value(json_object_get(q, "what")), paper, here,
	     json_string_value(json_object_get(q, "unit")), ratio, said);
}

/*
 * Values of each way, at the first row or at the last, for an experiment without values of the
 * paper.
 */
static void own_lines(const struct experiment *e, const struct report_file *f)
{
	const json_t *ways = json_object_get(f->run, "ways"), *way;
	double x = f->row[f->metric == REPORT_LATENCY ? 0 : f->row_count - 1].x;
	size_t i;

	json_array_foreach(ways, i, way) {
		double ours = value_of(f, json_string_value(way), x);
		char what[64], here[32];

		snprintf(what, sizeof(what), "%.20s at %.10g", json_string_value(way), x);
		if (ours > 0)
			line(e, what, "-", number(ours, here, sizeof(here)), report_metric_unit(f->metric), "-",
			     "no value in the paper");
	}
}

/* The reasons for which the machine may have missed the model's values, by the record itself. */
static void doubt_line(const struct experiment *e, const struct report_file *f)
{
	char why[2 * CITABLE_TEXT];

	if (*citable_text(&f->citable, CITABLE_DOUBTFUL, why, sizeof(why)))
		printf("# %s: doubtful: %s\n", e->id, why);
}

static bool compare(const struct experiment *e, const char *record, const char *folder)
{
	struct report_file f;
	bool whole;

	if (report_read(record, &f))
		return false;
	whole = f.end && f.row_count > 0;
	if (whole && f.row_count != (size_t)e->cells)
		printf("# %s: its table has %zu cells, and the paper's file says %d\n", e->id,
		       f.row_count, e->cells);
	for (size_t i = 0; whole && i < json_array_size(e->quoted); i++)
		quoted_line(e, i, &f, folder);
	if (whole && !json_array_size(e->quoted))
		own_lines(e, &f);
	if (whole)
		doubt_line(e, &f);
	report_file_free(&f);
	return whole;
}

/* ---- Launches ---------------------------------------------------------------------------- */

enum outcome { RUN_WELL, RUN_FAILED, RUN_NONE };	/* none: no other run would work either */

static enum outcome run(const struct experiment *e, const struct plan *plan,
		const struct cli_reproduction *r)
{
	char program[PATH_MAX], record[PATH_MAX], log[PATH_MAX], cap[32];
	const char *const argv[] = {
		program, "--experiment", e->id, "--time-cap", cap, "--json", record, NULL,
	};
	const struct cli_launch launch = {
		.launcher = r->launcher, .ranks = e->ranks[0], .argv = argv, .log = log,
		.limit_s = (unsigned)(HANGS_AFTER * longest_ns(plan, (uint64_t)e->cells, 1) /
				      1000000000) + 60,
	};
	int rc;

	snprintf(record, sizeof(record), "%s/%s.jsonl", r->out, e->id);
	snprintf(log, sizeof(log), "%s/%s.txt", r->out, e->id);
	snprintf(cap, sizeof(cap), "%.3fs", (double)plan->cap_ns / 1e9);
	if (cli_suite_find(e->program, program, sizeof(program))) {
		rg_error("%s: %s is not next to this command: the installation is incomplete",
			 e->id, e->program);
		return RUN_NONE;
	}
	remove(record);
	rc = cli_launch(&launch);
	if (rc == 0 && compare(e, record, r->out))
		return RUN_WELL;
	if (rc == 127) {
		rg_error("--launcher %s: cannot be started (accepted: a command that takes -np N, "
			 "as mpirun does)", r->launcher);
		return RUN_NONE;
	}
	if (rc < 0)
		rg_error("%s: %s; what it printed is in %s", e->id, strerror(-rc), log);
	else
		rg_error("%s: exit code %d; what it printed is in %s", e->id, rc, log);
	return RUN_FAILED;
}

static int processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

static void heading(const struct experiment_paper *p, const struct plan *plan,
		    const struct cli_reproduction *r)
{
	printf("# %s (%s)\n", p->title, p->source);
	printf("# %d of %d experiments, about %.0f s: %" PRIu64 " cells of %.2f s; records and "
	       "texts: %s\n", plan->runs, p->count,
	       (double)longest_ns(plan, plan->cells, plan->runs) / 1e9, plan->cells,
	       (double)plan->cap_ns / 1e9, r->out);
	printf("# fabric: models of the paper's adapters on the software HCA, not hardware\n"
	       "# calibrated: this value of the paper, alone or with others, gave the model that key; "
	       "predicted: it gave none\n"
	       "# doubtful: this machine was too busy, or is too slow, for the model; a line says why\n");
	printf("%-6s %-20s %-36s %10s %10s %-6s %6s\n", "figure", "experiment", "what", "paper",
	       "here", "unit", "ratio");
}

static void left_out_lines(const struct experiment_paper *p)
{
	char command[EXPERIMENT_TEXT];

	for (int i = 0; i < p->count; i++)
		if (left_out(&p->list[i]))
			printf("# left out: %s: %s: %s\n", p->list[i].id, left_out(&p->list[i]),
			       experiment_command(&p->list[i], 0, command, sizeof(command)));
}

/* Remarks on single experiments. */
static void remarks(const struct plan *plan)
{
	const int there = processors();

	for (int i = 0; i < plan->runs; i++) {
		const struct experiment *e = plan->run[i];

		if (e->differs)
			printf("# %s: differs: %s\n", e->id, e->differs);
		if (e->ranks[0] > there)
			printf("# %s: %d ranks on %d processors\n", e->id, e->ranks[0], there);
	}
}

int cli_reproduction_run(const struct experiment_paper *p, const struct cli_reproduction *r)
{
	struct plan plan;
	enum outcome o = RUN_WELL;
	int failed = 0;

	if (!plan_make(p, r->time_ns, &plan))
		return RG_EXIT_USAGE;
	heading(p, &plan, r);
	for (int i = 0; i < plan.runs; i++) {
		fflush(stdout);
		o = run(plan.run[i], &plan, r);
		if (o == RUN_NONE)
			return RG_EXIT_USAGE;
		failed += o == RUN_FAILED;
	}
	remarks(&plan);
	left_out_lines(p);
	if (failed)
		printf("# failed: %d of %d\n", failed, plan.runs);
	return failed ? RG_EXIT_FAULT : RG_EXIT_OK;
}
