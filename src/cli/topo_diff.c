/* topo_diff.c - what is different between two machines. */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/topo_diff.h"
#include "util/units.h"

enum { AT_BYTES = 256 };

/* ---- What machines of one kind have in common ----------------------------------------- */

static void members_drop(json_t *object, const char *const *names)
{
	for (; *names; names++)
		json_object_del(object, *names);
}

/* Paths between devices; those to cores go with the cores. */
static void paths_trim(json_t *paths, const json_t *cores)
{
	const char *name;
	json_t *row, *core;
	size_t i;

	json_object_foreach(paths, name, row)
		json_array_foreach(cores, i, core) {
			const char *of = json_string_value(json_object_get(core, "name"));

			if (of)
				json_object_del(row, of);
		}
}

/* A link's rate follows from its speed and width, where both are known. */
static void pcie_trim(json_t *pcie)
{
	static const char *const each[][3] = {
		{ "gt_per_s", "lanes", "bytes_per_s" },
		{ "max_gt_per_s", "max_lanes", "max_bytes_per_s" },
	};

	for (int i = 0; i < 2; i++)
		if (json_is_number(json_object_get(pcie, each[i][0])) &&
		    json_is_number(json_object_get(pcie, each[i][1])))
			json_object_del(pcie, each[i][2]);
}

json_t *topo_alike(const json_t *topo)
{
	static const char *const own[] = { "type", "file", "host", "order_assumed", "cores",
					   "usable_core_count", "ranks", "warnings", "links", NULL };
	static const char *const of_rail[] = { "rail", "gid", "gid_index", "lid", "errors", NULL };
	json_t *alike = json_deep_copy(topo), *rail;
	size_t i;

	if (!alike)
		return NULL;
	paths_trim(json_object_get(alike, "paths"), json_object_get(topo, "cores"));
	members_drop(alike, own);
	json_array_foreach(json_object_get(alike, "rails"), i, rail) {
		members_drop(rail, of_rail);
		pcie_trim(json_object_get(rail, "pcie"));
	}
	return alike;
}

/* ---- Differences ------------------------------------------------------------------------ */

static void note(json_t *list, const char *at, json_t *was, json_t *is)
{
	json_t *entry = json_pack("{s:s}", "at", at);

	if (was)
		json_object_set(entry, "was", was);
	if (is)
		json_object_set(entry, "is", is);
	json_array_append_new(list, entry);
}

static const char *name_of(const json_t *value)
{
	return json_string_value(json_object_get(value, "name"));
}

static json_t *find_named(const json_t *array, const char *name)
{
	json_t *value;
	size_t i;

	json_array_foreach(array, i, value)
		if (name_of(value) && !strcmp(name_of(value), name))
			return value;
	return NULL;
}

/* "mlx5_1:1 pcie" and "lanes"; the members of a machine itself have no prefix. */
static void at_join(char at[AT_BYTES], const char *prefix, const char *name)
{
	snprintf(at, AT_BYTES, "%s%s%s", prefix, *prefix ? " " : "", name);
}

/* Members of objects, in both orders, each once; objects in them by their own members. */
static void objects_compare(json_t *list, const char *prefix, json_t *was, json_t *is)
{
	char at[AT_BYTES];
	const char *name;
	json_t *value;

	json_object_foreach(was, name, value) {
		json_t *now = json_object_get(is, name);

		at_join(at, prefix, name);
		if (json_is_object(value) && json_is_object(now))
			objects_compare(list, at, value, now);
		else if (!json_equal(value, now))
			note(list, at, value, now);
	}
	json_object_foreach(is, name, value) {
		at_join(at, prefix, name);
		if (!json_object_get(was, name))
			note(list, at, NULL, value);
	}
}

/* Rails or GPUs, by name: what is absent is one difference. */
static void devices_compare(json_t *list, const json_t *was, const json_t *is)
{
	json_t *value, *other;
	size_t i;

	json_array_foreach(was, i, value) {
		const char *name = name_of(value);

		other = name ? find_named(is, name) : NULL;
		if (other)
			objects_compare(list, name, value, other);
		else if (name)
			note(list, name, value, NULL);
	}
	json_array_foreach(is, i, value)
		if (name_of(value) && !find_named(was, name_of(value)))
			note(list, name_of(value), NULL, value);
}

/* Paths between devices that both have, each in one direction. */
static void paths_compare(json_t *list, json_t *was, json_t *is)
{
	const char *from, *to;
	json_t *row, *path;

	json_object_foreach(was, from, row) {
		json_t *now = json_object_get(is, from);

		json_object_foreach(row, to, path) {
			json_t *other = json_object_get(now, to);
			char at[AT_BYTES];

			if (!other || json_equal(path, other) ||
			    (json_object_get(was, to) && strcmp(from, to) > 0))
				continue;
			snprintf(at, sizeof(at), "path %s to %s", from, to);
			note(list, at, path, other);
		}
	}
}

json_t *topo_diff(const json_t *was, const json_t *is)
{
	static const char *const apart[] = { "rails", "gpus", "paths", NULL };
	json_t *list = json_array(), *a, *b;

	/* Nothing of the node is known. */
	if (json_object_get(is, "failed") && !json_object_get(was, "failed")) {
		note(list, "topology", json_true(), NULL);
		return list;
	}
	a = json_copy((json_t *)was);
	b = json_copy((json_t *)is);
	members_drop(a, apart);
	members_drop(b, apart);
	objects_compare(list, "", a, b);
	devices_compare(list, json_object_get(was, "rails"), json_object_get(is, "rails"));
	devices_compare(list, json_object_get(was, "gpus"), json_object_get(is, "gpus"));
	paths_compare(list, json_object_get(was, "paths"), json_object_get(is, "paths"));
	json_decref(a);
	json_decref(b);
	return list;
}

/* ---- As text ------------------------------------------------------------------------------ */

static bool is_rate(const char *at)
{
	const char *end = strrchr(at, ' ');

	return end && strstr(end, "bytes_per_s");
}

static char *value_text(const char *at, const json_t *value, char *text, size_t size)
{
	if (json_is_string(value))
		snprintf(text, size, "%s", json_string_value(value));
	else if (json_is_integer(value) && is_rate(at))
		json_integer_value(value) > 0 ?
			(void)rg_format_rate((uint64_t)json_integer_value(value), text, size) :
			(void)snprintf(text, size, "unlimited");
	else if (json_is_integer(value))
		snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(text, size, "%g", json_real_value(value));
	else
		snprintf(text, size, "%s", json_is_object(value) ? "present" : "not known");
	return text;
}

char *topo_diff_text(const json_t *difference, char *text, size_t size)
{
	const char *at = json_string_value(json_object_get(difference, "at"));
	const json_t *was = json_object_get(difference, "was"), *is = json_object_get(difference, "is");
	char now[96], before[96];

	at = at ? at : "";
	if (!is || !was)
		snprintf(text, size, "%s: %s", at, is ? "additional" : "absent");
	else
		snprintf(text, size, "%s: %s instead of %s", at,
			 value_text(at, is, now, sizeof(now)),
			 value_text(at, was, before, sizeof(before)));
	return text;
}
