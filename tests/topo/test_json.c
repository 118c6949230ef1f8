/*
 * test_json.c - railgauge topo --json, as a program would read it.  The machines
 * are drawn in test_topo.c.
 */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "rail/rail.h"

static json_t *run(const char *arguments)
{
	const char *src = getenv("srcdir");
	char command[1024];
	json_error_t error;
	json_t *object;
	FILE *f;

	snprintf(command, sizeof(command), "MACHINES=%s/tests/topo; src/cli/railgauge topo --json %s",
		 src ? src : ".", arguments);
	f = popen(command, "r");
	assert_non_null(f);
	object = json_loadf(f, JSON_REJECT_DUPLICATES, &error);
	if (!object)
		fail_msg("%s: line %d: %s", arguments, error.line, error.text);
	assert_int_equal(pclose(f), 0);
	assert_string_equal(json_string_value(json_object_get(object, "type")), "topo");
	return object;
}

static json_t *element(json_t *object, const char *array, size_t index)
{
	json_t *e = json_array_get(json_object_get(object, array), index);

	assert_non_null(e);
	return e;
}

static size_t count(json_t *object, const char *array)
{
	json_t *list = json_object_get(object, array);

	assert_true(json_is_array(list));
	return json_array_size(list);
}

static void is_text(json_t *object, const char *key, const char *expected)
{
	json_t *value = json_object_get(object, key);

	assert_true(json_is_string(value));
	assert_string_equal(json_string_value(value), expected);
}

static void is_number(json_t *object, const char *key, json_int_t expected)
{
	json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	assert_int_equal(json_integer_value(value), expected);
}

static void is_null(json_t *object, const char *key)
{
	assert_true(json_is_null(json_object_get(object, key)));
}

static void is_path(json_t *object, const char *from, const char *to, const char *expected)
{
	json_t *path = json_object_get(json_object_get(json_object_get(object, "paths"), from), to);

	assert_non_null(path);
	if (expected)
		assert_string_equal(json_string_value(path), expected);
	else
		assert_true(json_is_null(path));
}

static void test_known(void **state)
{
	json_t *all = run("--xml $MACHINES/slot.xml"), *rail, *pcie, *link;

	(void)state;
	is_text(all, "host", "slot");
	assert_true(json_is_false(json_object_get(all, "order_assumed")));
	is_number(all, "packages", 1);
	is_number(all, "numa_nodes", 2);
	is_number(all, "core_count", 4);
	assert_int_equal(count(all, "rails"), 4);
	rail = element(all, "rails", 0);
	is_number(rail, "rail", 1);
	is_text(rail, "name", "mlx5_0:1");
	is_text(rail, "device", "mlx5_0");
	is_number(rail, "port", 1);
	is_text(rail, "kind", "hardware");
	is_text(rail, "link_layer", "InfiniBand");
	is_text(rail, "state", "ACTIVE");
	is_number(rail, "rate_bytes_per_s", 25000000000);
	is_number(rail, "mtu_bytes", 4096);
	is_text(rail, "gid", "fe80::c42:a103:11:2200");
	is_text(rail, "gid_type", "IB");
	is_number(rail, "gid_index", 0);
	is_number(rail, "lid", 0x11);
	is_text(rail, "firmware", "20.31.1014");
	is_text(rail, "pci", "0000:01:00.0");
	is_number(rail, "numa_node", 0);
	is_number(rail, "package", 0);
	pcie = json_object_get(rail, "pcie");
	is_number(pcie, "bytes_per_s", 31507692307);
	is_number(pcie, "lanes", 16);
	assert_true(json_real_value(json_object_get(pcie, "gt_per_s")) == 16.0);
	is_number(pcie, "max_bytes_per_s", 63015384615);
	assert_true(json_real_value(json_object_get(pcie, "max_gt_per_s")) == 32.0);
	is_number(pcie, "max_lanes", 16);
	assert_int_equal(count(all, "links"), 4);
	link = element(all, "links", 3);
	is_text(link, "at", "0000:41:00.0");
	is_number(link, "bytes_per_s", 15753846153);
	assert_int_equal(count(link, "rails"), 2);
	assert_string_equal(json_string_value(element(link, "rails", 0)), "mlx5_2:1");
	assert_string_equal(json_string_value(element(link, "rails", 1)), "mlx5_3:1");
	json_decref(all);
}

