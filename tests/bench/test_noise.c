/* test_noise.c - the kernel's counters of a process, and the cores of its CPUs, from files of known text. */
#include "config.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/cores.h"
#include "bench/noise_read.h"
#include "scratch.h"

static char root[SCRATCH_PATH];

static int setup(void **state)
{
	char path[SCRATCH_PATH + 16];

	if (scratch_make(root))
		return -1;
	snprintf(path, sizeof(path), "%s/self", root);
	return mkdir(path, 0777);
}

static int teardown(void **state)
{
	return scratch_remove(root);
}

/* text NULL: no such file. */
static void file_put(const char *name, const char *text)
{
	char path[2 * SCRATCH_PATH];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	remove(path);
	if (!text)
		return;
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void test_wait(void **state)
{
	static const struct { const char *text; uint64_t wait_ns, slices; } cases[] = {
		{ "245168411 370469868 117\n", 370469868, 117 },
		{ "0 0 1\n", 0, 1 },
		{ "7 18446744073709551614 3\n", UINT64_MAX - 1, 3 },
		{ "0 0 0\n", NOISE_UNKNOWN, NOISE_UNKNOWN },	/* a kernel without this accounting */
		{ "245168411 370469868\n", NOISE_UNKNOWN, NOISE_UNKNOWN },
		{ "", NOISE_UNKNOWN, NOISE_UNKNOWN },
		{ "x", NOISE_UNKNOWN, NOISE_UNKNOWN },
		{ NULL, NOISE_UNKNOWN, NOISE_UNKNOWN },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct noise_files f;

		file_put("self/schedstat", cases[i].text);
		noise_files_open(&f, root);
		assert_true(noise_waits(&f).ns == cases[i].wait_ns);
		assert_true(noise_waits(&f).slices == cases[i].slices);
		noise_files_close(&f);
		assert_true(noise_waits(&f).ns == NOISE_UNKNOWN);
	}
}

static void test_steal(void **state)
{
	static const struct { const char *text; uint64_t ticks; } cases[] = {
		{ "cpu  4915240 617820 2994370 3037976 42263 0 8105 20315 0 0\ncpu0 1 2 3 4 5 6 7 8\n", 20315 },
		{ "cpu  1 2 3 4 5 6 7\n", NOISE_UNKNOWN },
		{ "intr 1 2 3 4 5 6 7 8\n", NOISE_UNKNOWN },
		{ NULL, NOISE_UNKNOWN },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct noise_files f;

		file_put("stat", cases[i].text);
		noise_files_open(&f, root);
		assert_true(noise_steal_ticks(&f) == cases[i].ticks);
		noise_files_close(&f);
	}
}

/* An open file has the value of the moment. */
static void test_again(void **state)
{
	char path[2 * SCRATCH_PATH];
	struct noise_files f;
	FILE *out;

	file_put("self/schedstat", "10 20 30\n");
	noise_files_open(&f, root);
	assert_true(noise_waits(&f).ns == 20);
	snprintf(path, sizeof(path), "%s/self/schedstat", root);
	out = fopen(path, "r+");
	fputs("11 29 31\n", out);
	fclose(out);
	assert_true(noise_waits(&f).ns == 29);
	noise_files_close(&f);
}

static void test_since(void **state)
{
	assert_true(noise_since(3, 10) == 7);
	assert_true(noise_since(10, 10) == 0);
	assert_true(noise_since(10, 3) == 0);
	assert_true(noise_since(NOISE_UNKNOWN, 3) == NOISE_UNKNOWN);
	assert_true(noise_since(3, NOISE_UNKNOWN) == NOISE_UNKNOWN);
}

static void siblings_put(int cpu, const char *list)
{
	char path[2 * SCRATCH_PATH];

	snprintf(path, sizeof(path), "mkdir -p '%s/cpu%d/topology'", root, cpu);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "cpu%d/topology/thread_siblings_list", cpu);
	file_put(path, list);
}

/* CPUs 0 and 2 are of one core, 1 and 3 of another, 4 of a third; the list of 5 is damaged. */
static void test_cores(void **state)
{
	static const struct { int cpu[3], core[2], count; bool known; } cases[] = {
		{ { 0, 2, 2 }, { 0, 0 }, 1, true },
		{ { 3, 3, 3 }, { 1, 1 }, 1, true },
		{ { 1, 2, 3 }, { 0, 1 }, 2, true },
		{ { 4, 4, 0 }, { 0, 4 }, 2, true },
		{ { 0, 5, 1 }, { 0, 0 }, 0, false },
		{ { 9, 9, 9 }, { 0, 0 }, 0, false },
	};

	siblings_put(0, "0,2\n");
	siblings_put(1, "1,3\n");
	siblings_put(2, "0,2\n");
	siblings_put(3, "1,3\n");
	siblings_put(4, "4-4\n");
	siblings_put(5, "?\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cpu_set_t cpus, cores;

		CPU_ZERO(&cpus);
		for (int k = 0; k < 3; k++)
			CPU_SET(cases[i].cpu[k], &cpus);
		assert_int_equal(cores_of(root, &cpus, &cores), cases[i].known);
		assert_int_equal(CPU_COUNT(&cores), cases[i].count);
		for (int k = 0; k < 2 && cases[i].known; k++)
			assert_true(CPU_ISSET(cases[i].core[k], &cores));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait), cmocka_unit_test(test_steal), cmocka_unit_test(test_again),
		cmocka_unit_test(test_since), cmocka_unit_test(test_cores),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
