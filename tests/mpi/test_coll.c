/* test_coll.c - which algorithm: --coll, rules of files, the table; what is refused. */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi/coll/coll.h"
#include "mpi/railmpi.h"
#include "util/opt.h"
#include "scratch.h"

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16], why[OPT_WHY_BYTES];

static int set_up(void **state)
{
	if (scratch_make(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/table", dir);
	return 0;
}

static int tear_down(void **state)
{
	return scratch_remove(dir);
}

/* --coll @FILE and what follows, with this in the file. */
static int set_bytes(const char *text, size_t bytes, const char *more)
{
	char list[SCRATCH_PATH + 128];
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, bytes, f), bytes);
	assert_int_equal(fclose(f), 0);
	snprintf(list, sizeof(list), "@%s%s", path, more);
	assert_int_equal(coll_check(list, why, sizeof(why)), 0);
	*why = '\0';
	return coll_set(list, why, sizeof(why));
}

static int set(const char *text, const char *more)
{
	return set_bytes(text, strlen(text), more);
}

static enum coll_algorithm alltoall(int ranks, size_t bytes)
{
	return coll_choose(COLL_ALLTOALL, ranks, bytes, 0);
}

static void test_first_rule_that_fits(void **state)
{
	assert_int_equal(set("# by hand\n\n"
			     "alltoall 4 1K linear	# up to 4 ranks\r\n"
			     "bcast 0 0 chain\n"
			     " alltoall\t8 64 bruck\n"
			     "alltoall 8 0 pairwise", ""), 0);
	assert_int_equal(alltoall(4, 1024), COLL_LINEAR);
	assert_int_equal(alltoall(4, 1025), COLL_PAIRWISE);
	assert_int_equal(alltoall(5, 64), COLL_BRUCK);
	assert_int_equal(alltoall(5, 65), COLL_PAIRWISE);
	assert_int_equal(coll_choose(COLL_BCAST, 2, 1, 0), COLL_CHAIN);
	/* None fits, and no rule: the table. */
	assert_int_equal(alltoall(9, 256), COLL_BRUCK);
	assert_int_equal(alltoall(9, 257), COLL_LINEAR);
	assert_int_equal(coll_choose(COLL_SCAN, 9, 1, 0), COLL_DOUBLING);
}

static void test_needs_and_forced(void **state)
{
	assert_int_equal(set("alltoall 0 0 pairwise-rails\nallreduce 0 0 ring\n", ""), 0);
	assert_int_equal(alltoall(4, 8), COLL_PAIRWISE);
	assert_int_equal(coll_choose(COLL_ALLTOALL, 4, 8, COLL_RAILS), COLL_PAIRWISE_RAILS);
	assert_int_equal(coll_choose(COLL_ALLREDUCE, 4, 8, 0), COLL_DOUBLING);
	assert_int_equal(set("alltoall 0 0 bruck\nbcast 0 0 chain\n", ",alltoall=linear"), 0);
	assert_int_equal(alltoall(4, 8), COLL_LINEAR);
	assert_int_equal(coll_choose(COLL_BCAST, 4, 8, 0), COLL_CHAIN);
	assert_int_equal(coll_set(NULL, why, sizeof(why)), 0);
	assert_int_equal(coll_choose(COLL_BCAST, 4, 8, 0), COLL_BINOMIAL);
}

static void test_steered_by_program(void **state)
{
	size_t bytes;
	int i;

	assert_int_equal(set("alltoall 0 0 bruck\n", ",alltoall=linear"), 0);
	assert_int_equal(railmpi_coll("alltoall=pairwise", why, sizeof(why)), 0);
	assert_int_equal(alltoall(4, 77), COLL_PAIRWISE);
	assert_string_equal(railmpi_coll_used(&bytes), "pairwise");
	assert_int_equal(bytes, 77);
	assert_int_equal(railmpi_coll("auto", why, sizeof(why)), 0);
	assert_int_equal(alltoall(4, 8), COLL_BRUCK);
	assert_int_equal(railmpi_coll("alltoall=quick", why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "no alltoall 'quick' (accepted: auto, native, bruck"));
	assert_int_equal(railmpi_coll("@table", why, sizeof(why)), -EINVAL);
	for (i = 0; railmpi_coll_candidate("alltoall", i); i++)
		;
	assert_int_equal(i, 4);
	assert_null(railmpi_coll_candidate("barrier", 1));
	assert_null(railmpi_coll_candidate("nothing", 0));
}