/* A file of lstopo knows little: the rest is null and not 0. */
static void test_unknown(void **state)
{
	static const char *const unknown[] = { "kind", "link_layer", "rate_bytes_per_s", "mtu_bytes",
					       "gid_type", "gid_index", "firmware" };
	json_t *all = run("--xml $MACHINES/dual.xml"), *rail, *pcie;

	(void)state;
	assert_int_equal(count(all, "rails"), 6);
	rail = element(all, "rails", 4);
	is_text(rail, "name", "mlx4_0:2");
	is_text(rail, "state", "DOWN");
	is_null(rail, "rail");
	assert_true(json_is_true(json_object_get(all, "order_assumed")));
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		is_null(rail, unknown[i]);
	pcie = json_object_get(rail, "pcie");
	assert_in_range(json_integer_value(json_object_get(pcie, "bytes_per_s")), 7876920000,
			7876926000);
	is_null(pcie, "gt_per_s");
	is_null(pcie, "max_bytes_per_s");
	json_decref(all);
	all = run("--xml $MACHINES/far.xml");
	rail = element(all, "rails", 1);
	is_text(rail, "name", "mlx5_9");
	is_null(rail, "port");
	is_null(rail, "state");
	is_null(rail, "gid");
	is_null(rail, "numa_node");
	is_null(rail, "package");
	is_path(all, "mlx5_9", "node0", NULL);
	is_path(all, "mlx5_9", "mlx5_9", "X");
	json_decref(all);
}

static void rank_is(json_t *all, size_t rank, const char *cores, const char *by_rank,
		    const char *by_rank_path, const char *near)
{
	json_t *r = element(all, "ranks", rank), *bind = json_object_get(r, "bind");

	is_number(r, "rank", (json_int_t)rank);
	is_text(r, "cores", cores);
	is_text(r, "cpus", cores);
	is_text(json_object_get(bind, "rank"), "rail", by_rank);
	is_text(json_object_get(bind, "rank"), "path", by_rank_path);
	is_text(json_object_get(bind, "near"), "rail", near);
	is_text(json_object_get(bind, "near"), "path", "PHB");
}

static void test_paths_and_ranks(void **state)
{
	json_t *all = run("--xml $MACHINES/dual.xml --ranks 4");

	(void)state;
	assert_int_equal(count(all, "gpus"), 4);
	is_text(element(all, "gpus", 1), "name", "cuda1");
	is_text(element(all, "gpus", 1), "pci", "0000:1d:00.0");
	assert_int_equal(count(all, "cores"), 2);
	is_text(element(all, "cores", 0), "name", "node0");
	is_text(element(all, "cores", 0), "cores", "0-3");
	is_path(all, "mlx5_0:1", "mlx5_0:1", "X");
	is_path(all, "mlx5_0:1", "mlx5_1:1", "PIX");
	is_path(all, "mlx5_0:1", "cuda1", "PXB");
	is_path(all, "mlx4_0:1", "cuda2", "PHB");
	is_path(all, "mlx5_3:1", "cuda2", "NODE");
	is_path(all, "mlx5_0:1", "node1", "SYS");
	assert_int_equal(count(all, "ranks"), 4);
	rank_is(all, 0, "0-1", "mlx5_0:1", "PHB", "mlx5_0:1");
	rank_is(all, 1, "2-3", "mlx5_1:1", "PHB", "mlx5_1:1");
	rank_is(all, 2, "4-5", "mlx5_2:1", "SYS", "mlx4_0:1");
	rank_is(all, 3, "6-7", "mlx4_0:1", "PHB", "mlx5_3:1");
	json_decref(all);
}

static void warnings_are(const char *file, const char *const *kinds)
{
	char arguments[64];
	json_t *all;
	size_t n = 0;

	snprintf(arguments, sizeof(arguments), "--xml $MACHINES/%s", file);
	all = run(arguments);
	for (; kinds[n]; n++)
		is_text(element(all, "warnings", n), "kind", kinds[n]);
	assert_int_equal(count(all, "warnings"), n);
	json_decref(all);
}

static void test_warnings(void **state)
{
	(void)state;
	warnings_are("dual.xml", (const char *const[]){ "shared_link_rates", "port_down", "far_rail",
							NULL });
	warnings_are("slot.xml", (const char *const[]){ "shared_link", "shared_link", "slow_link",
							"link_local", "unequal_rates", NULL });
	warnings_are("far.xml", (const char *const[]){ "narrow_link", "no_place", "far_rail", NULL });
	warnings_are("none.xml", (const char *const[]){ "no_device", NULL });
}

