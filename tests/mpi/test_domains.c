/* test_domains.c - places of processes on machines whose lists of CPUs are made up. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi/job/domains.h"

static char root[] = "/tmp/rg-domains-XXXXXX";

static void file_write(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0777);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Two packages of eight CPUs; a last cache for each four. */
static int machine_make(void **state)
{
	assert_non_null(mkdtemp(root));
	file_write("online", "0-15\n");
	file_write("cpu1/cache/index0/shared_cpu_list", "1\n");
	file_write("cpu1/cache/index1/shared_cpu_list", "1\n");
	file_write("cpu1/cache/index2/shared_cpu_list", "0-1\n");
	file_write("cpu1/cache/index3/shared_cpu_list", "0-3\n");
	file_write("cpu1/topology/package_cpus_list", "0-7\n");
	file_write("cpu9/cache/index0/shared_cpu_list", "8-11\n");
	file_write("cpu9/topology/core_siblings_list", "8-15\n");
	return 0;
}

static int machine_remove(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static enum rail_place place(const char *mine, const char *theirs)
{
	uint64_t a[DOMAIN_WORDS], b[DOMAIN_WORDS];
	struct domains d;

	domains_parse(mine, a);
	domains_parse(theirs, b);
	domains_read(root, a, &d);
	return domains_place(&d, a, b);
}

static void test_places(void **state)
{
	assert_int_equal(place("1", "0"), RAIL_PLACE_CACHE);
	assert_int_equal(place("1-3", "1-3"), RAIL_PLACE_CACHE);
	assert_int_equal(place("1", "4"), RAIL_PLACE_PACKAGE);
	assert_int_equal(place("1-7", "0"), RAIL_PLACE_PACKAGE);
	assert_int_equal(place("1", "8-15"), RAIL_PLACE_APART);
	assert_int_equal(place("9", "3"), RAIL_PLACE_APART);
	assert_int_equal(place("9", "11"), RAIL_PLACE_CACHE);
}

static void test_not_bound(void **state)
{
	assert_int_equal(place("1", "0-15"), RAIL_PLACE_UNBOUND);
	assert_int_equal(place("1-15,0", "1"), RAIL_PLACE_UNBOUND);
	assert_int_equal(place("1", "6-9"), RAIL_PLACE_UNBOUND);
	assert_int_equal(place("1-8", "1"), RAIL_PLACE_UNBOUND);
}

/* A kernel that tells nothing of a CPU: no place is known. */
static void test_nothing_to_read(void **state)
{
	assert_int_equal(place("5", "6"), RAIL_PLACE_HOST);
	assert_int_equal(place("", ""), RAIL_PLACE_HOST);
}

static void test_lists(void **state)
{
	uint64_t cpus[DOMAIN_WORDS];

	domains_parse("0-3,8,1022-5000", cpus);
	assert_true(cpus[0] == 0x10f && cpus[DOMAIN_WORDS - 1] == UINT64_C(3) << 62 && !cpus[1]);
	domains_parse("\n", cpus);
	assert_true(!cpus[0]);
	domains_parse("7-,x", cpus);
	assert_true(!cpus[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_not_bound),
		cmocka_unit_test(test_nothing_to_read),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, machine_make, machine_remove);
}
