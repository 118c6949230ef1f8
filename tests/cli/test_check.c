/* test_check.c - rules of railgauge check as text, and what they say about given facts. */
#include "cmocka_all.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "cli/check_judge.h"
#include "cli/check_rules.h"
#include "cli/topo_group.h"

/* ---- Machines ------------------------------------------------------------------------------- */

/* A port of a machine: any of its members may be changed afterwards. */
static json_t *port(const char *device, int number)
{
	char name[32];

	snprintf(name, sizeof(name), "%s:%d", device, number);
	return json_pack("{s:s, s:s, s:i, s:s, s:I, s:s, s:{s:I, s:f, s:i, s:I, s:f, s:i}, s:{s:i, s:i}}",
			 "name", name, "device", device, "port", number, "state", "ACTIVE",
			 "rate_bytes_per_s", (json_int_t)25000000000, "gid", "fe80::1",
			 "pcie", "bytes_per_s", (json_int_t)31507692307, "gt_per_s", 16.0, "lanes", 16,
			 "max_bytes_per_s", (json_int_t)31507692307, "max_gt_per_s", 16.0,
			 "max_lanes", 16, "errors", "symbol_error", 0, "link_downed", 2);
}

/* A node with two devices of one port each. */
static json_t *node(const char *host)
{
	return json_pack("{s:{s:s, s:s, s:i, s:[o, o], s:[], s:{s:{s:s}}}}", "topo", "type", "topo",
			 "host", host, "packages", 2, "rails", port("mlx5_0", 1), port("mlx5_1", 1),
			 "gpus", "paths", "mlx5_0:1", "mlx5_1:1", "SYS");
}

static json_t *nodes(int count)
{
	json_t *all = json_array();
	char host[16];

	for (int i = 1; i <= count; i++) {
		snprintf(host, sizeof(host), "n%d", i);
		json_array_append_new(all, node(host));
	}
	return all;
}

static json_t *rail_of(const json_t *all, int node, int rail)
{
	const json_t *topo = json_object_get(json_array_get(all, (size_t)node), "topo");

	return json_array_get(json_object_get(topo, "rails"), (size_t)rail);
}

/* ---- Judging ----------------------------------------------------------------------------------- */

/* "fail n2 mlx5_0:1 is DOWN; ..." of the only rule. */
static const char *say(const char *rule, const struct check_facts *facts)
{
	static char text[2048];
	struct check_rules rules;
	json_t *result, *one, *finding;
	size_t i;

	assert_int_equal(check_rules_parse("test", rule, &rules), 0);
	result = check_judge(&rules, facts);
	one = json_array_get(json_object_get(result, "rules"), 0);
	snprintf(text, sizeof(text), "%s", json_string_value(json_object_get(one, "verdict")));
	json_array_foreach(json_object_get(one, "findings"), i, finding) {
		const char *host = json_string_value(json_object_get(finding, "node"));
		const char *name = json_string_value(json_object_get(finding, "port"));
		const size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%s%s%s%s %s", i ? ";" : "",
			 host ? " " : "", host ? host : "", name ? " " : "", name ? name : "",
			 json_string_value(json_object_get(finding, "text")));
	}
	json_decref(result);
	return text;
}

static void ports(void **state)
{
	struct check_facts f = { .nodes = nodes(3) };

	(void)state;
	assert_string_equal(say("ports up", &f), "pass");
	assert_string_equal(say("ports >= 2", &f), "pass");
	assert_string_equal(say("ports >= 3", &f), "fail n1 has 2 ACTIVE ports; n2 has 2 ACTIVE ports; "
			    "n3 has 2 ACTIVE ports");
	json_object_set_new(rail_of(f.nodes, 1, 1), "state", json_string("DOWN"));
	assert_string_equal(say("ports up", &f), "fail n2 mlx5_1:1 is DOWN");
	assert_string_equal(say("ports >= 2", &f), "fail n2 has 1 ACTIVE port");
	assert_string_equal(say("only mlx5_0\nports up", &f), "pass");
	assert_string_equal(say("only mlx5_1:1\nports up", &f), "fail n2 mlx5_1:1 is DOWN");
	/* A card that is gone is no port that could be DOWN. */
	json_array_remove(json_object_get(json_object_get(json_array_get(f.nodes, 1), "topo"), "rails"),
			  1);
	assert_string_equal(say("ports up", &f), "pass");
	assert_string_equal(say("only mlx5_0 mlx5_1\nports up", &f), "fail n2 mlx5_1 is missing");
	json_array_clear(json_object_get(json_object_get(json_array_get(f.nodes, 1), "topo"), "rails"));
	assert_string_equal(say("ports up", &f), "fail n2 has no port");
	json_decref((json_t *)f.nodes);
	f.nodes = nodes(1);
	json_object_set_new(rail_of(f.nodes, 0, 0), "state", json_null());
	json_object_set_new(rail_of(f.nodes, 0, 1), "state", json_null());
	assert_string_equal(say("ports up", &f), "unknown");
	json_decref((json_t *)f.nodes);
}

