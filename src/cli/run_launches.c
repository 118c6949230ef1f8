/* run_launches.c - the launches of a campaign. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/launch.h"
#include "cli/run_launches.h"
#include "cli/run_ledger.h"
#include "cli/run_record.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/text.h"

enum {
	HANGS_AFTER = 3,		/* limit: so many times the longest time, plus a minute */
	PROGRAM_LIMIT_S = 86400,	/* of an unknown program */
	FAILURES_MAX = 3,		/* in a row, after which no other would work */
	NO_COMMAND = 127,
};

/* ---- Finished launches ------------------------------------------------------------------- */

static const char *program_of(const struct run_launches *r, const struct run_item *item)
{
	return r->plan->program[item->program].name;
}

static char *file_of(const struct run_launches *r, const struct run_item *item, const char *suffix)
{
	return run_file(r->plan, item, r->journal->dir, suffix);
}

static bool is_whole(const struct run_launches *r, const struct run_item *item)
{
	char *path = file_of(r, item, ".jsonl");
	bool whole = path && run_record_is_whole(path, program_of(r, item));

	free(path);
	return whole;
}

static json_t *launch_record(const struct run_launches *r, size_t i, int code, double seconds)
{
	const struct run_item *item = &r->plan->item[i];
	char name[RUN_NAME_BYTES], record[RUN_NAME_BYTES + 16];

	snprintf(record, sizeof(record), "records/%s.jsonl", run_item_name(r->plan, item, name));
	return json_pack("{s:s, s:i, s:s, s:s, s:i, s:s, s:i, s:f}", "type", "launch", "index", (int)i,
			 "build", r->plan->build[item->build].name, "program", program_of(r, item),
			 "launch", item->launch, "record", record, "exit", code, "seconds", seconds);
}

/* The time of a launch that the journal lacks: in its record, or the longest. */
static double unnoted_s(const struct run_launches *r, const struct run_item *item)
{
	char *path = file_of(r, item, ".jsonl");
	double seconds = (double)run_item_ns(r->plan, item) / 1e9;

	if (path && run_plan_is_unknown(r->plan))
		seconds = run_record_seconds(path);
	free(path);
	return seconds;
}

static int finished_find(struct run_launches *r, size_t i)
{
	const struct run_item *item = &r->plan->item[i];
	const struct campaign_launch *known = r->journal->campaign.dir ?
		campaign_find(&r->journal->campaign, r->plan->build[item->build].name,
			      program_of(r, item), item->launch) : NULL;
	bool noted = known && known->exit == 0;

	r->seconds[i] = -1;
	if (!is_whole(r, item))
		return 0;
	r->seconds[i] = noted ? known->seconds : unnoted_s(r, item);
	r->finished++;
	return noted ? 0 : run_journal_add(r->journal, launch_record(r, i, 0, r->seconds[i]));
}

int run_launches_open(struct run_launches *r, const struct run_plan *plan,
		      const struct run_paths *paths, struct run_journal *journal)
{
	int rc = 0;

	*r = (struct run_launches){ .plan = plan, .paths = paths, .journal = journal };
	r->seconds = calloc((size_t)plan->count, sizeof(r->seconds[0]));
	if (!r->seconds)
		return -ENOMEM;
	for (int i = 0; i < plan->count && !rc; i++)
		rc = finished_find(r, (size_t)i);
	return rc;
}

void run_launches_free(struct run_launches *r)
{
	free(r->seconds);
	r->seconds = NULL;
}

/* ---- Time -------------------------------------------------------------------------------- */

/* The ratio of times taken to the longest times, of finished launches of a program and build; 0: none. */
static double ratio(const struct run_launches *r, int program, int build)
{
	double taken = 0, longest = 0;

	for (int i = 0; i < r->plan->count; i++) {
		const struct run_item *item = &r->plan->item[i];

		if (r->seconds[i] < 0 || (program >= 0 && item->program != program) ||
		    (build >= 0 && item->build != build))
			continue;
		taken += r->seconds[i];
		longest += (double)run_item_ns(r->plan, item) / 1e9;
	}
	return longest > 0 ? taken / longest : 0;
}

