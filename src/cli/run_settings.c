/* run_settings.c - the settings of a campaign. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/run_settings.h"
#include "mpi/railmpi.h"
#include "util/err.h"
#include "util/random.h"

enum { PROGRAM_LAUNCHES = 10, BUILD_NAME_MAX = 40 };

static int check_with(const char *text, char *why, size_t why_size);

#define AT(member) .offset = offsetof(struct run_values, member)
static struct opt rows[] = {
	{ .name = "preset", .type = OPT_CHOICE, AT(preset), .arg = "NAME", .standard = "quick",
	  .help = "programs, sizes and launches" },
	{ .name = "launches", .letter = 'l', .type = OPT_COUNT, AT(launches), .arg = "N",
	  .standard = "auto", .special = "auto", .min = 1, .max = 10000,
	  .help = "launches of each program with each build; auto: the preset's, 10 of a PROGRAM" },
	{ .name = "ranks", .letter = 'n', .type = OPT_COUNT, AT(ranks), .arg = "N",
	  .standard = "2", .min = 1, .max = 1 << 20, .help = "ranks of a launch" },
	{ .name = "over", .type = OPT_CHOICES, AT(over), .arg = "LIST",	/* choices */
	  .standard = "native,single,stripe",
	  .help = "ways, which take turns inside a launch of the suite's programs" },
	{ .name = "sizes", .letter = 'm', .type = OPT_TEXT, AT(sizes), .arg = "MIN:MAX",
	  .help = "message sizes of every program; default: the preset's" },
	{ .name = "time-cap", .type = OPT_TIME, AT(time_cap_ns), .arg = "SECONDS",
	  .standard = "auto", .special = "auto", .min = 1000000, .max = UINT64_C(86400000000000),
	  .bare = "s", .help = "limit for a row; auto: the preset's" },
	{ .name = "options", .type = OPT_TEXT, AT(options), .arg = "WORDS",
	  .help = "further options of every program, blanks between" },
	{ .name = "with", .type = OPT_TEXTS, AT(with), .arg = "NAME=BUILD", .check = check_with,
	  .help = "launches of several builds or settings in turns; BUILD: a build directory, the "
		  "prefix of an installation, or settings of this one" },
	{ .name = "launcher", .type = OPT_TEXT, AT(launcher), .arg = "COMMAND",
	  .standard = "mpirun",
	  .help = "command that starts a job; it gets -np N, or N in place of {n}: 'srun -n {n}'" },
	{ .name = "out", .letter = 'o', .type = OPT_TEXT, AT(out), .arg = "DIR",
	  .help = "directory of the campaign; one that is there goes on; default: run-PRESET, "
		  "run-PROGRAM" },
	{ .name = "seed", .type = OPT_COUNT, AT(seed), .arg = "N", .standard = "auto",
	  .special = "auto", .max = INT64_MAX, .help = "the order of launches; auto: another each time" },
	{ .name = "dry-run", .type = OPT_FLAG, AT(dry_run),
	  .help = "print the time and the commands, and launch nothing" },
	{ .name = NULL },
};

const struct opt *run_rows(void)
{
	static struct opt_choice presets[8];

	for (int i = 0; run_presets[i].name; i++)
		presets[i] = (struct opt_choice){ run_presets[i].name, i, run_presets[i].help };
	for (struct opt *row = rows; row->name; row++) {
		if (strcmp(row->name, "preset") == 0)
			row->choices = presets;
		if (strcmp(row->name, "over") == 0)
			row->choices = railmpi_ways();
	}
	return rows;
}

/* ---- --with ------------------------------------------------------------------------------ */

static bool is_variable(const char *word)
{
	const size_t length = strcspn(word, "=/ ");

	return *word >= 'A' && *word <= 'Z' && word[length] == '=';
}

static bool is_settings(const char *text)
{
	return !*text || *text == '-' || is_variable(text);
}

