/* topo_group.c - nodes of a job, grouped. */
#include "config.h"

#include <stdlib.h>

#include "cli/topo_diff.h"
#include "cli/topo_group.h"
#include "util/host_list.h"

static json_t *group_find(const json_t *groups, const json_t *alike)
{
	json_t *group;
	size_t i;

	json_array_foreach(groups, i, group)
		if (json_equal(json_object_get(group, "alike"), alike))
			return group;
	return NULL;
}

static void group_add(json_t *groups, json_t *node)
{
	json_t *topo = json_object_get(node, "topo"), *alike = topo_alike(topo);
	json_t *host = json_object_get(topo, "host"), *group = group_find(groups, alike);

	if (!group) {
		group = json_pack("{s:O, s:[], s:O, s:O*}", "alike", alike, "names", "topo", topo,
				  "text", json_object_get(node, "text"));
		json_array_append_new(groups, group);
	}
	json_array_append_new(json_object_get(group, "names"),
			      json_is_string(host) ? json_incref(host) : json_string("a machine"));
	json_decref(alike);
}

static size_t group_size(const json_t *group)
{
	return json_array_size(json_object_get(group, "names"));
}

/* The largest group first; others keep their order. */
static void largest_first(json_t *groups)
{
	size_t best = 0;
	json_t *group;

	for (size_t i = 1; i < json_array_size(groups); i++)
		if (group_size(json_array_get(groups, i)) > group_size(json_array_get(groups, best)))
			best = i;
	group = json_incref(json_array_get(groups, best));
	json_array_remove(groups, best);
	json_array_insert_new(groups, 0, group);
}

char *topo_group_names(const json_t *names)
{
	const size_t count = json_array_size(names);
	const char **name = calloc(count ? count : 1, sizeof(*name));
	char *text;

	for (size_t i = 0; name && i < count; i++)
		name[i] = json_string_value(json_array_get(names, i));
	text = name ? rg_host_list(name, (int)count) : NULL;
	free(name);
	return text;
}

json_t *topo_group(const json_t *nodes)
{
	json_t *groups = json_array(), *node, *group, *most;
	size_t i;

	json_array_foreach(nodes, i, node)
		group_add(groups, node);
	if (!json_array_size(groups))
		return groups;
	largest_first(groups);
	most = json_object_get(json_array_get(groups, 0), "alike");
	json_array_foreach(groups, i, group) {
		char *text = topo_group_names(json_object_get(group, "names"));

		json_object_set_new(group, "nodes", json_string(text ? text : ""));
		json_object_set_new(group, "differs",
				    topo_diff(most, json_object_get(group, "alike")));
		free(text);
	}
	json_array_foreach(groups, i, group)
		json_object_del(group, "alike");
	return groups;
}
