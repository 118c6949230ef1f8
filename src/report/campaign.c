/* campaign.c - journals of campaigns: their origin is not trusted, so every value is checked. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/campaign.h"
#include "util/err.h"
#include "util/text.h"

enum { JOURNAL_BYTES_MAX = 16 << 20 };

static char *journal_path(const char *dir)
{
	const char *slash = *dir && dir[strlen(dir) - 1] == '/' ? "" : "/";
	char *path;

	return asprintf(&path, "%s%s" CAMPAIGN_JOURNAL, dir, slash) < 0 ? NULL : path;
}

bool campaign_exists(const char *dir)
{
	char *path = journal_path(dir);
	bool exists = path && access(path, F_OK) == 0;

	free(path);
	return exists;
}

/* ---- The plan ------------------------------------------------------------------- */

/* An array of at least one object, each with this member, a string. */
static bool is_list_of(const json_t *list, const char *member)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
		if (!json_is_string(json_object_get(item, member)))
			return false;
	return json_array_size(list) > 0;
}

/* Each check returns NULL or the error. */
static const char *plan_take(struct campaign *c, json_t *record)
{
	const json_t *version = json_object_get(record, "version");
	const json_t *launches = json_object_get(record, "launches");

	if (!json_is_integer(version) || json_integer_value(version) < 1)
		return "damaged: the plan lacks its version";
	if (json_integer_value(version) > CAMPAIGN_VERSION)
		return "a campaign of a newer version of Railgauge (accepted: version 1)";
	if (!is_list_of(json_object_get(record, "builds"), "name"))
		return "damaged: the plan lacks its builds";
	if (!is_list_of(json_object_get(record, "programs"), "name"))
		return "damaged: the plan lacks its programs";
	if (!json_is_integer(launches) || json_integer_value(launches) < 1)
		return "damaged: the plan lacks its number of launches";
	c->plan = json_incref(record);
	c->launches = json_integer_value(launches);
	c->interleaved = json_is_true(json_object_get(record, "interleaved"));
	return NULL;
}

static bool is_planned(const json_t *list, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
		if (strcmp(json_string_value(json_object_get(item, "name")), name) == 0)
			return true;
	return false;
}

bool campaign_has_build(const struct campaign *c, const char *build)
{
	return is_planned(json_object_get(c->plan, "builds"), build);
}

/* ---- Launches ------------------------------------------------------------------- */

/* A path below the directory: relative, and with no "..". */
static bool is_below(const char *path)
{
	if (!*path || *path == '/')
		return false;
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2]))
			return false;
	}
	return true;
}

/* Add a launch; an earlier one of the same number is replaced, and its place in time with it. */
static const char *launch_add(struct campaign *c, const struct campaign_launch *l)
{
	const struct campaign_launch *old = campaign_find(c, l->build, l->program, l->launch);
	struct campaign_launch *more;

	if (old) {
		size_t at = (size_t)(old - c->launch);

		memmove(&c->launch[at], &c->launch[at + 1],
			(--c->launch_count - at) * sizeof(c->launch[0]));
	}
	more = reallocarray(c->launch, c->launch_count + 1, sizeof(c->launch[0]));
	if (!more)
		return "no memory";
	c->launch = more;
	c->launch[c->launch_count++] = *l;
	return NULL;
}

static const char *launch_take(struct campaign *c, json_t *record)
{
	const json_t *launch = json_object_get(record, "launch");
	const json_t *code = json_object_get(record, "exit");
	struct campaign_launch l = {
		.build = json_string_value(json_object_get(record, "build")),
		.program = json_string_value(json_object_get(record, "program")),
		.record = json_string_value(json_object_get(record, "record")),
		.launch = json_integer_value(launch),
		.seconds = json_number_value(json_object_get(record, "seconds")),
	};

	if (!l.build || !campaign_has_build(c, l.build))
		return "damaged: a launch of a build that the plan does not name";
	if (!l.program || !is_planned(json_object_get(c->plan, "programs"), l.program))
		return "damaged: a launch of a program that the plan does not name";
	if (!json_is_integer(launch) || l.launch < 0)
		return "damaged: a launch without its number";
	if (!l.record || !is_below(l.record))
		return "damaged: a launch without a record below the directory";
	if (!json_is_integer(code) || json_integer_value(code) < INT_MIN ||
	    json_integer_value(code) > INT_MAX)
		return "damaged: a launch without its exit code";
	l.exit = (int)json_integer_value(code);
	json_array_append(c->records, record);
	return launch_add(c, &l);
}