/* Words before the first option are variables. */
static bool settings_are_good(const char *text)
{
	while (*text && *text != '-') {
		if (!is_variable(text))
			return false;
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	return true;
}

static int check_with(const char *text, char *why, size_t why_size)
{
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
	const char *build = text + length + 1;
	struct stat st;

	if (!length || length > BUILD_NAME_MAX || text[length] != '=')
		snprintf(why, why_size, "no name (accepted: NAME=DIR, NAME='--qps 4', "
			 "NAME='UCX_TLS=tcp'; letters, digits, _ and - in a NAME)");
	else if (is_settings(build) ? settings_are_good(build) :
		 !stat(build, &st) && S_ISDIR(st.st_mode))
		return 0;
	else
		snprintf(why, why_size, "%s (accepted: a build directory, the prefix of an "
			 "installation, or variables and then options)",
			 is_settings(build) ? "not settings" : "no such directory");
	return -EINVAL;
}

/* The i-th build; its texts are as old as the process. */
static void build_fill(const char *text, int i, struct run_build *b)
{
	static char names[RUN_BUILDS_MAX][BUILD_NAME_MAX + 1], dirs[RUN_BUILDS_MAX][PATH_MAX];
	const char *equals = strchr(text, '=');
	bool settings = is_settings(equals + 1) || !realpath(equals + 1, dirs[i]);

	snprintf(names[i], sizeof(names[i]), "%.*s", (int)(equals - text), text);
	*b = (struct run_build){ .name = names[i], .dir = settings ? "" : dirs[i], .over = "",
				 .settings = settings ? equals + 1 : "" };
}

static int builds_fill(const struct opt_texts *with, struct run_settings *s)
{
	int rc = 0;

	s->builds = with->count;
	for (int i = 0; i < with->count && !rc; i++) {
		build_fill(with->item[i], i, &s->build[i]);
		for (int k = 0; k < i && !rc; k++)
			if (strcmp(s->build[i].name, s->build[k].name) == 0) {
				rg_error("--with %s: the same name twice (accepted: a name for each)",
					 s->build[i].name);
				rc = -EINVAL;
			}
	}
	if (!rc && with->count == 1) {
		rg_error("--with %s: alone (accepted: two or more, such as --with base=)",
			 with->item[0]);
		rc = -EINVAL;
	}
	return rc;
}

/* ---- Settings ---------------------------------------------------------------------------- */

static bool is_given(const struct opt_table *t, const char *name)
{
	opt_each(row, t)
		if (strcmp(row->name, name) == 0)
			return t->origin[row - t->rows] != OPT_FROM_DEFAULT;
	return false;
}

bool run_settings_are_given(const struct opt_table *t, char *const *argv)
{
	opt_each(row, t)
		if (is_given(t, row->name) && strcmp(row->name, "out") &&
		    strcmp(row->name, "dry-run"))
			return true;
	return argv;
}

/* Options of the suite's programs, which an unknown program does not have. */
static int program_check(const struct opt_table *t, const char *program)
{
	static const char *const suite[] = { "preset", "sizes", "time-cap", "options", "with" };

	for (size_t i = 0; i < sizeof(suite) / sizeof(suite[0]); i++)
		if (is_given(t, suite[i])) {
			rg_error("--%s: not for %s (accepted: without a program)", suite[i], program);
			return -EINVAL;
		}
	return 0;
}

static const char *ways_text(const struct opt_table *t)
{
	static char text[256];

	opt_each(row, t)
		if (strcmp(row->name, "over") == 0)
			opt_text(t, row, text, sizeof(text));
	return text;
}

int run_settings_fill(const struct opt_table *t, char *const *argv, struct run_settings *s)
{
	const struct run_values *v = t->values;
	const struct run_preset *p = &run_presets[v->preset];
	int launches = argv ? PROGRAM_LAUNCHES : p->launches, rc;

	*s = (struct run_settings){
		.preset = p->name, .launcher = v->launcher, .ranks = (int)v->ranks,
		.launches = v->launches == OPT_SPECIAL ? launches : (int)v->launches,
		.seed = v->seed == OPT_SPECIAL ? rg_random() >> 1 : v->seed,
		.cap_ns = v->time_cap_ns == OPT_SPECIAL ? p->cap_ns : v->time_cap_ns,
		.ways = ways_text(t), .options = v->options, .sizes = v->sizes, .argv = argv,
	};
	rc = argv ? program_check(t, argv[0]) : 0;
	return rc ? rc : builds_fill(&v->with, s);
}

/* ---- A campaign that goes on ------------------------------------------------------------- */

static const char *text_of(const json_t *record, const char *member, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(record, member));

	return text ? text : otherwise;
}

