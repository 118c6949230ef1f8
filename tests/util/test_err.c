/* test_err.c - the one line, and the launcher's rank. */
#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "util/err.h"

static void test_line(void **state)
{
	static char longest[5000];
	const char *text;

	rg_set_program("/a/b/rg_x");
	capture_begin(2);
	errno = ENOSPC;
	rg_error("%s is %d", "it", 5);
	assert_int_equal(errno, ENOSPC);
	assert_string_equal(capture_end(), "rg_x: it is 5\n");
	capture_begin(2);
	rg_warn("two\nlines\x1b[0m");
	assert_string_equal(capture_end(), "rg_x: warning: two?lines?[0m\n");
	memset(longest, 'z', sizeof(longest) - 1);
	capture_begin(2);
	rg_error("%s", longest);
	text = capture_end();
	assert_true(strlen(text) < 4096);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	rg_set_quiet(true);
	capture_begin(2);
	rg_error("silence");
	assert_string_equal(capture_end(), "");
	rg_set_quiet(false);
}

/* A quiet rank may be the one that alone has an error. */
static void test_held_quietly(void **state)
{
	rg_set_program("rg_x");
	rg_set_quiet(true);
	capture_begin(2);
	rg_errors_hold();
	rg_error("mine");
	rg_warn("not mine");
	assert_true(rg_errors_release(true));
	rg_error("silence");
	assert_string_equal(capture_end(), "rg_x: mine\n");
	rg_set_quiet(false);
}

/* An error of one copy of err.c goes to another one. */
static void test_taken(void **state)
{
	char text[64] = "";

	rg_set_program("rg_x");
	capture_begin(2);
	rg_errors_hold();
	rg_error("size %d", 7);
	rg_error("another");
	assert_true(rg_errors_take(text, sizeof(text)));
	assert_string_equal(text, "size 7");
	assert_false(rg_errors_take(text, sizeof(text)));
	assert_string_equal(text, "size 7");
	assert_string_equal(capture_end(), "");
}

/* The first error of a step is kept; a host is named once. */
static void test_held(void **state)
{
	static const struct { const char *error, *host, *line; } rows[] = {
		{ "first", "a\nb", "rg_x: first (host a?b)\n" },
		{ "soft0:1 of host1", "host1", "rg_x: soft0:1 of host1\n" },
		{ "soft0:1 of host12, DOWN", "host1", "rg_x: soft0:1 of host12, DOWN (host host1)\n" },
		{ "host host1: DOWN", "host1", "rg_x: host host1: DOWN\n" },
		{ NULL, "host1", "" },
	};

	rg_set_program("rg_x");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		capture_begin(2);
		rg_errors_hold();
		if (rows[i].error) {
			rg_error("%s", rows[i].error);
			rg_error("second");
		}
		rg_errors_place(rows[i].host);
		assert_int_equal(rg_errors_release(true), rows[i].error != NULL);
		assert_string_equal(capture_end(), rows[i].line);
	}
}

/* The line of an error begins with what it ends, warnings do not. */
static void test_begin(void **state)
{
	(void)state;
	rg_set_program("rg_x");
	capture_begin(2);
	rg_errors_begin_with("peer %d is lost: ", 7);
	rg_warn("slow");
	assert_false(rg_errors_begin_as_ever());
	rg_errors_begin_with("peer %d is lost: ", 7);
	rg_error("no queue pair");
	assert_true(rg_errors_begin_as_ever());
	rg_error("other");
	assert_string_equal(capture_end(), "rg_x: warning: slow\nrg_x: peer 7 is lost: no queue pair\nrg_x: other\n");
}

static void test_rank(void **state)
{
	static const char *const names[] = {
		"SLURM_PROCID", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK",
	};

	for (int i = 0; i < 4; i++)
		unsetenv(names[i]);
	assert_int_equal(rg_launch_rank(), -1);
	for (int i = 0; i < 4; i++) {	/* each wins over those before it */
		char text[2] = { (char)('1' + i), '\0' };

		setenv(names[i], text, 1);
		assert_int_equal(rg_launch_rank(), 1 + i);
	}
	setenv("OMPI_COMM_WORLD_RANK", "x", 1);
	assert_int_equal(rg_launch_rank(), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_held_quietly), cmocka_unit_test(test_taken),
		cmocka_unit_test(test_begin),
		cmocka_unit_test(test_rank),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
