/*
 * run.c - railgauge run: launches of the suite's programs, or of any MPI program, in turns; in a
 * directory that a later call goes on with.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/run.h"
#include "cli/run_journal.h"
#include "cli/run_launches.h"
#include "cli/run_settings.h"
#include "cli/run_summary.h"
#include "util/err.h"
#include "util/opt.h"

/* ---- What will happen -------------------------------------------------------------------- */

static void estimate_print(const struct run_plan *p, double left_s, int finished, const char *dir)
{
	int rows = 0;

	for (int i = 0; i < p->count; i++)
		rows += p->program[p->item[i].program].rows;
	printf("# %d launches, %d of each program%s", p->count, p->launches,
	       run_plan_is_unknown(p) ? " and way" : p->builds > 1 ? " and build" : "");
	if (finished)
		printf("; %d are finished", finished);
	if (!run_plan_is_unknown(p))
		printf("; at most %.0f s: %d rows of %.3g s", ceil(left_s), rows,
		       (double)p->cap_ns / 1e9);
	printf("; seed %lld\n# records, samples and texts: %s\n", (long long)p->seed, dir);
	fflush(stdout);
}

static int commands_print(const struct run_plan *p, const struct run_paths *paths, const char *dir)
{
	for (int i = 0; i < p->count; i++) {
		char **words = run_command(p, paths, &p->item[i], dir);
		char *text = words ? run_command_text(p, words) : NULL;

		if (text)
			puts(text);
		run_command_free(words);
		if (!text)
			return -ENOMEM;
		free(text);
	}
	return 0;
}

static int dry_run(const struct run_plan *p, const struct run_paths *paths, const char *dir)
{
	double sum = 0;

	for (int i = 0; i < p->count; i++)
		sum += (double)run_item_ns(p, &p->item[i]) / 1e9;
	estimate_print(p, sum, 0, dir);
	return commands_print(p, paths, dir) ? RG_EXIT_FAULT : RG_EXIT_OK;
}

/* ---- A campaign -------------------------------------------------------------------------- */

static int launches_run(const struct run_plan *p, const struct run_paths *paths,
			struct run_journal *j)
{
	struct run_launches r;
	int rc = run_launches_open(&r, p, paths, j), summary;

	if (rc) {
		run_launches_free(&r);
		return RG_EXIT_FAULT;
	}
	estimate_print(p, run_launches_left_s(&r), r.finished, j->dir);
	rc = run_launches_all(&r);
	if (!rc && !r.interrupted && run_plan_is_unknown(p))
		run_launches_ledger(&r);
	summary = run_summary(&r);
	if (r.interrupted)
		rg_error("interrupted: %d of %d launches are finished; railgauge run --out %s goes on",
			 r.finished, p->count, j->dir);
	else if (!rc && r.failed)
		rg_error("%d of %d launches failed; railgauge run --out %s tries them again", r.failed,
			 p->count, j->dir);
	rc = rc == -ENOENT ? RG_EXIT_USAGE :
		rc || summary || r.interrupted || r.failed ? RG_EXIT_FAULT : RG_EXIT_OK;
	run_launches_free(&r);
	return rc;
}

/* "2026-11-28T02:30:00Z" */
static json_t *time_text(void)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[32];

	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(text);
}

/* The record of the campaign that goes on, or of a new one. */
static json_t *header_make(const struct opt_table *t, char *const *argv, const json_t *before,
			   const char *dir)
{
	struct run_settings s;
	json_t *header = NULL;

	if (before)
		return run_settings_again(t, argv, before, dir, &header) ? NULL : header;
	if (run_settings_fill(t, argv, &s))
		return NULL;
	header = run_header(&s);
	if (header)
		json_object_set_new(header, "started", time_text());
	return header;
}

static int plan_open(json_t *header, const char *dir, struct run_plan *plan,
		     struct run_paths *paths)
{
	const char *why = "";
	int rc = run_plan_make(header, plan, &why);

	if (rc) {
		rg_error("%s/" CAMPAIGN_JOURNAL ":1: damaged: %s", dir,
			 rc == -ENOMEM ? "no memory" : why);
		return rc;
	}
	rc = run_paths_find(plan, paths);
	if (rc)
		run_plan_free(plan);
	return rc;
}