/* Launches of this program and build give the expectation, else all launches, else the longest time. */
static double expected_s(const struct run_launches *r, const struct run_item *item)
{
	double part = ratio(r, item->program, item->build);

	if (!part)
		part = ratio(r, -1, -1);
	return (part ? part : 1) * (double)run_item_ns(r->plan, item) / 1e9;
}

double run_launches_left_s(const struct run_launches *r)
{
	double sum = 0;

	for (int i = 0; i < r->plan->count; i++)
		if (r->seconds[i] < 0)
			sum += expected_s(r, &r->plan->item[i]);
	return sum;
}

static void progress(const struct run_launches *r, const struct run_item *item, double seconds)
{
	const char *build = r->plan->build[item->build].name;

	rg_note("%d of %d: %s%s%s, launch %d: %.1f s; about %.0f s left", r->finished, r->plan->count,
		program_of(r, item), *build ? " " : "", build, item->launch, seconds,
		ceil(run_launches_left_s(r)));
}

/* ---- A launch ---------------------------------------------------------------------------- */

static volatile sig_atomic_t stop;

static void stop_set(int signal)
{
	stop = signal;
}

static void signals_catch(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = stop_set };

	sigemptyset(&action.sa_mask);
	stop = 0;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaction(ends[i], &action, NULL);
}

static unsigned limit_s(const struct run_launches *r, const struct run_item *item)
{
	if (run_plan_is_unknown(r->plan))
		return PROGRAM_LIMIT_S;
	return (unsigned)(HANGS_AFTER * run_item_ns(r->plan, item) / 1000000000) + 60;
}

/* An unknown program writes none. */
static int record_write(const struct run_launches *r, const struct run_item *item, char *const *words,
			double seconds)
{
	char *path = file_of(r, item, ".jsonl");
	int rc = path ? run_record_write(path, program_of(r, item), words, seconds) :
		-ENOMEM;

	free(path);
	return rc;
}

static int words_launch(const struct run_launches *r, char *const *words, const char *log,
			unsigned limit)
{
	const struct cli_launch l = {
		.launcher = r->plan->launcher, .ranks = r->plan->ranks,
		.argv = (const char *const *)words, .log = log, .limit_s = limit, .stop = &stop,
		.held = r->journal->launch_lock,
	};

	return words && log ? cli_launch(&l) : -ENOMEM;
}

/* Returns the program's exit code or -errno; *seconds: how long it took. */
static int launch(const struct run_launches *r, const struct run_item *item, double *seconds)
{
	char **words = run_command(r->plan, r->paths, item, r->journal->dir);
	char *log = file_of(r, item, ".txt");
	uint64_t began = rg_now_ns();
	int rc = words_launch(r, words, log, limit_s(r, item));

	*seconds = (double)(rg_now_ns() - began) / 1e9;
	if (rc == 0 && run_plan_is_unknown(r->plan))
		rc = record_write(r, item, words, *seconds);
	run_command_free(words);
	free(log);
	return rc;
}

/* ---- All of them ------------------------------------------------------------------------- */

static int cannot_start(const struct run_launches *r)
{
	rg_error("--launcher %s: cannot be started (accepted: a command that takes -np N, as mpirun "
		 "does, or one with {n}: 'srun -n {n}')", r->plan->launcher);
	return -ENOENT;
}