const struct campaign_launch *campaign_find(const struct campaign *c, const char *build,
					    const char *program, long long launch)
{
	for (size_t i = 0; i < c->launch_count; i++) {
		const struct campaign_launch *l = &c->launch[i];

		if (l->launch == launch && strcmp(l->program, program) == 0 &&
		    strcmp(l->build, build) == 0)
			return l;
	}
	return NULL;
}

char *campaign_record_path(const struct campaign *c, const struct campaign_launch *l)
{
	const char *slash = *c->dir && c->dir[strlen(c->dir) - 1] == '/' ? "" : "/";
	char *path;

	return asprintf(&path, "%s%s%s", c->dir, slash, l->record) < 0 ? NULL : path;
}

/* ---- The journal ---------------------------------------------------------------- */

static const char *record_take(struct campaign *c, const char *line, size_t length)
{
	json_t *record = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
	const char *type = json_string_value(json_object_get(record, "type")), *wrong;

	if (!type)
		wrong = c->plan ? "damaged: not a record of JSON" : "not the journal of a campaign";
	else if (!c->plan)
		wrong = strcmp(type, "campaign") ? "damaged: does not begin with the plan" :
			plan_take(c, record);
	else if (strcmp(type, "campaign") == 0)
		wrong = "damaged: a second plan";
	else	/* other types are those of later versions */
		wrong = strcmp(type, "launch") ? NULL : launch_take(c, record);
	json_decref(record);
	return wrong;
}

static int journal_take(struct campaign *c, const char *path, const char *text, size_t bytes)
{
	const char *wrong = NULL, *newline;
	size_t number = 0;

	while (!wrong && (newline = memchr(text + c->whole_bytes, '\n', bytes - c->whole_bytes))) {
		const char *line = text + c->whole_bytes;

		number++;
		wrong = record_take(c, line, (size_t)(newline - line));
		c->whole_bytes = (size_t)(newline - text) + 1;
	}
	c->torn = c->whole_bytes < bytes;
	if (!wrong && !c->plan)
		wrong = bytes ? "damaged: the plan is torn" : "damaged: empty, no plan";
	if (!wrong)
		return 0;
	rg_error("%s:%zu: %s", path, number ? number : 1, wrong);
	return -EINVAL;
}

int campaign_parse(const char *dir, const char *text, size_t bytes, struct campaign *out)
{
	struct campaign c = { .dir = strdup(dir), .records = json_array() };
	char *path = journal_path(dir);
	int rc = -ENOMEM;

	if (c.dir && c.records && path)
		rc = journal_take(&c, path, text, bytes);
	else
		rg_error("%s: no memory", dir);
	free(path);
	if (rc)
		campaign_free(&c);
	else
		*out = c;
	return rc;
}

int campaign_read(const char *dir, struct campaign *out)
{
	char *path = journal_path(dir), *text;
	size_t bytes;
	int rc;

	text = path ? rg_file_read(path, JOURNAL_BYTES_MAX, &bytes) : NULL;
	if (text) {
		rc = campaign_parse(dir, text, bytes, out);
	} else {
		rc = path ? -errno : -ENOMEM;
		rg_error("%s: %s (accepted: a journal that railgauge run has written)",
			 path ? path : dir, strerror(-rc));
	}
	free(text);
	free(path);
	return rc;
}

void campaign_free(struct campaign *c)
{
	free(c->dir);
	free(c->launch);
	json_decref(c->plan);
	json_decref(c->records);
	*c = (struct campaign){ .dir = NULL };
}
