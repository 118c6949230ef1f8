/* run_command.c - the words of a launch of a campaign. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/launch.h"
#include "cli/library.h"
#include "cli/program.h"
#include "cli/run_command.h"
#include "util/err.h"

enum { WORDS_MAX = 200 };

char *run_file(const struct run_plan *plan, const struct run_item *item, const char *dir,
	       const char *suffix)
{
	char name[RUN_NAME_BYTES], *path;

	if (asprintf(&path, "%s/records/%s%s", dir, run_item_name(plan, item, name), suffix) >= 0)
		return path;
	rg_error("%s: no memory", dir);
	return NULL;
}

/* ---- Programs ---------------------------------------------------------------------------- */

static int program_missing(const struct run_plan *plan, int b, int p)
{
	if (*plan->build[b].dir)
		rg_error("--with %s=%s: %s is not there (accepted: a build directory or the prefix of an "
			 "installation)", plan->build[b].name, plan->build[b].dir,
			 plan->program[p].name);
	else
		rg_error("%s: not next to this command: the installation is incomplete",
			 plan->program[p].name);
	return -ENOENT;
}

static int path_find(const struct run_plan *plan, int b, int p, char *path, size_t size)
{
	const char *name = plan->program[p].name, *dir = plan->build[b].dir;
	int rc;

	if (!run_plan_is_unknown(plan)) {
		rc = *dir ? cli_suite_find_in(dir, name, path, size) : cli_suite_find(name, path, size);
		return rc ? program_missing(plan, b, p) : 0;
	}
	if (!cli_program_find(name, path, size))
		return 0;
	rg_error("%s: no such program", name);
	return -ENOENT;
}

int run_paths_find(const struct run_plan *plan, struct run_paths *out)
{
	struct run_paths paths = { .path = {{ NULL }} };
	char path[PATH_MAX];
	int rc = 0;

	for (int b = 0; b < plan->builds; b++)
		for (int p = 0; p < plan->programs && !rc; p++) {
			rc = path_find(plan, b, p, path, sizeof(path));
			if (!rc)
				paths.path[b][p] = strdup(path);
		}
	if (rc)
		run_paths_free(&paths);
	else
		*out = paths;
	return rc;
}

void run_paths_free(struct run_paths *paths)
{
	for (int b = 0; b < RUN_BUILDS_MAX; b++)
		for (int p = 0; p < RUN_PROGRAMS_MAX; p++)
			free(paths->path[b][p]);
	*paths = (struct run_paths){ .path = {{ NULL }} };
}

/* ---- Words ------------------------------------------------------------------------------- */

struct words {
	char **word;			/* WORDS_MAX + 1 */
	int count;
	bool failed;
};

__attribute__((format(printf, 2, 3)))
static void add(struct words *w, const char *format, ...)
{
	va_list args;

	if (w->failed || w->count == WORDS_MAX) {
		w->failed = true;
		return;
	}
	va_start(args, format);
	if (vasprintf(&w->word[w->count], format, args) < 0) {
		w->word[w->count] = NULL;
		w->failed = true;
	}
	va_end(args);
	w->count += !w->failed;
}

/* Settings are variables first, from the first word with a dash on options. */
static void add_settings(struct words *w, const char *settings, bool variables)
{
	bool seen = false, env = false;

	while (*settings) {
		int length = (int)strcspn(settings, " ");

		seen = seen || *settings == '-';
		if (length && variables && !seen && !env) {
			env = true;
			add(w, "env");
		}
		if (length && seen != variables)
			add(w, "%.*s", length, settings);
		settings += length + (int)strspn(settings + length, " ");
	}
}

static void add_options(struct words *w, const struct run_program *p)
{
	const json_t *word;
	size_t i;

	json_array_foreach(p->options, i, word)
		add(w, "%s", json_string_value(word));
}

/* A record of a launch that was ended holds the sizes that it finished. */
static void add_outputs(struct words *w, const struct run_plan *plan, const struct run_item *item,
			const char *dir)
{
	char name[RUN_NAME_BYTES], *record = run_file(plan, item, dir, ".jsonl");
	bool begun = record && access(record, F_OK) == 0;

	free(record);

	run_item_name(plan, item, name);
	add(w, "--launch");
	add(w, "%d", item->launch);
	add(w, "--json");
	add(w, "%s/records/%s.jsonl", dir, name);
	add(w, "--samples");
	add(w, "%s/records/%s.csv", dir, name);
	add(w, "--overwrite");
	if (begun)
		add(w, "--continue");
}

static void add_exec(struct words *w, const char *way, bool ledger)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	add(w, "%.*s", length > 0 ? (int)length : 0, self);
	add(w, "exec");
	add(w, "--over");
	add(w, "%s", way);
	if (ledger)
		add(w, "--ledger");
	add(w, "--");
}

static char **words_end(struct words *w, const char *program)
{
	if (!w->failed)
		return w->word;
	rg_error("%s: no memory for its words, or more than %d", program, WORDS_MAX);
	run_command_free(w->word);
	return NULL;
}

char **run_command(const struct run_plan *plan, const struct run_paths *paths,
		   const struct run_item *item, const char *dir)
{
	struct words w = { .word = calloc(WORDS_MAX + 1, sizeof(char *)) };
	const struct run_build *b = &plan->build[item->build];

	w.failed = !w.word;
	add_settings(&w, b->settings, true);
	if (*b->over)
		add_exec(&w, b->over, false);
	add(&w, "%s", paths->path[item->build][item->program]);
	add_options(&w, &plan->program[item->program]);
	add_settings(&w, b->settings, false);
	if (!*b->over)
		add_outputs(&w, plan, item, dir);
	return words_end(&w, plan->program[item->program].name);
}

char **run_command_ledger(const struct run_plan *plan, const struct run_paths *paths)
{
	struct words w = { .word = calloc(WORDS_MAX + 1, sizeof(char *)) };

	w.failed = !w.word;
	add_exec(&w, "stripe", true);
	add(&w, "%s", paths->path[0][0]);
	add_options(&w, &plan->program[0]);
	return words_end(&w, plan->program[0].name);
}

void run_command_free(char **words)
{
	for (int i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

char *run_command_text(const struct run_plan *plan, char *const *words)
{
	char *text = cli_launcher_text(plan->launcher, plan->ranks), *more;

	for (int i = 0; text && words[i]; i++) {
		if (asprintf(&more, "%s %s", text, words[i]) < 0)
			more = NULL;
		free(text);
		text = more;
	}
	return text;
}