static void test_software_hca(void **state)
{
	json_t *all = run("--soft ports=2 --ranks 1"), *rail;

	(void)state;
	is_null(all, "file");
	assert_int_equal(count(all, "rails"), 2);
	rail = element(all, "rails", 1);
	is_text(rail, "name", "soft0:2");
	is_text(rail, "kind", "software HCA");
	is_text(rail, "gid_type", "RoCE v2");
	/* Known: without limit. */
	is_number(rail, "rate_bytes_per_s", 0);
	is_null(rail, "pci");
	is_null(rail, "pcie");
	assert_int_equal(count(all, "links"), 0);
	assert_int_equal(count(all, "warnings"), 0);
	json_decref(all);
}

/* The number of rails that librail would use of all these ports. */
static void test_rails_of_a_process(void **state)
{
	json_t *all = run("--soft hcas=3,ports=4 --ranks 1");
	int rails = 0;

	(void)state;
	assert_int_equal(count(all, "rails"), 12);
	for (size_t i = 0; i < 12; i++)
		rails += !json_is_null(json_object_get(element(all, "rails", i), "rail"));
	assert_int_equal(rails, RAIL_MAX);
	json_decref(all);
}

static void need_is(json_t *need, const json_int_t value[4])
{
	static const char *const keys[] = { "queue_pairs", "srq_receives", "cq_entries", "pinned_bytes" };

	for (int i = 0; i < 4; i++)
		is_number(need, keys[i], value[i]);
}

/*
 * 1,024 ranks: 64 slots of 64 bytes and 16 KiB, or 16 buffers of 4,160 bytes, for each eager lane
 * that a peer sends on, and 256 bytes of grants; two such lanes on two rails, narrow one on one.
 */
static void test_needs(void **state)
{
	static const struct { const char *kind; json_int_t peer[4], narrow[4]; } rows[] = {
		{ "ring", { 4, 0, 520, 2 * (64 * 64 + 16384) + 256 }, { 2, 0, 260, 64 * 64 + 16384 + 256 } },
		{ "send", { 4, 32, 550, 2 * 16 * 4160 + 256 }, { 2, 16, 275, 16 * 4160 + 256 } },
	};
	json_t *all = run("--soft ports=2 --ranks 128"), *needs = json_object_get(all, "needs"), *peer;

	(void)state;
	is_number(needs, "job_ranks", 1024);
	is_number(needs, "peers_of_node", 128 * 896);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		peer = json_object_get(needs, rows[i].kind);
		need_is(peer, rows[i].peer);
		need_is(json_object_get(peer, "narrow"), rows[i].narrow);
		assert_true(json_integer_value(json_object_get(peer, "cq_bytes_of_rank")) >= 896 * 64 * rows[i].peer[2]);
		assert_true(json_integer_value(json_object_get(json_object_get(peer, "narrow"), "cq_bytes_of_rank")) >=
			    896 * 64 * rows[i].narrow[2]);
	}
	json_decref(all);
}

/*
 * Completion queues of 300 entries, of which 512 are locked: 171 are for lanes of 130 each for certain.  The last
 * one has 256, that of datagrams 16 KiB.  With 129 requests a large message has half as many at once, and a lane fewer entries.
 */
static void test_small_queues(void **state)
{
	json_t *all = run("--soft ports=2,maxcqe=300 --ranks 128"), *ring;

	(void)state;
	ring = json_object_get(json_object_get(all, "needs"), "ring");
	is_number(ring, "cq_bytes_of_rank", 896 * 520 / 171 * 512 * 64 + 256 * 64 + 16384);
	is_number(json_object_get(ring, "narrow"), "cq_bytes_of_rank", 896 * 260 / 171 * 512 * 64 + 256 * 64 + 16384);
	json_decref(all);
	all = run("--soft ports=1,maxwr=129 --ranks 1 --job 2");
	ring = json_object_get(json_object_get(all, "needs"), "ring");
	is_number(ring, "cq_entries", 130 + 2 * 129);
	json_decref(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_paths_and_ranks),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_software_hca),
		cmocka_unit_test(test_rails_of_a_process),
		cmocka_unit_test(test_needs),
		cmocka_unit_test(test_small_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
