/*
 * test_topo.c - places, paths, links and ports of saved machines.
 *
 * What is expected is written out from the pictures of the machines below.
 *
 * dual.xml, as lstopo writes it:
 *
 *	package 0, node 0, cores 0-3
 *	  host bridge 16: root port 16:02.0 - switch 17:00.0
 *		18:00.0 - GPU 19:00.0 (nvml0, cuda0)
 *		18:08.0 - adapter 1a:00.0 and .1 (mlx5_0, mlx5_1)
 *		18:10.0 - switch 1b:00.0 - 1c:00.0 - GPU 1d:00.0 (cuda1)
 *	  host bridge 30: root port 30:02.0 - adapter 31:00.0 (mlx5_2)
 *		root port 30:04.0 - 32:00.0, display of a management controller
 *	package 1, node 1, cores 4-7
 *	  host bridge 80: root port 80:02.0 - GPU 81:00.0 (cuda2)
 *		root port 80:04.0 - adapter 82:00.0 with two ports (mlx4_0)
 *		root port 80:06.0 - GPU 83:00.0, of no driver
 *	  host bridge c0: root port c0:02.0 - adapter c1:00.0 (mlx5_3)
 *
 * slot.xml, as railgauge topo --save writes it: one package, nodes 0 (cores 0, 1) and 1
 * (2, 3).  Root port 00:01.0 of node 0 - adapter 01:00.0 and .1 (mlx5_0, mlx5_1).  A
 * host bridge of the whole package: root port 40:01.0 - switch 41:00.0 - adapters 43:00.0
 * and 44:00.0 (mlx5_2, mlx5_3).
 *
 * far.xml: two packages; mlx5_0 on the second, mlx5_9 where nobody knows.
 */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "util/err.h"
#include "scratch.h"
#include "topo/topo.h"

static char dir[SCRATCH_PATH];

static int setup(void **state)
{
	(void)state;
	rg_set_program("test_topo");
	return scratch_make(dir);
}

static int teardown(void **state)
{
	(void)state;
	return scratch_remove(dir);
}

static const char *saved(const char *name)
{
	static char path[512];
	const char *src = getenv("srcdir");

	snprintf(path, sizeof(path), "%s/tests/topo/%s", src ? src : ".", name);
	return path;
}

static struct topo *machine(const char *name)
{
	struct topo *t = NULL;

	assert_int_equal(topo_open_xml(saved(name), &t), 0);
	assert_non_null(t);
	return t;
}

/* ---- What there is ------------------------------------------------------ */

static void test_what_there_is(void **state)
{
	static const struct { const char *name, *pci; int numa, package; } adapters[] = {
		{ "mlx5_0", "0000:1a:00.0", 0, 0 },	{ "mlx5_1", "0000:1a:00.1", 0, 0 },
		{ "mlx5_2", "0000:31:00.0", 0, 0 },	{ "mlx4_0", "0000:82:00.0", 1, 1 },
		{ "mlx5_3", "0000:c1:00.0", 1, 1 },
	}, gpus[] = {
		{ "cuda0", "0000:19:00.0", 0, 0 },	{ "cuda1", "0000:1d:00.0", 0, 0 },
		{ "cuda2", "0000:81:00.0", 1, 1 },	{ "gpu3", "0000:83:00.0", 1, 1 },
	};
	struct topo *t = machine("dual.xml");

	(void)state;
	assert_false(t->live);
	assert_string_equal(t->host, "dual");
	assert_int_equal(t->package_count, 2);
	assert_int_equal(t->numa_count, 2);
	assert_int_equal(t->core_count, 8);
	assert_int_equal(t->adapter_count, 5);
	for (int i = 0; i < 5; i++) {
		assert_string_equal(t->adapter[i].name, adapters[i].name);
		assert_string_equal(t->adapter[i].pci, adapters[i].pci);
		assert_int_equal(t->adapter[i].numa, adapters[i].numa);
		assert_int_equal(t->adapter[i].package, adapters[i].package);
	}
	assert_int_equal(t->gpu_count, 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(t->gpu[i].name, gpus[i].name);
		assert_string_equal(t->gpu[i].pci, gpus[i].pci);
		assert_int_equal(t->gpu[i].numa, gpus[i].numa);
	}
	assert_int_equal(t->cores_count, 2);
	assert_string_equal(t->cores[1].spot.name, "node1");
	assert_string_equal(t->cores[1].cores, "4-7");
	assert_string_equal(t->cores[1].cpus, "4-7");
	topo_close(t);
}

