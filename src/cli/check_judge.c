/* check_judge.c - rules over facts. */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check_judge.h"
#include "cli/topo_diff.h"
#include "cli/topo_group.h"
#include "util/units.h"

/* A rule that is being judged. */
struct trial {
	const struct check_rule *rule;
	const struct check_rules *rules;
	const struct check_facts *facts;
	json_t *findings;
	int judged, unknown;
};

__attribute__((format(printf, 4, 5)))
static void find(struct trial *t, const char *node, const char *port, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	json_array_append_new(t->findings, json_pack("{s:s?, s:s?, s:s}", "node", node, "port", port,
						     "text", text));
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* NaN: unknown. */
static double number_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static const json_t *topo_of(const json_t *node)
{
	return json_object_get(node, "topo");
}

static const char *host_of(const json_t *node)
{
	return text_of(topo_of(node), "host");
}

static char *rate_text(double bytes_per_s, char text[RG_UNIT_TEXT])
{
	return rg_format_rate((uint64_t)bytes_per_s, text, RG_UNIT_TEXT);
}

/* ---- Ports ------------------------------------------------------------------------------ */

typedef void port_fn(struct trial *t, const char *host, const json_t *rail);

static bool is_named(const char *only, const json_t *rail)
{
	return !strcmp(only, text_of(rail, "name")) || !strcmp(only, text_of(rail, "device"));
}

static bool is_judged(const struct check_rules *rules, const json_t *rail)
{
	for (int i = 0; i < rules->only_count; i++)
		if (is_named(rules->only[i], rail))
			return true;
	return !rules->only_count;
}

static void ports_each(struct trial *t, const json_t *node, port_fn *each)
{
	json_t *rail;
	size_t i;

	json_array_foreach(json_object_get(topo_of(node), "rails"), i, rail)
		if (is_judged(t->rules, rail))
			each(t, host_of(node), rail);
}

static void nodes_each_port(struct trial *t, port_fn *each)
{
	json_t *node;
	size_t i;

	json_array_foreach(t->facts->nodes, i, node)
		ports_each(t, node, each);
}

static bool is_up(const json_t *rail)
{
	return !strcmp(text_of(rail, "state"), "ACTIVE");
}

static void port_up(struct trial *t, const char *host, const json_t *rail)
{
	t->judged++;
	if (!*text_of(rail, "state"))
		t->unknown++;
	else if (!is_up(rail))
		find(t, host, text_of(rail, "name"), "is %s", text_of(rail, "state"));
}

/* Ports of `only` that a node lacks; a node without any. */
static void ports_missing(struct trial *t, const json_t *node)
{
	const json_t *rails = json_object_get(topo_of(node), "rails");
	json_t *rail;
	size_t i;

	if (json_object_get(topo_of(node), "failed")) {
		find(t, host_of(node), NULL, "cannot be read");
		return;
	}
	if (!t->rules->only_count && !json_array_size(rails))
		find(t, host_of(node), NULL, "has no port");
	for (int k = 0; k < t->rules->only_count; k++) {
		bool found = false;

		json_array_foreach(rails, i, rail)
			found = found || is_named(t->rules->only[k], rail);
		if (!found)
			find(t, host_of(node), t->rules->only[k], "is missing");
	}
}

static void judge_ports_up(struct trial *t)
{
	json_t *node;
	size_t i;

	json_array_foreach(t->facts->nodes, i, node)
		ports_missing(t, node);
	nodes_each_port(t, port_up);
}

static void judge_ports(struct trial *t)
{
	json_t *node, *rail;
	size_t i, j;

	json_array_foreach(t->facts->nodes, i, node) {
		int up = 0;

		json_array_foreach(json_object_get(topo_of(node), "rails"), j, rail)
			up += is_judged(t->rules, rail) && is_up(rail);
		t->judged++;
		if (up < t->rule->value)
			find(t, host_of(node), NULL, "has %d ACTIVE port%s", up, up == 1 ? "" : "s");
	}
}

static double rate_of(const json_t *rail)
{
	return is_up(rail) ? number_of(rail, "rate_bytes_per_s") : NAN;
}

/* The rate that most ACTIVE ports have, of equal numbers the higher one; NaN: none is known. */
static double usual_rate(const struct trial *t)
{
	double best = NAN;
	int most = 0;
	json_t *node, *rail, *other, *near;
	size_t i, j, k, l;

	json_array_foreach(t->facts->nodes, i, node)
		json_array_foreach(json_object_get(topo_of(node), "rails"), j, rail) {
			const double rate = rate_of(rail);
			int count = 0;

			if (!is_judged(t->rules, rail) || isnan(rate) || rate == best)
				continue;
			json_array_foreach(t->facts->nodes, k, near)
				json_array_foreach(json_object_get(topo_of(near), "rails"), l, other)
					count += is_judged(t->rules, other) && rate_of(other) == rate;
			if (count > most || (count == most && rate > best)) {
				most = count;
				best = rate;
			}
		}
	return best;
}

static void judge_rates_equal(struct trial *t)
{
	const double usual = usual_rate(t);
	char is[RG_UNIT_TEXT], others[RG_UNIT_TEXT];
	json_t *node, *rail;
	size_t i, j;

	json_array_foreach(t->facts->nodes, i, node)
		json_array_foreach(json_object_get(topo_of(node), "rails"), j, rail) {
			const double rate = rate_of(rail);

			if (!is_judged(t->rules, rail) || !is_up(rail))
				continue;
			t->judged++;
			if (isnan(rate))
				t->unknown++;
			else if (rate != usual)
				find(t, host_of(node), text_of(rail, "name"), "has %s, others %s",
				     rate_text(rate, is), rate_text(usual, others));
		}
}

static void port_rate(struct trial *t, const char *host, const json_t *rail)
{
	const double rate = rate_of(rail);
	char text[RG_UNIT_TEXT];

	if (!is_up(rail))
		return;
	t->judged++;
	if (isnan(rate))
		t->unknown++;
	else if (rate > 0 && rate < t->rule->value)	/* 0: unlimited */
		find(t, host, text_of(rail, "name"), "has %s", rate_text(rate, text));
}

static void judge_rate(struct trial *t)
{
	nodes_each_port(t, port_rate);
}

/* "16 GT/s x8", or the rate. */
static char *link_text(const json_t *pcie, const char *gt, const char *lanes, const char *rate,
		       char *text, size_t size)
{
	char number[RG_UNIT_TEXT];

	if (number_of(pcie, gt) > 0 && number_of(pcie, lanes) > 0)
		snprintf(text, size, "%g GT/s x%g", number_of(pcie, gt), number_of(pcie, lanes));
	else
		snprintf(text, size, "%s", rate_text(number_of(pcie, rate), number));
	return text;
}

/* Ports of one device have one link: it is judged at the first. */
static void port_pcie(struct trial *t, const char *host, const json_t *rail)
{
	const json_t *pcie = json_object_get(rail, "pcie");
	const double is = number_of(pcie, "bytes_per_s"), can = number_of(pcie, "max_bytes_per_s");
	char now[64], most[64];

	if (number_of(rail, "port") > 1)
		return;
	t->judged++;
	if (isnan(is) || isnan(can))
		t->unknown++;
	else if (is < can)
		find(t, host, text_of(rail, "name"), "PCIe link has %s of %s",
		     link_text(pcie, "gt_per_s", "lanes", "bytes_per_s", now, sizeof(now)),
		     link_text(pcie, "max_gt_per_s", "max_lanes", "max_bytes_per_s", most,
			       sizeof(most)));
}

static void judge_pcie(struct trial *t)
{
	nodes_each_port(t, port_pcie);
}

/* ---- Error counters ------------------------------------------------------------------------ */

json_t *check_counters(const json_t *nodes)
{
	json_t *all = json_object(), *node, *rail;
	size_t i, j;

	json_array_foreach(nodes, i, node) {
		json_t *ports = json_object();

		json_array_foreach(json_object_get(topo_of(node), "rails"), j, rail)
			json_object_set(ports, text_of(rail, "name"), json_object_get(rail, "errors"));
		json_object_set_new(all, host_of(node), ports);
	}
	return all;
}

/* Does the rule judge this counter?  One with a rule of its own belongs to that alone. */
static bool is_counted(const struct trial *t, const char *counter)
{
	if (*t->rule->counter)
		return !strcmp(t->rule->counter, counter);
	for (int i = 0; i < t->rules->count; i++)
		if (t->rules->rule[i].kind == CHECK_ERRORS &&
		    !strcmp(t->rules->rule[i].counter, counter))
			return false;
	return true;
}

/* A counter that was cleared has counted its value since. */
static void counter_judge(struct trial *t, const char *host, const char *port, const char *counter,
			  const json_t *before, const json_t *now)
{
	const double was = json_number_value(before), is = json_number_value(now);
	const double grown = is >= was ? is - was : is;

	t->judged++;
	if (!before || (json_is_null(now) && json_is_null(before)))
		t->unknown++;
	else if (json_is_null(now))
		find(t, host, port, "%s has stopped at its end", counter);
	else if (grown > t->rule->value)
		find(t, host, port, "%s has grown by %.0f", counter, grown);
}

static void port_errors(struct trial *t, const char *host, const json_t *rail)
{
	const char *name = text_of(rail, "name"), *counter;
	const json_t *before = json_object_get(json_object_get(t->facts->before, host), name);
	json_t *now;

	json_object_foreach(json_object_get(rail, "errors"), counter, now)
		if (is_counted(t, counter))
			counter_judge(t, host, name, counter, json_object_get(before, counter), now);
}

static void judge_errors(struct trial *t)
{
	nodes_each_port(t, port_errors);
}

/* ---- Nodes ------------------------------------------------------------------------------------ */

static void judge_nodes(struct trial *t)
{
	const size_t nodes = json_array_size(t->facts->nodes);

	t->judged = (int)nodes;
	if ((double)nodes < t->rule->value)
		find(t, NULL, NULL, "%zu node%s", nodes, nodes == 1 ? "" : "s");
}

static void differences_find(struct trial *t, const char *node, const json_t *differences,
			     const char *from)
{
	json_t *difference;
	char text[384];
	size_t i;

	json_array_foreach(differences, i, difference)
		find(t, node, NULL, "%s%s", topo_diff_text(difference, text, sizeof(text)), from);
}

static void judge_nodes_equal(struct trial *t)
{
	json_t *groups = topo_group(t->facts->nodes), *group;
	size_t i;

	t->judged = (int)json_array_size(t->facts->nodes);
	json_array_foreach(groups, i, group)
		differences_find(t, text_of(group, "nodes"), json_object_get(group, "differs"), "");
	json_decref(groups);
}

static const json_t *kept_of(const struct trial *t, const char *host)
{
	json_t *topo;
	size_t i;

	json_array_foreach(t->facts->kept, i, topo)
		if (!strcmp(text_of(topo, "host"), host))
			return topo;
	return NULL;
}

static void judge_topology(struct trial *t)
{
	json_t *node;
	size_t i;

	json_array_foreach(t->facts->nodes, i, node) {
		const json_t *kept = kept_of(t, host_of(node));
		json_t *was, *is, *differences;

		t->judged++;
		if (!kept) {
			find(t, host_of(node), NULL, "was not there at acceptance");
			continue;
		}
		was = topo_alike(kept);
		is = topo_alike(topo_of(node));
		differences = topo_diff(was, is);
		differences_find(t, host_of(node), differences, "");
		json_decref(differences);
		json_decref(was);
		json_decref(is);
	}
}

/* ---- Records -------------------------------------------------------------------------------------- */

static const json_t *measured(const struct trial *t, const char *what)
{
	return json_object_get(t->facts->measured, what);
}

static void judge_stripe(struct trial *t)
{
	json_t *value;
	size_t i;

	json_array_foreach(measured(t, "stripe"), i, value) {
		const double gain = number_of(value, "stripe") / number_of(value, "single");
		const double rails = number_of(value, "rails");

		t->judged++;
		if (!(gain >= t->rule->value * rails))
			find(t, NULL, NULL, "%s: %.2f of one rail, with %g rails: %.2f of them",
			     text_of(value, "of"), gain, rails, gain / rails);
	}
}

static void judge_rail(struct trial *t)
{
	json_t *value;
	size_t i;

	json_array_foreach(measured(t, "rail"), i, value) {
		const double is = number_of(value, "value"), median = number_of(value, "median");

		t->judged++;
		if (isnan(is))
			find(t, text_of(value, "node"), text_of(value, "rail"), "%s nothing",
			     text_of(value, "side"));
		else if (median == 1 && is < t->rule->value)
			find(t, text_of(value, "node"), text_of(value, "rail"), "%s %.2f of the median",
			     text_of(value, "side"), is);
		else if (!(is >= t->rule->value * median))
			find(t, text_of(value, "node"), text_of(value, "rail"),
			     "%s %.2f MB/s, %.2f of the median %.2f", text_of(value, "side"), is,
			     is / median, median);
	}
}

static void judge_medians(struct trial *t)
{
	json_t *value;
	size_t i;

	json_array_foreach(measured(t, "medians"), i, value) {
		t->judged++;
		if (!(number_of(value, "worse") <= t->rule->value))
			find(t, NULL, NULL, "%s: %g, at acceptance %g: worse by %.1f %%",
			     text_of(value, "of"), number_of(value, "is"), number_of(value, "was"),
			     number_of(value, "worse") * 100);
	}
}

/* ---- All of them ------------------------------------------------------------------------------------ */

static void (*const judges[])(struct trial *t) = {
	[CHECK_PORTS_UP] = judge_ports_up, [CHECK_PORTS] = judge_ports,
	[CHECK_RATES_EQUAL] = judge_rates_equal, [CHECK_RATE] = judge_rate,
	[CHECK_PCIE_FULL] = judge_pcie, [CHECK_NODES] = judge_nodes,
	[CHECK_NODES_EQUAL] = judge_nodes_equal, [CHECK_ERRORS] = judge_errors,
	[CHECK_STRIPE] = judge_stripe, [CHECK_RAIL] = judge_rail,
	[CHECK_TOPOLOGY] = judge_topology, [CHECK_MEDIANS] = judge_medians,
};

static const char *verdict_of(const struct trial *t)
{
	if (json_array_size(t->findings))
		return "fail";
	return t->judged > t->unknown ? "pass" : "unknown";
}

static json_t *rule_judge(const struct check_rule *rule, const struct check_rules *rules,
			  const struct check_facts *facts)
{
	struct trial t = { .rule = rule, .rules = rules, .facts = facts, .findings = json_array() };

	judges[rule->kind](&t);
	return json_pack("{s:s, s:s, s:i, s:i, s:o}", "rule", rule->text, "verdict", verdict_of(&t),
			 "judged", t.judged, "unknown", t.unknown, "findings", t.findings);
}

/* "n[1-9]" */
static json_t *names_of(const json_t *nodes)
{
	json_t *names = json_array(), *node, *value;
	char *text;
	size_t i;

	json_array_foreach(nodes, i, node)
		json_array_append_new(names, json_string(host_of(node)));
	text = topo_group_names(names);
	value = json_string(text ? text : "");
	free(text);
	json_decref(names);
	return value;
}

json_t *check_judge(const struct check_rules *rules, const struct check_facts *facts)
{
	json_t *list = json_array();
	bool failed = false;

	for (int i = 0; i < rules->count; i++) {
		json_t *rule = rule_judge(&rules->rule[i], rules, facts);

		failed = failed || !strcmp(text_of(rule, "verdict"), "fail");
		json_array_append_new(list, rule);
	}
	return json_pack("{s:s, s:s, s:o, s:o}", "type", "check", "verdict", failed ? "fail" : "pass",
			 "nodes", names_of(facts->nodes), "rules", list);
}