static void rates(void **state)
{
	struct check_facts f = { .nodes = nodes(3) };

	(void)state;
	assert_string_equal(say("rates equal", &f), "pass");
	assert_string_equal(say("rate >= 200Gb/s", &f), "pass");
	assert_string_equal(say("only mlx5_1\nrate >= 26GB/s", &f), "fail n1 mlx5_1:1 has 25GB/s; "
			    "n2 mlx5_1:1 has 25GB/s; n3 mlx5_1:1 has 25GB/s");
	json_object_set_new(rail_of(f.nodes, 2, 0), "rate_bytes_per_s", json_integer(12500000000));
	assert_string_equal(say("rates equal", &f), "fail n3 mlx5_0:1 has 12.5GB/s, others 25GB/s");
	assert_string_equal(say("rate >= 25GB/s", &f), "fail n3 mlx5_0:1 has 12.5GB/s");
	/* A port that is down has the rate of a cable that is not there. */
	json_object_set_new(rail_of(f.nodes, 2, 0), "state", json_string("DOWN"));
	assert_string_equal(say("rates equal", &f), "pass");
	assert_string_equal(say("rate >= 25GB/s", &f), "pass");
	json_decref((json_t *)f.nodes);
	/* Of two rates that are equally frequent the higher one is usual. */
	f.nodes = nodes(1);
	json_object_set_new(rail_of(f.nodes, 0, 0), "rate_bytes_per_s", json_integer(12500000000));
	assert_string_equal(say("rates equal", &f), "fail n1 mlx5_0:1 has 12.5GB/s, others 25GB/s");
	json_object_set_new(rail_of(f.nodes, 0, 0), "rate_bytes_per_s", json_null());
	json_object_set_new(rail_of(f.nodes, 0, 1), "rate_bytes_per_s", json_null());
	assert_string_equal(say("rates equal", &f), "unknown");
	json_decref((json_t *)f.nodes);
}

static void pcie(void **state)
{
	struct check_facts f = { .nodes = nodes(2) };
	json_t *link;

	(void)state;
	assert_string_equal(say("pcie full", &f), "pass");
	link = json_object_get(rail_of(f.nodes, 1, 0), "pcie");
	json_object_set_new(link, "lanes", json_integer(8));
	json_object_set_new(link, "bytes_per_s", json_integer(15753846153));
	assert_string_equal(say("pcie full", &f),
			    "fail n2 mlx5_0:1 PCIe link has 16 GT/s x8 of 16 GT/s x16");
	json_object_set_new(link, "gt_per_s", json_null());
	assert_string_equal(say("pcie full", &f),
			    "fail n2 mlx5_0:1 PCIe link has 15753846153B/s of 16 GT/s x16");
	/* The second port of a card has the same link. */
	json_object_set_new(rail_of(f.nodes, 1, 0), "port", json_integer(2));
	assert_string_equal(say("pcie full", &f), "pass");
	for (int i = 0; i < 4; i++)
		json_object_set_new(rail_of(f.nodes, i / 2, i % 2), "pcie", json_null());
	assert_string_equal(say("pcie full", &f), "unknown");
	json_decref((json_t *)f.nodes);
}

static void set_error(const json_t *all, const char *counter, json_t *value)
{
	json_object_set_new(json_object_get(rail_of(all, 0, 0), "errors"), counter, value);
}

static void errors(void **state)
{
	struct check_facts f = { .nodes = nodes(2) };
	json_t *shared = check_counters(f.nodes), *before = json_deep_copy(shared);

	(void)state;
	json_decref(shared);
	assert_string_equal(say("errors <= 0", &f), "unknown");
	f.before = before;
	assert_string_equal(say("errors <= 0", &f), "pass");
	set_error(f.nodes, "symbol_error", json_integer(5));
	assert_string_equal(say("errors <= 0", &f), "fail n1 mlx5_0:1 symbol_error has grown by 5");
	assert_string_equal(say("errors <= 5", &f), "pass");
	assert_string_equal(say("errors symbol_error <= 4", &f),
			    "fail n1 mlx5_0:1 symbol_error has grown by 5");
	assert_string_equal(say("errors <= 0\nerrors symbol_error <= 5", &f), "pass");
	assert_string_equal(say("errors symbol_error <= 5\nerrors <= 0", &f), "pass");
	/* Cleared since: 2 before, 1 now. */
	set_error(f.nodes, "symbol_error", json_integer(0));
	set_error(f.nodes, "link_downed", json_integer(1));
	assert_string_equal(say("errors <= 0", &f), "fail n1 mlx5_0:1 link_downed has grown by 1");
	set_error(f.nodes, "link_downed", json_null());
	assert_string_equal(say("errors <= 0", &f), "fail n1 mlx5_0:1 link_downed has stopped at its end");
	json_decref((json_t *)f.nodes);
	json_decref(before);
}