static int dry(const struct opt_table *t, char *const *argv, const char *dir)
{
	struct campaign before = { .dir = NULL };
	struct run_paths paths;
	struct run_plan plan = { .header = NULL };
	json_t *header;
	int rc = campaign_exists(dir) ? campaign_read(dir, &before) : 0;

	header = rc ? NULL : header_make(t, argv, before.plan, dir);
	rc = header ? plan_open(header, dir, &plan, &paths) : -EINVAL;
	if (!rc) {
		rc = dry_run(&plan, &paths, dir);
		run_paths_free(&paths);
		run_plan_free(&plan);
	}
	campaign_free(&before);
	return rc < 0 ? RG_EXIT_USAGE : rc;
}

static int campaign_run(const struct opt_table *t, char *const *argv, const char *dir)
{
	struct run_paths paths;
	struct run_plan plan = { .header = NULL };
	struct run_journal j;
	json_t *header;
	int rc = run_journal_open(dir, &j);
	bool anew;

	if (rc)
		return RG_EXIT_USAGE;
	anew = !j.campaign.dir || (run_settings_are_given(t, argv) && run_journal_is_unused(&j));
	header = header_make(t, argv, anew ? NULL : j.campaign.plan, j.dir);
	rc = header ? plan_open(header, j.dir, &plan, &paths) : -EINVAL;
	if (!rc && anew)
		rc = run_journal_begin(&j, plan.header);
	if (!rc)
		rc = launches_run(&plan, &paths, &j);
	else
		rc = RG_EXIT_USAGE;
	if (plan.header) {
		run_paths_free(&paths);
		run_plan_free(&plan);
	}
	run_journal_close(&j);
	return rc;
}

/* "run-quick", "run-a.out" */
static const char *default_dir(const struct run_values *v, char *const *argv, char *buf, size_t size)
{
	if (v->out)
		return v->out;
	snprintf(buf, size, "run-%s", argv ? run_base_name(argv[0]) : run_presets[v->preset].name);
	return buf;
}

int cli_run(int argc, char **argv)
{
	static unsigned char origin[OPT_ROWS_MAX];
	static struct run_values values;
	struct opt_table table = { "Campaign", run_rows(), &values, origin };
	struct opt_program program = {
		.name = "railgauge run", .operands = "[[--] PROGRAM [ARGUMENT]...]",
		.first_operand_ends = true,
		.summary = "Run a campaign: many launches of programs in turns, whose summary has medians "
			   "over launches; or tell whether several rails make an MPI program faster.",
		.tables = &table, .table_count = 1,
		.notes = "Launches come in rounds: one of each program and build, in a random order, whose "
			 "seed is\nrecorded.  Inside a launch the ways take turns.  The directory has the "
			 "journal\n(campaign.jsonl), record, samples and text of each launch (records/), and "
			 "summary.txt,\nwhich Ctrl-C leaves, too.  A campaign that was ended by anything goes "
			 "on with\nrailgauge run --out DIR: what is finished is not measured again, a launch "
			 "without a\nwhole record is repeated.  Options that are not given are then the "
			 "campaign's.\n\n"
			 "--with base= --with deep='--qps 4' --with tcp='UCX_TLS=tcp' compares settings: "
			 "variables,\nthen options of programs; --with old=/opt/railgauge --with new=build "
			 "compares builds.\nrailgauge compare DIR:old DIR:new judges the difference.\n\n"
			 "PROGRAM is launched by railgauge exec over each way of --over.  The answer is yes if "
			 "the\n95 % interval of what stripe saves of single's wall time, launch by launch, is "
			 "above 0.",
	};
	int first, rc = opt_parse(&program, argc, argv, &first);
	char dir[256], *const *words;

	if (rc)
		return rc == 1 ? RG_EXIT_OK : RG_EXIT_USAGE;
	words = first < argc ? argv + first : NULL;
	if (values.dry_run)
		return dry(&table, words, default_dir(&values, words, dir, sizeof(dir)));
	return campaign_run(&table, words, default_dir(&values, words, dir, sizeof(dir)));
}