/* ---- Paths -------------------------------------------------------------- */

enum { S = TOPO_SELF, I = TOPO_PIX, B = TOPO_PXB, H = TOPO_PHB, N = TOPO_NODE, Y = TOPO_SYS };

static void test_paths(void **state)
{
	static const int expected[9][11] = {
		/* mlx5_0 mlx5_1 mlx5_2 mlx4_0 mlx5_3 cuda0 cuda1 cuda2 gpu3 node0 node1 */
		{ S, I, N, Y, Y, I, B, Y, Y, H, Y },		/* mlx5_0 */
		{ I, S, N, Y, Y, I, B, Y, Y, H, Y },		/* mlx5_1 */
		{ N, N, S, Y, Y, N, N, Y, Y, H, Y },		/* mlx5_2 */
		{ Y, Y, Y, S, N, Y, Y, H, H, Y, H },		/* mlx4_0 */
		{ Y, Y, Y, N, S, Y, Y, N, N, Y, H },		/* mlx5_3 */
		{ I, I, N, Y, Y, S, B, Y, Y, H, Y },		/* cuda0 */
		{ B, B, N, Y, Y, B, S, Y, Y, H, Y },		/* cuda1 */
		{ Y, Y, Y, H, N, Y, Y, S, H, Y, H },		/* cuda2 */
		{ Y, Y, Y, H, N, Y, Y, H, S, Y, H },		/* gpu3 */
	};
	struct topo *t = machine("dual.xml");
	const struct topo_spot *spot[11];

	(void)state;
	for (int i = 0; i < 5; i++)
		spot[i] = &t->adapter[i];
	for (int i = 0; i < 4; i++)
		spot[5 + i] = &t->gpu[i];
	for (int i = 0; i < 2; i++)
		spot[9 + i] = &t->cores[i].spot;
	for (int a = 0; a < 9; a++)
		for (int b = 0; b < 11; b++) {
			if ((int)topo_path(t, spot[a], spot[b]) != expected[a][b])
				fail_msg("%s to %s: %s instead of %s", spot[a]->name, spot[b]->name,
					 topo_path_text(topo_path(t, spot[a], spot[b])),
					 topo_path_text((enum topo_path)expected[a][b]));
			assert_int_equal(topo_path(t, spot[b], spot[a]), expected[a][b]);
		}
	topo_close(t);
}

static void test_paths_within_a_package(void **state)
{
	/* The host bridge of mlx5_2 and mlx5_3 belongs to both nodes: to none of them. */
	static const int to_node[4][2] = { { H, N }, { H, N }, { N, N }, { N, N } };
	struct topo *t = machine("slot.xml");

	(void)state;
	for (int a = 0; a < 4; a++)
		for (int n = 0; n < 2; n++)
			assert_int_equal(topo_path(t, &t->adapter[a], &t->cores[n].spot),
					 to_node[a][n]);
	assert_int_equal(topo_path(t, &t->adapter[0], &t->adapter[2]), TOPO_NODE);
	assert_int_equal(topo_path(t, &t->adapter[2], &t->adapter[3]), TOPO_PIX);
	assert_int_equal(t->adapter[2].numa, -1);
	assert_int_equal(t->adapter[2].package, 0);
	topo_close(t);
}