/* The first line of an error that the program printed: "rg_bw: ..."; free() it.  NULL: none. */
static char *own_line(const struct run_launches *r, const struct run_item *item, const char *log)
{
	char *text = log ? rg_file_read(log, RUN_LEDGER_BYTES, NULL) : NULL, *found = NULL;
	const char *program = run_base_name(program_of(r, item)), *line = text;
	const size_t length = strlen(program);

	while (line && !found) {
		if (strncmp(line, program, length) == 0 && strncmp(line + length, ": ", 2) == 0)
			found = strndup(line, strcspn(line, "\n"));
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	free(text);
	return found;
}

/* Would the next launch fail, too? */
static int failed(struct run_launches *r, const struct run_item *item, int rc, int in_a_row)
{
	char *log = file_of(r, item, ".txt"), *own = own_line(r, item, log);
	char name[RUN_NAME_BYTES], code[32];
	const char *why = code;

	run_item_name(r->plan, item, name);
	snprintf(code, sizeof(code), "exit code %d", rc);
	if (rc <= 0)
		why = rc < 0 ? strerror(-rc) : "ended without a whole record";
	rg_error("%s: %s; what it printed is in %s%s%s", name, why, log ? log : "", own ? ": " : "",
		 own ? own : "");
	free(own);
	free(log);
	if (rc == RG_EXIT_USAGE)
		return -ENOENT;
	return in_a_row >= FAILURES_MAX ? -EIO : 0;
}

/* Launch an item: 1 finished, 0 failed, -errno: no other would work (-ENOENT: wrong use), a signal. */
static int item_run(struct run_launches *r, size_t i, int in_a_row)
{
	const struct run_item *item = &r->plan->item[i];
	double seconds;
	int rc = launch(r, item, &seconds), code = 0;
	/* A launch may have been ended after its record was. */
	bool whole = (rc == 0 || rc == -EINTR) && is_whole(r, item);

	if (!whole && stop)
		return -EINTR;
	if (rc == NO_COMMAND)
		return cannot_start(r);
	if (!whole)
		code = rc > 0 ? rc : RG_EXIT_FAULT;
	if (run_journal_add(r->journal, launch_record(r, i, code, seconds)))
		return -EIO;
	if (!whole)
		return failed(r, item, rc, in_a_row + 1);
	r->seconds[i] = seconds;
	r->finished++;
	progress(r, item, seconds);
	return stop ? -EINTR : 1;
}

/* Launch what is not finished, once each.  0 or -errno. */
static int pass(struct run_launches *r)
{
	int in_a_row = 0, rc = 1;

	r->failed = 0;
	for (int i = 0; i < r->plan->count && rc >= 0; i++) {
		if (r->seconds[i] >= 0)
			continue;
		rc = stop ? -EINTR : item_run(r, (size_t)i, in_a_row);
		in_a_row = rc == 0 ? in_a_row + 1 : 0;
		r->failed += r->seconds[i] < 0 && rc != -EINTR;
	}
	return rc < 0 ? rc : 0;
}

int run_launches_all(struct run_launches *r)
{
	int rc;

	signals_catch();
	rc = pass(r);
	if (!rc && r->failed) {
		rg_note("again, %d that failed", r->failed);
		rc = pass(r);
	}
	r->interrupted = rc == -EINTR;
	return r->interrupted ? 0 : rc;
}

/* ---- The ledger -------------------------------------------------------------------------- */

static bool has_ledger(const char *path)
{
	char *text = rg_file_read(path, RUN_LEDGER_BYTES, NULL);
	struct run_ledger l;
	bool has = text && run_ledger_read(text, &l);

	free(text);
	return has;
}

int run_launches_ledger(struct run_launches *r)
{
	char **words, *path;
	int rc = 0;

	if (asprintf(&path, "%s/" RUN_LEDGER_FILE, r->journal->dir) < 0)
		return -ENOMEM;
	if (!has_ledger(path)) {
		rg_note("one more launch, for the ledger");
		words = run_command_ledger(r->plan, r->paths);
		rc = words_launch(r, words, path, PROGRAM_LIMIT_S);
		run_command_free(words);
	}
	free(path);
	r->interrupted = rc == -EINTR;
	return rc;
}