static void several_nodes(void **state)
{
	struct check_facts f = { .nodes = nodes(9) };
	json_t *groups, *first;

	(void)state;
	assert_string_equal(say("nodes equal", &f), "pass");
	assert_string_equal(say("nodes >= 9", &f), "pass");
	assert_string_equal(say("nodes >= 10", &f), "fail 9 nodes");
	/* Addresses differ in any case. */
	json_object_set_new(rail_of(f.nodes, 3, 0), "gid", json_string("fe80::2"));
	assert_string_equal(say("nodes equal", &f), "pass");
	json_object_set_new(rail_of(f.nodes, 6, 1), "firmware", json_string("20.1"));
	json_object_set_new(rail_of(f.nodes, 7, 1), "state", json_string("DOWN"));
	json_object_set_new(rail_of(f.nodes, 7, 0), "name", json_string("mlx5_9:1"));
	assert_string_equal(say("nodes equal", &f), "fail n7 mlx5_1:1 firmware: additional; "
			    "n8 mlx5_0:1: absent; n8 mlx5_1:1 state: DOWN instead of ACTIVE; "
			    "n8 mlx5_9:1: additional");
	groups = topo_group(f.nodes);
	assert_int_equal(json_array_size(groups), 3);
	first = json_array_get(groups, 0);
	assert_string_equal(json_string_value(json_object_get(first, "nodes")), "n[1-6,9]");
	assert_int_equal(json_array_size(json_object_get(first, "differs")), 0);
	json_decref(groups);
	json_decref((json_t *)f.nodes);
}

/* The odd one comes first, and most are later. */
static void majority(void **state)
{
	struct check_facts f = { .nodes = nodes(3) };

	(void)state;
	json_object_set_new(rail_of(f.nodes, 0, 0), "mtu_bytes", json_integer(1024));
	for (int i = 1; i < 3; i++)
		json_object_set_new(rail_of(f.nodes, i, 0), "mtu_bytes", json_integer(4096));
	assert_string_equal(say("nodes equal", &f), "fail n1 mlx5_0:1 mtu_bytes: 1024 instead of 4096");
	json_decref((json_t *)f.nodes);
}

static void as_kept(void **state)
{
	json_t *kept = json_array(), *three = nodes(3), *two = nodes(2), *paths;
	struct check_facts f = { .nodes = three, .kept = kept };

	(void)state;
	for (size_t i = 0; i < 2; i++)
		json_array_append(kept, json_object_get(json_array_get(two, i), "topo"));
	assert_string_equal(say("topology same", &f), "fail n3 was not there at acceptance");
	json_object_set_new(json_object_get(rail_of(three, 1, 0), "pcie"), "lanes", json_integer(8));
	paths = json_object_get(json_object_get(json_array_get(three, 0), "topo"), "paths");
	json_object_set_new(json_object_get(paths, "mlx5_0:1"), "mlx5_1:1", json_string("PIX"));
	assert_string_equal(say("topology same", &f), "fail n1 path mlx5_0:1 to mlx5_1:1: PIX instead of "
			    "SYS; n2 mlx5_0:1 pcie lanes: 8 instead of 16; "
			    "n3 was not there at acceptance");
	json_decref(two);
	json_decref(three);
	json_decref(kept);
}

static void records(void **state)
{
	json_t *m = json_pack("{s:[{s:s, s:f, s:f, s:i}],"
			      " s:[{s:s, s:s, s:s, s:f, s:f}, {s:s, s:s, s:s, s:n, s:f}],"
			      " s:[{s:s, s:f, s:f, s:f}]}",
			      "stripe", "of", "rg_bw, 1 bytes", "stripe", 179.0, "single", 100.0,
			      "rails", 2,
			      "rail", "node", "n1", "rail", "mlx5_0:1", "side", "sends", "value", 94.0,
			      "median", 100.0, "node", "n2", "rail", "mlx5_0:1", "side", "receives",
			      "value", "median", 100.0,
			      "medians", "of", "rg_bw, single", "was", 100.0, "is", 94.0, "worse", 0.06);
	struct check_facts f = { .measured = m };

	(void)state;
	assert_string_equal(say("stripe/single >= 0.9 x rails", &f),
			    "fail rg_bw, 1 bytes: 1.79 of one rail, with 2 rails: 0.90 of them");
	assert_string_equal(say("stripe/single >= 0.89 x rails", &f), "pass");
	assert_string_equal(say("rail >= 0.95 x median", &f), "fail n1 mlx5_0:1 sends 94.00 MB/s, 0.94 of "
			    "the median 100.00; n2 mlx5_0:1 receives nothing");
	assert_string_equal(say("rail >= 0.9 x median", &f), "fail n2 mlx5_0:1 receives nothing");
	assert_string_equal(say("medians within 5%", &f),
			    "fail rg_bw, single: 94, at acceptance 100: worse by 6.0 %");
	assert_string_equal(say("medians within 6.5%", &f), "pass");
	json_decref(m);
	f.measured = NULL;
	assert_string_equal(say("rail >= 0.9 x median", &f), "unknown");
}

