/* test_class.c - what a class can run on, and the words if it cannot. */
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "nas/ft.h"
#include "nas/is.h"

static const struct nas_kernel is = { "IS", is_ranks_max, is_memory_bytes };
static const struct nas_kernel ft = { "FT", ft_ranks_max, ft_memory_bytes };

static void fits(const struct nas_kernel *k, enum nas_class c, int ranks, uint64_t available)
{
	char why[384];

	assert_int_equal(nas_check(k, c, ranks, available, why, sizeof(why)), 0);
}

static void refuses(const struct nas_kernel *k, enum nas_class c, int ranks, uint64_t available,
		    const char *words)
{
	char why[384] = "";

	assert_int_equal(nas_check(k, c, ranks, available, why, sizeof(why)), -EINVAL);
	if (!strstr(why, words))
		fail_msg("'%s' is not in '%s'", words, why);
}

static void test_ranks(void **state)
{
	(void)state;
	for (int c = NAS_S; c <= NAS_C; c++) {
		fits(&is, (enum nas_class)c, 1, UINT64_MAX);
		fits(&is, (enum nas_class)c, 512, UINT64_MAX);
		fits(&ft, (enum nas_class)c, 1, UINT64_MAX);
		fits(&ft, (enum nas_class)c, 4096, UINT64_MAX);
	}
	refuses(&is, NAS_S, 3, UINT64_MAX, "3 ranks: IS is defined for powers of two");
	refuses(&is, NAS_S, 3, UINT64_MAX, "(accepted: 2 or 4)");
	refuses(&ft, NAS_A, 1000, UINT64_MAX, "(accepted: 512 or 1024)");
	refuses(&is, NAS_S, 1024, UINT64_MAX,
		"--class S: 1024 ranks, of which IS has work for 512 (accepted here: W, A, B or C; "
		"or fewer ranks)");
	refuses(&ft, NAS_S, 8192, UINT64_MAX, "has work for 4096 (accepted here: A, B or C;");
	refuses(&is, NAS_C, 1 << 20, UINT64_MAX, "(accepted here: none;");
}

static void test_memory(void **state)
{
	const uint64_t mib = 1 << 20;

	(void)state;
	/* Between one and about four times the size of the problem's data. */
	assert_true(is_memory_bytes(NAS_C, 1) > 3 * 512 * mib);
	assert_true(is_memory_bytes(NAS_C, 1) < 4 * 512 * mib);
	assert_true(ft_memory_bytes(NAS_C, 1) > 2 * 2048 * mib);
	assert_true(ft_memory_bytes(NAS_C, 2) > 3 * 1024 * mib);
	assert_true(ft_memory_bytes(NAS_C, 2) < 4 * 1024 * mib);
	fits(&ft, NAS_S, 1, 16 * mib);
	refuses(&ft, NAS_C, 2, 1024 * mib, "--class C: each of 2 ranks needs 30");
	refuses(&ft, NAS_C, 2, 1024 * mib,
		"1024.0 MiB can be had (accepted here: S, W, A or B; or more hosts)");
	refuses(&ft, NAS_B, 1, 100 * mib, "--class B: each of 1 rank needs");
	refuses(&is, NAS_S, 1, 100, "(accepted here: none;");
	refuses(&is, NAS_A, 1, mib, "(accepted here: S;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
