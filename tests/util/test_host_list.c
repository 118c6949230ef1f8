/* Names of hosts in the short form of Slurm. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "util/host_list.h"

#define LIST(...) list((const char *const[]){ __VA_ARGS__, NULL })

static const char *list(const char *const *name)
{
	static char kept[256];
	int count = 0;
	char *text;

	while (name[count])
		count++;
	text = rg_host_list(name, count);
	assert_non_null(text);
	assert_true(strlen(text) < sizeof(kept));
	strcpy(kept, text);
	free(text);
	return kept;
}

static void ranges(void **state)
{
	(void)state;
	assert_string_equal(LIST("n1"), "n1");
	assert_string_equal(LIST("n9", "n1", "n3", "n2", "n4", "n6", "n5"), "n[1-6,9]");
	assert_string_equal(LIST("n14", "n77"), "n[14,77]");
	assert_string_equal(LIST("n9", "n10", "n11"), "n[9-11]");
	assert_string_equal(LIST("n1", "n1", "n2"), "n[1-2]");
}

static void zeros_stay(void **state)
{
	(void)state;
	assert_string_equal(LIST("n08", "n09", "n10"), "n[08-10]");
	assert_string_equal(LIST("n099", "n100"), "n[099-100]");
	assert_string_equal(LIST("n9", "n010"), "n[9,010]");
	assert_string_equal(LIST("n1", "n01"), "n[1,01]");
}

static void families(void **state)
{
	(void)state;
	assert_string_equal(LIST("login", "n2", "n1", "gpu1"), "gpu1,login,n[1-2]");
	assert_string_equal(LIST("n1.a", "n2.a", "n1.b3"), "n[1-2].a,n1.b3");
	assert_string_equal(LIST("r1n1", "r1n2", "r2n1"), "r1n[1-2],r2n1");
	assert_string_equal(LIST("n1-ib", "n2-ib"), "n[1-2]-ib");
	assert_string_equal(LIST("7", "8"), "[7-8]");
	assert_string_equal(LIST("n99999999999999999999"), "n99999999999999999999");
}

static void none(void **state)
{
	char *text = rg_host_list(NULL, 0);

	(void)state;
	assert_string_equal(text, "");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges), cmocka_unit_test(zeros_stay), cmocka_unit_test(families),
		cmocka_unit_test(none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