static void test_places_not_known(void **state)
{
	struct topo *t = machine("far.xml");
	struct topo_spot soft, lost;

	(void)state;
	assert_false(topo_find(t, "soft0", &soft));
	assert_string_equal(soft.name, "soft0");
	assert_string_equal(soft.pci, "");
	assert_true(topo_find(t, "mlx5_9", &lost));
	assert_string_equal(lost.pci, "0001:01:00.0");
	assert_int_equal(lost.package, -1);
	assert_int_equal(lost.numa, -1);
	for (int n = 0; n < 2; n++) {
		assert_int_equal(topo_path(t, &soft, &t->cores[n].spot), TOPO_UNKNOWN);
		assert_int_equal(topo_path(t, &lost, &t->cores[n].spot), TOPO_UNKNOWN);
	}
	assert_int_equal(topo_path(t, &lost, &t->adapter[0]), TOPO_UNKNOWN);
	assert_int_equal(topo_path(t, &soft, &t->adapter[0]), TOPO_UNKNOWN);
	topo_close(t);
}

/* ---- Near --------------------------------------------------------------- */

static void test_near(void **state)
{
	static const char *const rails[] = { "mlx5_0", "mlx5_2", "mlx4_0", "mlx5_3" };
	static const char *const part[] = { "mlx5_0", "soft0" };
	static const struct { const char *cpus; uint32_t mask; } expected[] = {
		{ "0", 0x3 }, { "3", 0x3 }, { "0-3", 0x3 }, { "1,3", 0x3 },
		{ "4", 0xc }, { "4-7", 0xc }, { "7,500", 0xc },
		/* The process may run on either side: no rail is nearer. */
		{ "0-7", 0xf }, { "3-4", 0xf }, { "0,7", 0xf },
	};
	struct topo *t = machine("dual.xml");
	uint32_t mask;

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		mask = 0;
		assert_int_equal(topo_near(t, rails, 4, expected[i].cpus, &mask), 0);
		assert_int_equal(mask, expected[i].mask);
	}
	assert_int_equal(topo_near(t, part, 2, "0", &mask), 0);
	assert_int_equal(mask, 1);
	/* SYS is not known to be nearer than what is not known. */
	assert_int_equal(topo_near(t, part, 2, "4", &mask), 0);
	assert_int_equal(mask, 3);
	assert_int_equal(topo_near(t, part + 1, 1, "4", &mask), 0);
	assert_int_equal(mask, 1);
	topo_close(t);
}

static void test_near_by_node(void **state)
{
	static const char *const rails[] = { "mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3" };
	struct topo *t = machine("slot.xml");
	enum topo_path path;
	uint32_t mask;

	(void)state;
	assert_int_equal(topo_near(t, rails, 4, "0-1", &mask), 0);
	assert_int_equal(mask, 0x3);
	assert_int_equal(topo_near(t, rails, 4, "2", &mask), 0);
	assert_int_equal(mask, 0xf);
	assert_int_equal(topo_path_cpus(t, &t->adapter[0], "0-1", &path), 0);
	assert_int_equal(path, TOPO_PHB);
	assert_int_equal(topo_path_cpus(t, &t->adapter[0], "1-2", &path), 0);
	assert_int_equal(path, TOPO_NODE);
	topo_close(t);
}

static void test_near_bad_input(void **state)
{
	static const char *const rails[] = { "mlx5_0", "mlx5_2" };
	static const char *const lists[] = { "", "banana", "0-", "-1", "0,", ",0", "0--1", "0 1",
					     "8", "500-600", "99999999999", "0x1" };
	struct topo *t = machine("dual.xml");
	uint32_t mask = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		assert_int_equal(topo_near(t, rails, 2, lists[i], &mask), -EINVAL);
	assert_int_equal(topo_near(t, rails, 0, "0", &mask), -EINVAL);
	assert_int_equal(topo_near(t, rails, TOPO_RAILS_MAX + 1, "0", &mask), -EINVAL);
	assert_int_equal(mask, 77);
	topo_close(t);
}

