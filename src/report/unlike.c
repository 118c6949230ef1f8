/* unlike.c - differences between two run records, by name and value. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/merge.h"
#include "report/unlike.h"

enum { VALUE_TEXT = 80 };

struct unlike { unlike_fn *each; void *user; };

/* Files of older versions lack members: absent equals absent, and what is not known. */
static bool same(const json_t *a, const json_t *b)
{
	a = json_is_null(a) ? NULL : a;
	b = json_is_null(b) ? NULL : b;
	return a && b ? json_equal(a, b) : a == b;
}

/* A string without its quotes, another value as JSON, shortened. */
static const char *value_text(const json_t *value, char buf[VALUE_TEXT])
{
	char *dump = value && !json_is_string(value) ?
		json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	const char *text = dump ? dump : json_is_string(value) ? json_string_value(value) : "none";
	int n = snprintf(buf, VALUE_TEXT, "%s", text);

	if (n >= VALUE_TEXT)
		memcpy(buf + VALUE_TEXT - 4, "...", 4);
	free(dump);
	return buf;
}

static void differ(const struct unlike *u, enum unlike_kind kind, const char *what, const json_t *a,
		   const json_t *b)
{
	char text[2][VALUE_TEXT];

	if (!same(a, b))
		u->each(u->user, kind, what, value_text(a, text[0]), value_text(b, text[1]));
}

/* ---- Members ---------------------------------------------------------------------- */

static const json_t *at(const json_t *run, const char *const path[3])
{
	for (int i = 0; i < 3 && path[i]; i++)
		run = json_object_get(run, path[i]);
	return run;
}

static void members_compare(const struct unlike *u, const json_t *a, const json_t *b)
{
	static const struct { enum unlike_kind kind; const char *what, *path[3]; } members[] = {
		{ UNLIKE_SETTING, "metric", { "metric" } },
		{ UNLIKE_SETTING, "ways", { "ways" } },
		{ UNLIKE_SETTING, "quantity", { "quantity" } },
		{ UNLIKE_SETTING, "axis", { "x" } },
		{ UNLIKE_SETTING, "problem", { "app" } },
		{ UNLIKE_SETTING, "MPI library", { "mpi" } },
		{ UNLIKE_SETTING, "pairs", { "pairs" } },
		{ UNLIKE_SETTING, "oversubscribed", { "oversubscribed" } },
		{ UNLIKE_SETTING, "fabric", { "fabric", "kind" } },
		{ UNLIKE_SETTING, "fabric's spec", { "fabric", "spec" } },
		{ UNLIKE_SETTING, "nodes", { "fabric", "nodes" } },
		{ UNLIKE_SETTING, "cpu", { "provenance", "machine", "cpu" } },
		{ UNLIKE_SETTING, "cpus", { "provenance", "machine", "cpus_online" } },
		{ UNLIKE_SETTING, "kernel", { "provenance", "machine", "kernel" } },
		{ UNLIKE_SETTING, "governor", { "provenance", "machine", "governor" } },
		{ UNLIKE_SETTING, "turbo", { "provenance", "machine", "no_turbo" } },
		{ UNLIKE_SETTING, "huge pages", { "provenance", "machine", "huge_pages" } },
		{ UNLIKE_SETTING, "clock", { "provenance", "machine", "clock_source" } },
		{ UNLIKE_SOFTWARE, "version", { "provenance", "software", "railgauge" } },
		{ UNLIKE_SOFTWARE, "commit", { "provenance", "software", "commit" } },
		{ UNLIKE_SOFTWARE, "local changes", { "provenance", "software", "dirty" } },
		{ UNLIKE_SOFTWARE, "compiler", { "provenance", "software", "compiler" } },
		{ UNLIKE_SOFTWARE, "cflags", { "provenance", "software", "cflags" } },
		{ UNLIKE_SOFTWARE, "sanitizers", { "provenance", "software", "sanitizers" } },
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		differ(u, members[i].kind, members[i].what, at(a, members[i].path),
		       at(b, members[i].path));
}

/* ---- Lists ------------------------------------------------------------------------ */

/* Returns a member of each object of a list: ["soft0:1", "soft0:2"] */
static json_t *column(const json_t *list, const char *member)
{
	json_t *values = json_array(), *item;
	size_t i;

	json_array_foreach(list, i, item)
		json_array_append(values, json_object_get(item, member));
	return values;
}

static void column_compare(const struct unlike *u, enum unlike_kind kind, const char *what,
			   const json_t *a, const json_t *b, const char *member)
{
	json_t *x = column(a, member), *y = column(b, member);

	differ(u, kind, what, x, y);
	json_decref(x);
	json_decref(y);
}

/* ---- Options and environment ------------------------------------------------------ */

static const json_t *options_of(const json_t *run)
{
	return json_object_get(run, "options");
}

static const json_t *value_of(const json_t *options, const char *name)
{
	return json_object_get(json_object_get(options, name), "value");
}

/* Versions differ in their options: at its default, one that the other lacks is no difference. */
static bool is_default(const json_t *options, const char *name)
{
	const char *from = json_string_value(json_object_get(json_object_get(options, name), "from"));

	return from && strcmp(from, "default") == 0;
}

static void option_compare(const struct unlike *u, const char *name, const json_t *a,
			   const json_t *b)
{
	const json_t *has[] = { value_of(a, name), value_of(b, name) };

	if (report_is_output(name) || (!has[0] && is_default(b, name)) ||
	    (!has[1] && is_default(a, name)))
		return;
	differ(u, UNLIKE_SETTING, name, has[0], has[1]);
}

static void options_compare(const struct unlike *u, const json_t *a, const json_t *b)
{
	const char *name;
	json_t *row;

	json_object_foreach((json_t *)(uintptr_t)a, name, row)
		option_compare(u, name, a, b);
	json_object_foreach((json_t *)(uintptr_t)b, name, row)
		if (!json_object_get(a, name))
			option_compare(u, name, a, b);
}

/* Settings are those of the MPI library and its transports; Railgauge's own variables are options, too. */
static bool is_setting(const char *variable)
{
	static const char *const prefixes[] = { "OMPI_MCA_", "UCX_", "MPICH_", "MPIR_CVAR_", "FI_",
						"OMP_NUM_THREADS" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static void environment_compare(const struct unlike *u, const json_t *a, const json_t *b)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)a, name, value)
		if (is_setting(name))
			differ(u, UNLIKE_SETTING, name, value, json_object_get(b, name));
	json_object_foreach((json_t *)(uintptr_t)b, name, value)
		if (is_setting(name) && !json_object_get(a, name))
			differ(u, UNLIKE_SETTING, name, NULL, value);
}

void report_unlike(const json_t *a, const json_t *b, unlike_fn *each, void *user)
{
	static const char *const environment[3] = { "provenance", "environment" };
	static const char *const rails[3] = { "fabric", "rails" };
	const json_t *ranks[] = { json_object_get(a, "ranks"), json_object_get(b, "ranks") };
	struct unlike u = { each, user };

	options_compare(&u, options_of(a), options_of(b));
	members_compare(&u, a, b);
	column_compare(&u, UNLIKE_SETTING, "rails", at(a, rails), at(b, rails), "name");
	column_compare(&u, UNLIKE_SETTING, "nodes of ranks", ranks[0], ranks[1], "node");
	column_compare(&u, UNLIKE_HOSTS, "hosts", ranks[0], ranks[1], "host");
	environment_compare(&u, at(a, environment), at(b, environment));
}