static void test_digest(void **state)
{
	uint64_t first;

	assert_int_equal(set("alltoall 0 64 bruck\nalltoall 4 0 linear\n", ""), 0);
	first = coll_digest();
	assert_int_equal(set("alltoall 0 64 bruck # said differently\n\nalltoall 4 0 linear", ""), 0);
	assert_true(coll_digest() == first);
	assert_int_equal(set("alltoall 4 0 linear\nalltoall 0 64 bruck\n", ""), 0);
	assert_true(coll_digest() != first);
	assert_int_equal(set("alltoall 0 64 bruck\nalltoall 4 0 linear\n", ",bcast=chain"), 0);
	assert_true(coll_digest() != first);
}

static void refused(const char *text, size_t bytes, const char *words)
{
	uint64_t before;

	assert_int_equal(coll_set("bcast=chain", why, sizeof(why)), 0);
	before = coll_digest();
	assert_int_equal(set_bytes(text, bytes, ""), -EINVAL);
	assert_true(strncmp(why, "@", 1) == 0 && strstr(why, words));
	assert_true(coll_digest() == before);
}

static void test_damaged(void **state)
{
	static const struct { const char *text, *words; } cases[] = {
		{"\n\nbcats 0 0 chain", "line 3: no collective 'bcats' (accepted: barrier, "},
		{"bcast 0 0 bruck", "line 1: no bcast 'bruck' (accepted: binomial, scatter-ring, "},
		{"bcast 0 0 native", "line 1: no bcast 'native'"},
		{"bcast 0 0 auto", "line 1: no bcast 'auto'"},
		{"bcast 0 0\n", "line 1: too few words (accepted: COLLECTIVE RANKS BYTES ALG"},
		{"bcast 0 0 chain chain", "line 1: too many words"},
		{"bcast 0 0 chain 1 2 3 4 5 6", "line 1: too many words"},
		{"bcast -1 0 chain", "line 1: RANKS -1: no such number (accepted: 0 to 1048576"},
		{"bcast 1048577 0 chain", "line 1: RANKS 1048577: "},
		{"bcast 0 1025G chain", "line 1: BYTES 1025G: no such size (accepted: 0 to 1T"},
		{"bcast 0 99999999999999999999 chain", "line 1: BYTES"},
		{"bcast 0 0 ch\x01in", "line 1: a byte that is no text"},
		{"bcast 0 0 ch\xffin", "line 1: a byte that is no text"},
	};
	char *many = malloc(70000);
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].text, strlen(cases[i].text), cases[i].words);
	refused("scan 0 0 linear\nscan 0 0\0linear\n", 33, "line 2: a byte that is no text");
	assert_non_null(many);
	memset(many, '#', 70000);
	refused(many, 65537, "is too long (accepted: up to 64K)");
	assert_int_equal(set_bytes(many, 65536, ""), 0);
	for (i = 0; i < 1025; i++)
		memcpy(many + i * 16, "scan 0 0 linear\n", 16);
	refused(many, i * 16, "line 1025: too many rules (accepted: up to 1024)");
	free(many);
}

static void test_no_file(void **state)
{
	char list[SCRATCH_PATH + 16];

	snprintf(list, sizeof(list), "@%s/none", dir);
	assert_int_equal(coll_set(list, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "cannot be read: No such file"));
	snprintf(list, sizeof(list), "@%s", dir);
	assert_int_equal(coll_set(list, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "is no regular file"));
	snprintf(list, sizeof(list), "@%s/pipe", dir);
	assert_int_equal(mkfifo(list + 1, 0600), 0);
	assert_int_equal(coll_set(list, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "is no regular file"));
	assert_int_equal(coll_check("@", why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "(accepted: @FILE)"));
}

/* Whatever becomes of a table: it is taken or refused with a line, and then works as it says. */
static void test_random_damage(void **state)
{
	static const char table[] = "# table\nalltoall 4 256 bruck\nalltoall 4 0 linear\n"
				    "bcast 16 64K binomial\nallreduce 0 1M ring\n";
	char text[sizeof(table)];
	int round, left, taken = 0;

	srand(20);
	for (round = 0; round < 3000; round++) {
		size_t bytes = sizeof(table) - 1;

		memcpy(text, table, sizeof(table));
		for (left = rand() % 4; left > 0; left--)
			text[rand() % (int)bytes] = (char)(rand() % 3 ? 32 + rand() % 95 : rand());
		if (rand() % 4 == 0)
			bytes = (size_t)rand() % bytes;
		if (set_bytes(text, bytes, "")) {
			assert_true(strlen(why) > 10 && strstr(why, "(accepted: "));
			continue;
		}
		taken++;
		assert_in_range(alltoall(3, 100), COLL_BRUCK, COLL_LINEAR);
	}
	assert_in_range(taken, 100, 2900);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_rule_that_fits), cmocka_unit_test(test_needs_and_forced),
		cmocka_unit_test(test_steered_by_program),   cmocka_unit_test(test_digest),
		cmocka_unit_test(test_damaged),		     cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_random_damage),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
