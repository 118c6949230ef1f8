/*
 * topo_nodes.c - the nodes of a job: identical ones as one, and where the others differ.
 *
 * railgauge topo --json in a job prints
 *	{"type": "topo_job", "groups": [{"nodes": "n[1-6,9]", "names": [name],
 *					 "differs": [{"at", "is", "was"}]}],
 *	 "nodes": [object of topo_json.c]}
 * `differs` compares with the first, largest group, whose `differs` is empty.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cli/gather.h"
#include "cli/topo_diff.h"
#include "cli/topo_group.h"
#include "cli/topo_json.h"
#include "cli/topo_nodes.h"
#include "cli/topo_text.h"
#include "util/err.h"

/* ---- Reading --------------------------------------------------------------------------- */

/* The tables as a string. */
static json_t *tables(const struct topo_report *r)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	json_t *value = NULL;

	if (out) {
		int failed = topo_print_text(r, out);

		if (!fclose(out) && !failed)
			value = json_stringn(text, bytes);
	}
	free(text);
	return value;
}

static int node_read(const struct topo_request *q, bool text, json_t **node)
{
	struct topo_report r = { .topo = NULL };
	int rc = topo_report_make(&r, q);

	if (!rc) {
		*node = json_pack("{s:o, s:o*}", "topo", topo_json(&r), "text",
				  text ? tables(&r) : NULL);
		if (!*node) {
			rg_error("topo: no memory");
			rc = -ENOMEM;
		}
	}
	topo_report_free(&r);
	return rc;
}

int topo_node_read(const struct topo_request *q, json_t **nodes)
{
	json_t *node = NULL;
	int rc = node_read(q, false, &node);

	if (!rc)
		*nodes = json_pack("[o]", node);
	return rc;
}

/*
 * Read a node of several: one that cannot be read says why, in a line with its name, and is told to the
 * others: {"topo": {"type", "host", "failed": exit code}}.
 */
static int node_of_job(const struct topo_request *q, bool text, json_t **node)
{
	static char name[80];
	struct utsname host;
	int rc;

	uname(&host);
	snprintf(name, sizeof(name), "railgauge: %.64s", host.nodename);
	rg_set_program(name);
	rg_set_quiet(false);
	rc = node_read(q, text, node);
	rg_set_quiet(rg_launch_rank() > 0);
	rg_set_program("railgauge");
	if (rc)
		*node = json_pack("{s:{s:s, s:s, s:i}}", "topo", "type", "topo", "host", host.nodename,
				  "failed", topo_exit_code(rc));
	return *node ? 0 : -ENOMEM;
}

/* Ranks of one node have the same value, where the launcher does not tell which is the first. */
static json_t *without_repetitions(json_t *all)
{
	json_t *nodes = json_array(), *node, *other;
	size_t i, j;

	json_array_foreach(all, i, node) {
		json_array_foreach(nodes, j, other)
			if (json_equal(node, other))
				break;
		if (j == json_array_size(nodes) && json_is_object(node))
			json_array_append(nodes, node);
	}
	json_decref(all);
	return nodes;
}

int topo_nodes_read(const struct topo_request *q, bool text, json_t **nodes)
{
	json_t *mine = NULL, *all = NULL;
	int rc = 0;

	if (gather_ranks() == 1) {
		rc = node_read(q, text, &mine);
		if (!rc)
			*nodes = json_pack("[o]", mine);
		return rc;
	}
	/* A saved machine is the caller's: ranks of one node may name several. */
	if (q->xml || gather_leads())
		rc = node_of_job(q, text, &mine);
	if (!rc)
		rc = gather(mine, &all);
	json_decref(mine);
	if (!rc)
		*nodes = all ? without_repetitions(all) : NULL;
	return rc;
}

int topo_nodes_failed(const json_t *nodes)
{
	json_t *node;
	int worst = 0;
	size_t i;

	json_array_foreach(nodes, i, node) {
		const json_t *failed = json_object_get(json_object_get(node, "topo"), "failed");
		const int code = (int)json_integer_value(failed);

		worst = code > worst ? code : worst;
	}
	return worst;
}

/* ---- Printing ---------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static size_t group_size(const json_t *group)
{
	return json_array_size(json_object_get(group, "names"));
}

static void group_print(const json_t *group, const json_t *most, FILE *out)
{
	json_t *difference;
	char text[512];
	size_t i;

	fprintf(out, "\n%s: unlike %s in\n", text_of(group, "nodes"), text_of(most, "nodes"));
	json_array_foreach(json_object_get(group, "differs"), i, difference)
		fprintf(out, "  %s\n", topo_diff_text(difference, text, sizeof(text)));
}

int topo_nodes_print_text(const json_t *nodes, FILE *out)
{
	json_t *groups = topo_group(nodes), *most = json_array_get(groups, 0), *group;
	size_t i;

	if (json_array_size(nodes) > 1) {
		fprintf(out, "%zu nodes, ", json_array_size(nodes));
		if (json_array_size(groups) == 1)
			fprintf(out, "all alike: %s\n\n", text_of(most, "nodes"));
		else if (group_size(most) == 1)
			fprintf(out, "no two alike; first %s\n\n", text_of(most, "nodes"));
		else
			fprintf(out, "%zu alike: %s\n\n", group_size(most), text_of(most, "nodes"));
	}
	fputs(text_of(most, "text"), out);
	json_array_foreach(groups, i, group)
		if (i)
			group_print(group, most, out);
	json_decref(groups);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

int topo_nodes_print_json(const json_t *nodes, FILE *out)
{
	json_t *groups = topo_group(nodes), *topos = json_array(), *object, *value;
	int rc;
	size_t i;

	json_array_foreach(nodes, i, value)
		json_array_append(topos, json_object_get(value, "topo"));
	json_array_foreach(groups, i, value) {
		json_object_del(value, "topo");
		json_object_del(value, "text");
	}
	object = json_array_size(nodes) > 1 ?
		json_pack("{s:s, s:O, s:O}", "type", "topo_job", "groups", groups, "nodes", topos) :
		json_incref(json_array_get(topos, 0));
	rc = json_dumpf(object, out, JSON_INDENT(1)) || putc('\n', out) == EOF || fflush(out);
	json_decref(object);
	json_decref(groups);
	json_decref(topos);
	return rc ? -EIO : 0;
}