/* Whatever this machine is. */
/* Nodes for memory: that of the CPUs, and one of the others. */
static void test_nodes(void **state)
{
	static const struct { const char *machine, *cpus; int near, far; } all[] = {
		{ "dual.xml", "0-3", 0, 1 }, { "dual.xml", "5", 1, 0 },
		{ "slot.xml", "0", 0, 1 }, { "slot.xml", "2,3", 1, 0 },
		{ "none.xml", "0", 0, -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct topo *t = machine(all[i].machine);

		assert_int_equal(topo_node(t, all[i].cpus, TOPO_NEAR), all[i].near);
		assert_int_equal(topo_node(t, all[i].cpus, TOPO_FAR), all[i].far);
		/* Memory of another machine cannot be bound. */
		assert_int_equal(topo_bind(t, NULL, 0, TOPO_NEAR), -ENOENT);
		topo_close(t);
	}
}

static void test_near_live(void **state)
{
	static const char *const rails[] = { "soft0", "soft1" };
	struct topo *t = NULL;
	uint32_t mask = 0;

	(void)state;
	assert_int_equal(topo_open(TOPO_RAILS, &t), 0);
	assert_true(t->live);
	assert_true(t->core_count >= 1);
	assert_int_equal(topo_near(t, rails, 2, NULL, &mask), 0);
	assert_int_equal(mask, 3);
	topo_close(t);
}

/* ---- Ranks -------------------------------------------------------------- */

static void spread_is(const uint32_t *mask, int ranks, const int *expected)
{
	int rail[16];

	topo_spread(mask, ranks, rail);
	for (int i = 0; i < ranks; i++)
		assert_int_equal(rail[i], expected[i]);
}

static void test_spread(void **state)
{
	(void)state;
	/* Ranks in blocks over two packages; by turns; with two far rails. */
	spread_is((const uint32_t[]){ 3, 3, 3, 3, 12, 12, 12, 12 }, 8,
		  (const int[]){ 0, 1, 0, 1, 2, 3, 2, 3 });
	spread_is((const uint32_t[]){ 3, 12, 3, 12, 3, 12, 3, 12 }, 8,
		  (const int[]){ 0, 2, 1, 3, 0, 2, 1, 3 });
	spread_is((const uint32_t[]){ 15, 15, 1, 1 }, 4, (const int[]){ 1, 2, 0, 0 });
	spread_is((const uint32_t[]){ 3, 1 }, 2, (const int[]){ 1, 0 });
	spread_is((const uint32_t[]){ 0, 4, 0 }, 3, (const int[]){ -1, 2, -1 });
	spread_is((const uint32_t[]){ UINT32_C(1) << 31 }, 1, (const int[]){ 31 });
	spread_is(NULL, 0, NULL);
}

/* Equal masks of any shape: counts differ by one at most, and each rail is of the mask. */
static void test_spread_is_even(void **state)
{
	(void)state;
	srand(4);
	for (int round = 0; round < 500; round++) {
		uint32_t one = (uint32_t)(rand() % 255 + 1), mask[64];
		int ranks = rand() % 64 + 1, rail[64], used[32] = { 0 }, low = 64, high = 0;

		for (int i = 0; i < ranks; i++)
			mask[i] = one;
		topo_spread(mask, ranks, rail);
		for (int i = 0; i < ranks; i++) {
			assert_true(one & UINT32_C(1) << rail[i]);
			used[rail[i]]++;
		}
		for (int i = 0; i < 32; i++) {
			if (!(one & UINT32_C(1) << i))
				continue;
			low = used[i] < low ? used[i] : low;
			high = used[i] > high ? used[i] : high;
		}
		assert_true(high - low <= 1);
	}
}

static void block_is(const struct topo *t, unsigned rank, unsigned ranks, const char *cores,
		     int numa, int package)
{
	struct topo_block block;

	assert_int_equal(topo_block(t, rank, ranks, &block), 0);
	assert_string_equal(block.cores, cores);
	assert_string_equal(block.cpus, cores);
	assert_int_equal(block.numa, numa);
	assert_int_equal(block.package, package);
	free(block.cores);
	free(block.cpus);
}

static void test_blocks(void **state)
{
	struct topo *t = machine("dual.xml");
	struct topo_block block;

	(void)state;
	block_is(t, 0, 8, "0", 0, 0);
	block_is(t, 7, 8, "7", 1, 1);
	block_is(t, 0, 3, "0-1", 0, 0);
	block_is(t, 1, 3, "2-4", -1, -1);
	block_is(t, 2, 3, "5-7", 1, 1);
	block_is(t, 0, 1, "0-7", -1, -1);
	block_is(t, 0, 16, "0", 0, 0);
	block_is(t, 1, 16, "0", 0, 0);
	block_is(t, 15, 16, "7", 1, 1);
	assert_int_equal(topo_block(t, 8, 8, &block), -EINVAL);
	topo_close(t);
}

/* A job that may use cores 1, 4 and 5 (of a cgroup, or so) sees the machine nevertheless. */
static void test_cores_of_a_job(void **state)
{
	static const char *const rails[] = { "mlx5_0", "mlx4_0" };
	static char text[32768];
	struct topo *t = NULL;
	char path[SCRATCH_PATH + 32], *at;
	uint32_t mask;
	FILE *f = fopen(saved("dual.xml"), "r");

	(void)state;
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	at = strstr(text, "allowed_cpuset=\"0x000000ff\"");
	assert_non_null(at);
	memcpy(at, "allowed_cpuset=\"0x00000032\"", strlen("allowed_cpuset=\"0x00000032\""));
	snprintf(path, sizeof(path), "%s/job.xml", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(topo_open_xml(path, &t), 0);
	assert_int_equal(t->package_count, 2);
	assert_int_equal(t->core_count, 8);
	assert_int_equal(t->usable_count, 3);
	assert_string_equal(t->cores[0].cores, "0-3");
	block_is(t, 0, 3, "1", 0, 0);
	block_is(t, 1, 3, "4", 1, 1);
	block_is(t, 2, 3, "5", 1, 1);
	block_is(t, 0, 1, "1,4-5", -1, -1);
	assert_int_equal(topo_near(t, rails, 2, "4-5", &mask), 0);
	assert_int_equal(mask, 2);
	topo_close(t);
}

/* ---- Links -------------------------------------------------------------- */

static void test_link_bytes(void **state)
{
	(void)state;
	assert_int_equal(topo_link_bytes(2500, 1), 250000000);
	assert_int_equal(topo_link_bytes(5000, 8), 4000000000);
	assert_int_equal(topo_link_bytes(8000, 8), 7876923076);
	assert_int_equal(topo_link_bytes(16000, 16), 31507692307);
	assert_int_equal(topo_link_bytes(32000, 16), 63015384615);
	assert_int_equal(topo_link_bytes(64000, 16), 121000000000);
	assert_int_equal(topo_link_bytes(128000, 32), 484000000000);
}

static void sysfs_write(const char *name, const char *text)
{
	char path[SCRATCH_PATH + 96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!text) {
		unlink(path);
		return;
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void link_is(const char *speed, const char *width, unsigned mt, unsigned lanes,
		    uint64_t bytes)
{
	struct topo_link link = { .at = "here" };

	sysfs_write("current_link_speed", speed);
	sysfs_write("current_link_width", width);
	sysfs_write("max_link_speed", "32.0 GT/s PCIe\n");
	sysfs_write("max_link_width", "16\n");
	topo_link_read(dir, &link);
	assert_string_equal(link.at, "here");
	assert_int_equal(link.mt_per_s, mt);
	assert_int_equal(link.lanes, lanes);
	assert_int_equal(link.bytes_per_s, bytes);
	assert_int_equal(link.max_mt_per_s, 32000);
	assert_int_equal(link.max_lanes, 16);
	assert_int_equal(link.max_bytes_per_s, 63015384615);
}

static void test_link_read(void **state)
{
	static const char *const speeds[] = { NULL, "", "Unknown\n", "16.0 GB/s PCIe\n", "17 GT/s\n",
					      "16.05 GT/s PCIe\n", "-8.0 GT/s PCIe\n",
					      "999999999999.0 GT/s\n", "GT/s\n" };
	static const char *const widths[] = { NULL, "", "0\n", "255\n", "-4\n", "wide\n", "33\n" };

	(void)state;
	link_is("16.0 GT/s PCIe\n", "16\n", 16000, 16, 31507692307);
	link_is("2.5 GT/s PCIe\n", "1\n", 2500, 1, 250000000);
	link_is("8 GT/s\n", "8\n", 8000, 8, 7876923076);
	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		link_is(speeds[i], "16\n", 0, 0, 0);
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		link_is("16.0 GT/s PCIe\n", widths[i], 0, 0, 0);
}

static void test_links(void **state)
{
	static const char *const at[] = { "0000:1a:00", "0000:18:08.0", "0000:17:00.0",
					  "0000:16:02.0" };
	struct topo *t = machine("dual.xml");
	struct topo_link link[TOPO_LINKS_MAX];
	struct topo_spot soft;

	(void)state;
	assert_int_equal(topo_links(t, &t->adapter[1], link), 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(link[i].at, at[i]);
		/* 31.507692 GB/s in hwloc's float. */
		assert_in_range(link[i].bytes_per_s, 31507690000, 31507694000);
		assert_int_equal(link[i].mt_per_s, 0);
		assert_int_equal(link[i].max_bytes_per_s, 0);
	}
	topo_find(t, "soft0", &soft);
	assert_int_equal(topo_links(t, &soft, link), 0);
	topo_close(t);
}

static void test_shares(void **state)
{
	/* The cards' own slots, the common slot of the first two, the switch of the others. */
	static const struct { uint32_t rails; const char *at; uint64_t bytes; } expected[] = {
		{ 0x4, "0000:43:00", 15753846153 }, { 0x8, "0000:44:00", 15753846153 },
		{ 0x3, "0000:01:00", 31507692307 }, { 0xc, "0000:41:00.0", 15753846153 },
	};
	struct topo *t = machine("slot.xml");
	const struct topo_spot *spot[4];
	struct topo_share share[TOPO_SHARES_MAX];

	(void)state;
	for (int i = 0; i < 4; i++)
		spot[i] = &t->adapter[i];
	assert_int_equal(topo_shares(t, spot, 4, share), 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(share[i].rails, expected[i].rails);
		assert_string_equal(share[i].link.at, expected[i].at);
		assert_int_equal(share[i].link.bytes_per_s, expected[i].bytes);
	}
	assert_int_equal(topo_shares(t, spot, 0, share), 0);
	topo_close(t);
}

/* ---- Ports -------------------------------------------------------------- */

static void test_ports(void **state)
{
	struct topo *dual = machine("dual.xml"), *slot = machine("slot.xml"), *far;
	struct topo_port p[TOPO_PORTS_MAX];

	(void)state;
	assert_int_equal(topo_ports(dual, 3, p), 2);
	assert_int_equal(p[0].number, 1);
	assert_string_equal(p[0].state, "ACTIVE");
	assert_int_equal(p[0].lid, 0x21);
	assert_string_equal(p[0].gid, "fe80::2:c903:11:2231");
	assert_string_equal(p[0].gid_type, "");
	assert_string_equal(p[0].link_layer, "");
	assert_false(p[0].rate_known);
	assert_int_equal(p[0].mtu_bytes, 0);
	assert_int_equal(p[1].number, 2);
	assert_string_equal(p[1].state, "DOWN");
	assert_int_equal(topo_ports(slot, 3, p), 1);
	assert_string_equal(p[0].kind, "hardware");
	assert_string_equal(p[0].link_layer, "Ethernet");
	assert_string_equal(p[0].gid_type, "RoCE v2");
	assert_string_equal(p[0].firmware, "20.31.1014");
	assert_true(p[0].gid_link_local);
	assert_true(p[0].rate_known);
	assert_int_equal(p[0].rate_bytes_per_s, 12500000000);
	assert_int_equal(p[0].mtu_bytes, 4096);
	assert_int_equal(p[0].gid_index, 1);
	assert_int_equal(p[0].lid, -1);
	assert_int_equal(p[0].rail, 3);
	assert_int_equal(topo_ports(dual, 0, p), 1);
	assert_int_equal(p[0].rail, -1);
	far = machine("far.xml");
	assert_int_equal(topo_ports(far, 1, p), 0);
	topo_close(far);
	topo_close(slot);
	topo_close(dual);
}

/* All saved values are read again, and replace none of hwloc's. */
static void test_save(void **state)
{
	static const struct topo_port noted = {
		.number = 1, .kind = "hardware", .link_layer = "InfiniBand", .state = "INIT",
		.firmware = "1.2.3", .gid = "fe80::1", .gid_type = "IB", .gid_index = 7, .lid = 9,
		.rail = 5, .mtu_bytes = 2048, .rate_known = true, .rate_bytes_per_s = 12345678901,
	};
	struct topo *t = machine("far.xml"), *again = NULL;
	struct topo_port p[TOPO_PORTS_MAX];
	char path[SCRATCH_PATH + 32];

	(void)state;
	assert_true(topo_is_saved(t, "mlx5_9"));
	assert_false(topo_is_saved(t, "soft0"));
	assert_int_equal(topo_port_note(t, "soft0", &noted), -ENODEV);
	assert_int_equal(topo_port_note(t, "mlx5_9", &noted), 0);
	assert_int_equal(topo_port_note(t, "mlx5_0", &noted), 0);
	snprintf(path, sizeof(path), "%s/again.xml", dir);
	assert_int_equal(topo_save(t, path), 0);
	assert_int_equal(topo_open_xml(path, &again), 0);
	assert_int_equal(topo_ports(again, 1, p), 1);
	assert_int_equal(p[0].number, 1);
	assert_string_equal(p[0].kind, noted.kind);
	assert_string_equal(p[0].link_layer, noted.link_layer);
	assert_string_equal(p[0].state, noted.state);
	assert_string_equal(p[0].firmware, noted.firmware);
	assert_string_equal(p[0].gid, noted.gid);
	assert_string_equal(p[0].gid_type, noted.gid_type);
	assert_int_equal(p[0].gid_index, 7);
	assert_int_equal(p[0].lid, 9);
	assert_int_equal(p[0].rail, 5);
	assert_int_equal(p[0].mtu_bytes, 2048);
	assert_true(p[0].rate_known);
	assert_int_equal(p[0].rate_bytes_per_s, 12345678901);
	assert_int_equal(topo_ports(again, 0, p), 1);
	assert_string_equal(p[0].state, "ACTIVE");
	assert_int_equal(p[0].rate_bytes_per_s, 50000000000);
	topo_close(again);
	topo_close(t);
}

/* ---- Files that are none ------------------------------------------------ */

static void open_fails(const char *path, int expected, const char *line)
{
	struct topo *t = (struct topo *)&t;
	const char *text;
	int rc;

	capture_begin(2);
	rc = topo_open_xml(path, &t);
	text = capture_end();
	assert_int_equal(rc, expected);
	assert_ptr_equal(t, &t);
	assert_non_null(strstr(text, line));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* The first `bytes` of dual.xml. */
static void test_damaged_files(void **state)
{
	static char whole[32768];
	char path[SCRATCH_PATH + 32];
	size_t bytes;
	FILE *f = fopen(saved("dual.xml"), "r");

	(void)state;
	assert_non_null(f);
	bytes = fread(whole, 1, sizeof(whole), f);
	fclose(f);
	assert_in_range(bytes, 4000, sizeof(whole) - 1);
	snprintf(path, sizeof(path), "%s/torn.xml", dir);
	for (size_t n = 0; n + 20 < bytes; n += 97) {
		f = fopen(path, "w");
		assert_non_null(f);
		assert_int_equal(fwrite(whole, 1, n, f), n);
		assert_int_equal(fclose(f), 0);
		open_fails(path, -EINVAL, "damaged, or no topology");
	}
	snprintf(path, sizeof(path), "%s/none.xml", dir);
	open_fails(path, -ENOENT, "No such file");
	open_fails(dir, -EISDIR, "Is a directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_there_is),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_paths_within_a_package),
		cmocka_unit_test(test_places_not_known),
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_near_by_node),
		cmocka_unit_test(test_near_bad_input),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_near_live),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_spread_is_even),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_cores_of_a_job),
		cmocka_unit_test(test_link_bytes),
		cmocka_unit_test(test_link_read),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_save),
		cmocka_unit_test(test_damaged_files),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
