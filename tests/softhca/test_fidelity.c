/* test_fidelity.c - when a machine is reported unable to keep to a model. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sched.h>

#include "cmocka_all.h"
#include "softhca/model/fidelity.h"

static struct hca_spec parse(const char *text)
{
	struct hca_spec s;
	char why[320];

	if (hca_spec_parse(text, &s, why, sizeof(why)))
		fail_msg("%s", why);
	return s;
}

static void test_adapter_rate(void **state)
{
	static const struct {
		const char *spec;
		uint64_t rate;
	} cases[] = {
		{ "ideal", 0 }, { "latency=1us", 0 }, { "rate=1GB/s,ports=3", 3000000000ull },
		{ "rate=1GB/s,cap=1.5GB/s", 1500000000 },
		{ "rate=1GB/s,cap=1.5GB/s,bus=1.2GB/s/1.4GB/s", 1200000000 },
		{ "bus=3GB/s/2GB/s:half", 2000000000 }, { "cap=7GB/s", 7000000000ull },
		{ "hdr-1slot", 28100000000ull }, { "hdr-2port", 50000000000ull },
	};
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct hca_spec s = parse(cases[i].spec);

		assert_int_equal(hca_adapter_rate(&s), cases[i].rate);
	}
}

/* Rates are compared with a quarter of a core's copy rate on this machine. */
static void test_rates(void **state)
{
	struct hca_spec slow = parse("rate=1kB/s,ports=1"), fast = parse("rate=1000GB/s");
	char line[256];

	assert_in_range(hca_copy_rate(), 100000000, 1000000000000ull);
	assert_int_equal(hca_copy_rate(), hca_copy_rate());
	assert_int_equal(hca_fidelity(&fast, 1, line, sizeof(line)), 1);
	assert_non_null(strstr(line, "2000GB/s per adapter and direction cannot be kept here"));
	assert_null(strchr(line, '\n'));
	if (hca_fidelity(&slow, 1, line, sizeof(line)))
		assert_non_null(strstr(line, "processes share"));	/* a busy machine */
}

static void test_processes(void **state)
{
	struct hca_spec untimed = parse("ideal"), timed = parse("latency=1us");
	char line[256];

	assert_int_equal(hca_fidelity(&timed, hca_cores() + 1, line, sizeof(line)), 1);
	assert_non_null(strstr(line, "processes share"));
	assert_int_equal(hca_fidelity(&untimed, hca_cores() + 1, line, sizeof(line)), 0);
	assert_string_equal(line, "");
}

static void test_cpus(void **state)
{
	static const struct {
		const char *list;
		unsigned cpus;
	} cases[] = {
		{ "0\n", 1 }, { "0-3\n", 4 }, { "0-3,8\n", 5 }, { "2,4,6-7", 4 }, { "0-0", 1 },
		{ "10-127,200-201", 120 }, { "\n", 0 }, { "", 0 }, { "none", 0 }, { "0-3;5", 4 },
		{ "3-1", 0 }, { "1,", 1 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(hca_cpus_count(cases[i].list), cases[i].cpus);
}

/* A process that is bound to one core still has a machine of many. */
static void test_bound(void **state)
{
	unsigned before = hca_cores();
	cpu_set_t all, one;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(hca_cores(), before);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adapter_rate), cmocka_unit_test(test_rates),
		cmocka_unit_test(test_processes), cmocka_unit_test(test_bound),
		cmocka_unit_test(test_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
