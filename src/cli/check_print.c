/* check_print.c - the result of check_judge, for people and for programs. */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check_print.h"
#include "cli/topo_group.h"

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static int count_of(const json_t *object, const char *name)
{
	return (int)json_integer_value(json_object_get(object, name));
}

/* "n7 mlx5_1:1: is DOWN"; without the node where that is said already. */
static void finding_print(const char *node, const json_t *finding, FILE *out)
{
	const char *port = text_of(finding, "port");

	fprintf(out, "%s%s%s%s%s", node, *node && *port ? " " : "", port, *node || *port ? ": " : "",
		text_of(finding, "text"));
}

static bool is_like(const json_t *a, const json_t *b)
{
	return !strcmp(text_of(a, "port"), text_of(b, "port")) &&
	       !strcmp(text_of(a, "text"), text_of(b, "text"));
}

/* Findings that are the same on several nodes are one line; none for the second of them. */
static void findings_print(const json_t *findings, size_t at, FILE *out)
{
	const json_t *finding = json_array_get(findings, at);
	json_t *names = json_array(), *other;
	char *nodes = NULL;
	size_t i, before = 0;

	json_array_foreach(findings, i, other)
		if (is_like(other, finding)) {
			before += i < at;
			if (json_is_string(json_object_get(other, "node")))
				json_array_append(names, json_object_get(other, "node"));
		}
	if (!before) {
		nodes = json_array_size(names) > 1 ? topo_group_names(names) : NULL;
		fprintf(out, "           ");
		finding_print(nodes ? nodes : text_of(finding, "node"), finding, out);
		fputc('\n', out);
	}
	free(nodes);
	json_decref(names);
}

static void rule_print(const json_t *rule, FILE *out)
{
	const char *verdict = text_of(rule, "verdict");
	const int judged = count_of(rule, "judged"), unknown = count_of(rule, "unknown");
	const json_t *findings = json_object_get(rule, "findings");

	fprintf(out, "%-8s %s", strcmp(verdict, "fail") ? verdict : "FAIL", text_of(rule, "rule"));
	if (strcmp(verdict, "unknown"))
		fprintf(out, " (%d judged", judged - unknown);
	else
		fprintf(out, " (nothing to judge by");
	if (unknown)
		fprintf(out, ", %d not known", unknown);
	fprintf(out, ")\n");
	for (size_t i = 0; i < json_array_size(findings); i++)
		findings_print(findings, i, out);
}

/* The last line: one is enough for a reason. */
static void verdict_print(const json_t *result, FILE *out)
{
	const char *nodes = text_of(result, "nodes");
	const json_t *first = NULL;
	json_t *rule;
	size_t i, more = 0;

	json_array_foreach(json_object_get(result, "rules"), i, rule) {
		const json_t *findings = json_object_get(rule, "findings");

		first = first ? first : json_array_get(findings, 0);
		more += json_array_size(findings);
	}
	fprintf(out, "%s%s%s", nodes, *nodes ? ": " : "", text_of(result, "verdict"));
	if (first) {
		fprintf(out, ": ");
		finding_print(strcmp(nodes, text_of(first, "node")) ? text_of(first, "node") : "",
			      first, out);
	}
	if (more > 1)
		fprintf(out, ", and %zu more", more - 1);
	fputc('\n', out);
}

int check_print_text(const json_t *result, FILE *out)
{
	json_t *rule;
	size_t i;

	json_array_foreach(json_object_get(result, "rules"), i, rule)
		rule_print(rule, out);
	verdict_print(result, out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

int check_print_json(const json_t *result, FILE *out)
{
	return json_dumpf(result, out, JSON_INDENT(1)) || putc('\n', out) == EOF || fflush(out) ?
		-EIO : 0;
}
