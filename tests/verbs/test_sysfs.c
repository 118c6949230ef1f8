/* test_sysfs.c - ports of a tree that is mounted over /sys/class, in a mount namespace. */
#include "cmocka_all.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/sysfs.h"

static void directory(const char *path)
{
	char part[256];

	for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		mkdir(part, 0755);
	}
}

static void file(const char *path, const char *text)
{
	FILE *out;

	directory(path);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void test_rate(void **state)
{
	static const struct { const char *text; uint64_t bytes_per_s; } cases[] = {
		{ "800 Gb/sec (4X XDR)\n", 100000000000 }, { "2.5 Gb/sec (1X SDR)\n", 312500000 },
		{ "", 0 }, { "fast\n", 0 }, { "800\n", 0 }, { "-1 Gb/sec (4X)\n", 0 },
		{ "nan Gb/sec (4X)\n", 0 }, { "1e30 Gb/sec (4X)\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		file("/sys/class/infiniband/mlx5_0/ports/1/rate", cases[i].text);
		assert_int_equal(vrb_sysfs_rate("mlx5_0", 1), cases[i].bytes_per_s);
	}
	assert_int_equal(vrb_sysfs_rate("mlx5_0", 2), 0);
}

static void test_tclass(void **state)
{
	static const struct { const char *text; int tclass; } cases[] = {
		{ "Global tclass=106\n", 106 }, { "96\n", 96 }, { "0x60\n", 96 }, { "Global tclass=0\n", 0 },
		{ "", -1 }, { "\n", -1 }, { "none\n", -1 }, { "Global tclass=256\n", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		file("/sys/class/infiniband/mlx5_0/tc/1/traffic_class", cases[i].text);
		assert_int_equal(vrb_sysfs_tclass("mlx5_0", 1), cases[i].tclass);
	}
	assert_int_equal(vrb_sysfs_tclass("mlx5_1", 1), -1);
}

static void test_lag(void **state)
{
	(void)state;
	file("/sys/class/infiniband/mlx5_2/ports/1/gid_attrs/ndevs/0", "bond0\n");
	assert_false(vrb_sysfs_is_lag("mlx5_2", 1));
	file("/sys/class/net/bond0/bonding/slaves", "eth0 eth1\n");
	assert_true(vrb_sysfs_is_lag("mlx5_2", 1));
	assert_false(vrb_sysfs_is_lag("mlx5_2", 2));
	assert_true(vrb_sysfs_is_lag("mlx5_bond_0", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_tclass),
		cmocka_unit_test(test_lag),
	};

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/sys/class", "tmpfs", 0, NULL)) {
		printf("no tree can be mounted over /sys/class\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