/* The words of an unknown program, which are as old as the process. */
static char *const *argv_of(const json_t *before)
{
	const json_t *program = json_array_get(json_object_get(before, "programs"), 0), *word;
	const json_t *options = json_object_get(program, "options");
	static char **argv;
	size_t i;

	argv = calloc(json_array_size(options) + 2, sizeof(argv[0]));
	if (!argv)
		return NULL;
	argv[0] = strdup(text_of(program, "name", ""));
	json_array_foreach(options, i, word)
		argv[i + 1] = strdup(json_is_string(word) ? json_string_value(word) : "");
	return argv;
}

static void numbers_take(const struct opt_table *t, const json_t *before, struct run_settings *s)
{
	if (!is_given(t, "launches"))
		s->launches = (int)json_integer_value(json_object_get(before, "launches"));
	if (!is_given(t, "ranks"))
		s->ranks = (int)json_integer_value(json_object_get(before, "ranks"));
	if (!is_given(t, "seed"))
		s->seed = (uint64_t)json_integer_value(json_object_get(before, "seed"));
	if (!is_given(t, "time-cap"))
		s->cap_ns = (uint64_t)json_integer_value(json_object_get(before, "cap_ns"));
}

static void settings_take(const struct opt_table *t, const json_t *before, struct run_settings *s)
{
	bool unknown = strcmp(text_of(before, "preset", ""), "program") == 0;

	numbers_take(t, before, s);
	if (!is_given(t, "preset") && !unknown)
		s->preset = text_of(before, "preset", s->preset);
	if (!is_given(t, "launcher"))
		s->launcher = text_of(before, "launcher", s->launcher);
	if (!is_given(t, "over"))
		s->ways = text_of(before, "over", s->ways);
	if (!is_given(t, "sizes"))
		s->sizes = text_of(before, "sizes", NULL);
	if (!is_given(t, "options"))
		s->options = text_of(before, "options", NULL);
	if (unknown && !s->argv && !is_given(t, "preset"))
		s->argv = argv_of(before);
}

/* A value as words of an error line. */
static char *value_text(const json_t *value, char *buf, size_t size)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	if (json_is_string(value))
		snprintf(buf, size, "%s", json_string_value(value));
	else
		snprintf(buf, size, "%s", text ? text : "none");
	free(text);
	return buf;
}

static int differs(const json_t *before, const json_t *now, const char *dir)
{
	static const char *const members[] = { "preset", "launches", "ranks", "launcher", "seed",
					       "cap_ns", "over", "sizes", "options", "builds",
					       "programs" };
	char was[512], is[512];

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const json_t *a = json_object_get(before, members[i]);
		const json_t *b = json_object_get(now, members[i]);

		if (a == b || (a && b && json_equal(a, b)))
			continue;
		rg_error("%s: has a campaign of other settings: %s %s, not %s (accepted: its own, or "
			 "another --out)", dir, members[i], value_text(a, was, sizeof(was)),
			 value_text(b, is, sizeof(is)));
		return -EINVAL;
	}
	return 0;
}

int run_settings_again(const struct opt_table *t, char *const *argv, const json_t *before,
		       const char *dir, json_t **header)
{
	struct run_settings s;
	json_t *now;
	int rc = run_settings_fill(t, argv, &s);

	if (rc)
		return rc;
	settings_take(t, before, &s);
	if (!run_preset_find(s.preset)) {
		rg_error("%s: has a campaign of an unknown preset, %s", dir, s.preset);
		return -EINVAL;
	}
	now = run_header(&s);
	if (!now)
		return -EINVAL;
	if (!is_given(t, "with") && !s.argv)
		json_object_set(now, "builds", json_object_get(before, "builds"));
	rc = differs(before, now, dir);
	json_decref(now);
	if (!rc)
		*header = json_deep_copy(before);
	return rc;
}
