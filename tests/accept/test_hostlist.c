/* test_hostlist.c - names of hosts in Slurm's compact form. */
#include "cmocka_all.h"

#include <stdlib.h>

#include "accept/accept.h"

#define LIST(...) (const char *const[]){ __VA_ARGS__ }, \
	(int)(sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void is_list(const char *const *names, int count, const char *expected)
{
	char *list = accept_hostlist(names, count);

	assert_non_null(list);
	assert_string_equal(list, expected);
	free(list);
}

static void test_lists(void **state)
{
	(void)state;
	is_list(NULL, 0, "");
	is_list(LIST("n14"), "n14");
	is_list(LIST("n77", "n14"), "n[14,77]");
	is_list(LIST("n1", "n2", "n3", "n7"), "n[1-3,7]");
	is_list(LIST("n9", "n10", "n11"), "n[9-11]");
	is_list(LIST("n1", "n1"), "n1");
	is_list(LIST("login", "n2", "login", "n1"), "login,n[1-2]");
	is_list(LIST("gpu01-ib", "gpu02-ib", "gpu10-ib"), "gpu[01-02,10]-ib");
	is_list(LIST("r1n3", "r1n4", "r2n3"), "r1n[3-4],r2n3");
	is_list(LIST("n3.rack1", "n4.rack1", "n4.rack2"), "n[3-4].rack1,n4.rack2");
}

/* Names that write their numbers with zeros keep them. */
static void test_zeros(void **state)
{
	(void)state;
	is_list(LIST("n008", "n009", "n010"), "n[008-010]");
	is_list(LIST("n1", "n01"), "n1,n01");
	is_list(LIST("virtual node 1", "virtual node 2"), "virtual node [1-2]");
	is_list(LIST("n123456789012345678901", "7"), "n123456789012345678901,7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