/* Facts come from files: what has another type than expected is unknown, and nothing breaks. */
static void odd_facts(void **state)
{
	static const char *const rules[] = {
		"ports up", "ports >= 1", "rates equal", "rate >= 1GB/s", "pcie full", "nodes equal",
		"errors <= 0", "topology same", "rail >= 0.9 x median", "stripe/single >= 1 x rails",
		"medians within 1%",
	};
	json_t *odd = json_pack("[n, i, {s:s}, {s:{s:i, s:{}}}, {s:{s:[n, {s:i, s:[], s:s, s:i}]}}]",
				1, "topo", "x", "topo", "host", 3, "rails", "topo", "rails", "name", 7,
				"state", "pcie", "y", "errors", 4);
	struct check_facts f = { .nodes = odd, .kept = odd, .before = odd, .measured = odd };

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		assert_non_null(say(rules[i], &f));
	json_decref(odd);
}

/* ---- The file ------------------------------------------------------------------------------------- */

static const char *refused(const char *text)
{
	struct check_rules rules;
	const char *line;
	int rc;

	capture_begin(2);
	rc = check_rules_parse("f", text, &rules);
	line = capture_end();
	assert_int_equal(rc, -EINVAL);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	return line;
}

static void lines(void **state)
{
	static const char *const wrong[] = {
		"ports down", "ports", "ports up now", "ports >= -1", "ports >= two", "ports > 2",
		"rate >= 25", "rate >= 25GB", "stripe/single >= 0 x rails",
		"stripe/single >= 1.1 x rails", "stripe/single >= nan x rails", "rail >= 0.95 median",
		"medians within 5", "medians within 101%", "errors <= many", "errors a b <= 1", "only",
		"PORTS UP", "ports=up",
	};
	struct check_rules rules;

	(void)state;
	assert_int_equal(check_rules_parse("f", "# all\n\n  ports \t up  # comment\r\nonly a b:1\nonly c\n"
					   "errors symbol_error <= 10\nrate >= 100Gb/s", &rules), 0);
	assert_int_equal(rules.count, 3);
	assert_int_equal(rules.only_count, 3);
	assert_string_equal(rules.only[1], "b:1");
	assert_string_equal(rules.rule[0].text, "ports up");
	assert_int_equal(rules.rule[1].kind, CHECK_ERRORS);
	assert_string_equal(rules.rule[1].counter, "symbol_error");
	assert_true(rules.rule[2].value == 12.5e9);
	assert_true(check_rules_have(&rules, CHECK_RATE));
	assert_false(check_rules_have(&rules, CHECK_STRIPE));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_non_null(strstr(refused(wrong[i]), "is no rule (accepted: ports up; "));
	assert_non_null(strstr(refused("ports up\n\nports dwn"), "f:3: 'ports dwn' is no rule"));
	assert_non_null(strstr(refused("# nothing\n"), "f: no rule"));
}

static void too_many(void **state)
{
	char text[CHECK_RULES_MAX * 10 + 16] = "", only[CHECK_PORTS_MAX * 4 + 16] = "only";

	(void)state;
	for (int i = 0; i <= CHECK_RULES_MAX; i++)
		strcat(text, "ports up\n");
	assert_non_null(strstr(refused(text), "f:65: more rules than 64"));
	for (int i = 0; i <= CHECK_PORTS_MAX; i++)
		strcat(only, " a");
	assert_non_null(strstr(refused(only), "f:1: more ports than 32"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports), cmocka_unit_test(rates), cmocka_unit_test(pcie),
		cmocka_unit_test(errors), cmocka_unit_test(several_nodes), cmocka_unit_test(majority),
		cmocka_unit_test(as_kept), cmocka_unit_test(records), cmocka_unit_test(odd_facts),
		cmocka_unit_test(lines), cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
