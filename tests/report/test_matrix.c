/* test_matrix.c - matrices: what is printed, what is named as slow, what is read again. */
#include "cmocka_all.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "report/acceptance.h"
#include "report/record.h"
#include "report/report.h"
#include "result_file.h"

static const char *const ways[] = { "single:0", "single:1" };
static const char *const names[] = { "ada", "bob", "cyd", "dan", "eva" };
static const char *const labels[] = { "single:0 (x:1)", "single:1 (x:2)" };

static int setup(void **state)
{
	(void)state;
	return result_file_make("test_matrix");
}

/*
 * The program's text and the text printed from its records, which must be the same.
 * value: of a cell, NaN: it is missing.
 */
static const char *printed(int count, int way_count, bool alike,
			   double (*value)(int way, int from, int to))
{
	struct report_matrix m = { .names = names, .labels = labels, .count = count, .slow = 0.9,
				   .alike = alike };
	struct report_table t = {
		.text = stdout, .json_path = path, .program = "rg_test", .title = "a test",
		.metric = REPORT_BANDWIDTH, .ways = ways, .way_count = way_count, .matrix = &m,
	};
	static char said[16384];
	struct report_file f;
	struct report *r;

	capture_begin(1);
	assert_int_equal(report_open(&t, NULL, &r), 0);
	for (int from = count; from-- > 0; )
		for (int to = 0; to < count; to++)
			for (int w = way_count; w-- > 0; ) {
				struct report_row row = {
					.way = ways[w], .bytes = 4096, .from = from, .to = to,
					.stat = {[STATS_MEDIAN] = value(w, from, to), [STATS_N] = 3},
					.valid = -1,
				};

				if (from != to && !isnan(row.stat[STATS_MEDIAN]))
					assert_int_equal(report_row(r, &row), 0);
			}
	assert_int_equal(report_close(r, 0, NULL), 0);
	snprintf(said, sizeof(said), "%s", capture_table());
	assert_int_equal(report_read(path, &f), 0);
	capture_begin(1);
	assert_int_equal(report_print(&f, stdout, false), 0);
	assert_string_equal(capture_table(), said);
	report_file_free(&f);
	return said;
}

static double numbered(int way, int from, int to)
{
	return way ? NAN : 100 + from + to / 10.0;
}

static void test_text(void **state)
{
	(void)state;
	assert_string_equal(printed(3, 1, true, numbered),
		"# Railgauge rg_test: a test\n"
		"# 0: ada\n"
		"# 1: bob\n"
		"# 2: cyd\n"
		"# over single:0 (x:1), 4096 bytes, MB/s, medians; a line sends to a column\n"
		"#                    0           1           2\n"
		"         0           -      100.10      100.20\n"
		"         1      101.00           -      101.20\n"
		"         2      102.00      102.10           -\n");
}

static int slow_lines(const char *text)
{
	int count = 0;

	while ((text = strstr(text, "# slow"))) {
		count++;
		text++;
	}
	return count;
}

static double one_cell(int way, int from, int to)
{
	return way == 1 && from == 3 && to == 0 ? 89.9 : from == 2 && to == 1 ? 90.1 : 100;
}

static double one_node(int way, int from, int to)
{
	if (way == 0 && (from == 2 || to == 2))
		return 50;
	return way == 0 && from == 0 && to == 1 ? 70 : 100;
}

static double one_node_of_four(int way, int from, int to)
{
	return way == 1 && (from == 3 || to == 3) ? 50 : 100;
}

static double one_sender(int way, int from, int to)
{
	(void)way;
	(void)to;
	return from == 4 ? 10 : 100;
}

static double one_way(int way, int from, int to)
{
	(void)from;
	(void)to;
	return way == 0 ? 30 : 100;
}

static double nothing(int way, int from, int to)
{
	return way == 0 && from == 0 && to == 1 ? 1 : NAN;
}

static void test_slow(void **state)
{
	const char *said;

	(void)state;
	said = printed(4, 2, true, one_cell);
	assert_non_null(strstr(said, "# slow: 3 to 0 (dan to ada) over single:1 (x:2): 89.90, 0.90 "
				     "of the median 100.00\n"));
	assert_int_equal(slow_lines(said), 1);

	said = printed(5, 2, true, one_node);
	assert_non_null(strstr(said, "# slow: all to and from 2 (cyd) over single:0 (x:1): below "
				     "0.90 of the median 100.00\n"));
	assert_non_null(strstr(said, "# slow: 0 to 1 (ada to bob) over single:0 (x:1): 70.00, "
				     "0.70 of"));
	assert_int_equal(slow_lines(said), 2);

	/* Half of the cells of one way: the node is to blame, not the way. */
	said = printed(4, 2, true, one_node_of_four);
	assert_non_null(strstr(said, "# slow: all to and from 3 (dan) over single:1 (x:2): below "
				     "0.90 of the median 75.00\n"));
	assert_int_equal(slow_lines(said), 1);

	/* The node receives well: its cells are named individually. */
	said = printed(5, 1, true, one_sender);
	assert_non_null(strstr(said, "# slow: 4 to 3 (eva to dan) over single:0 (x:1): 10.00, "
				     "0.10 of"));
	assert_int_equal(slow_lines(said), 4);

	said = printed(3, 2, true, one_way);
	assert_non_null(strstr(said, "# slow: single:0 (x:1) as a whole: median 30.00, 0.30 of "
				     "single:1 (x:2)'s\n"));
	assert_int_equal(slow_lines(said), 1);
	assert_int_equal(slow_lines(printed(3, 2, false, one_way)), 0);

	/* A job that was killed early. */
	assert_int_equal(slow_lines(printed(4, 2, true, nothing)), 0);
}

static void test_note_after(void **state)
{
	struct report_matrix m = { .names = names, .labels = labels, .count = 2, .slow = 0.9 };
	struct report_table t = {
		.text = stdout, .json_path = path, .program = "rg_test", .title = "a test",
		.metric = REPORT_BANDWIDTH, .ways = ways, .way_count = 1, .matrix = &m,
		.validate = true,
	};
	struct report_row row = { .way = ways[0], .bytes = 1, .from = 0, .to = 1,
		.stat = {[STATS_MEDIAN] = 1} };
	const char *said;
	struct report *r;

	(void)state;
	capture_begin(1);
	assert_int_equal(report_open(&t, NULL, &r), 0);
	report_row(r, &row);
	row.valid = 1;
	row.from = 1;
	row.to = 0;
	row.cut = true;
	report_row(r, &row);
	report_note(r, "last");
	assert_int_equal(report_close(r, 1, NULL), 0);
	said = capture_table();
	assert_non_null(strstr(said, "# validation: Fail: 0 to 1 over single:0\n"));
	assert_null(strstr(said, "Pass"));
	assert_non_null(strstr(said, "# cut: 1 of the cells"));
	assert_true(strstr(said, "         1 ") < strstr(said, "# last"));
}

static void spill(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_damaged(void **state)
{
#define RUN(matrix) "{\"schema\":1,\"type\":\"run\",\"program\":\"p\",\"title\":\"t\"," \
		"\"metric\":\"bandwidth\",\"ways\":[\"a\"],\"matrix\":" matrix "}\n"
#define GOOD RUN("{\"names\":[\"x\",\"y\"],\"labels\":[\"l\"],\"slow\":0.9}")
#define ROW(cell) "{\"schema\":1,\"type\":\"row\",\"way\":\"a\",\"bytes\":8,\"mean\":1," \
		"\"median\":1,\"min\":1,\"max\":1,\"p99\":null,\"sd\":1,\"n\":5" cell "}\n"
	static const struct { const char *text, *says; } files[] = {
		{ RUN("5"), "a matrix without" },
		{ RUN("{\"names\":[],\"labels\":[\"l\"],\"slow\":0.9}"), "a matrix without" },
		{ RUN("{\"names\":[\"x\"],\"labels\":[],\"slow\":0.9}"), "a matrix without" },
		{ RUN("{\"names\":[\"x\",2],\"labels\":[\"l\"],\"slow\":0.9}"), "without names" },
		{ RUN("{\"names\":[\"x\"],\"labels\":[3],\"slow\":0.9}"), "without labels" },
		{ RUN("{\"names\":[\"x\"],\"labels\":[\"l\"]}"), "a matrix without" },
		{ GOOD ROW(""), ":2: damaged: a row of no cell" },
		{ GOOD ROW(",\"from\":0"), ":2: damaged: a row of no cell" },
		{ GOOD ROW(",\"from\":0,\"to\":2"), ":2: damaged: a row of no cell" },
		{ GOOD ROW(",\"from\":-1,\"to\":1"), ":2: damaged: a row of no cell" },
		{ GOOD ROW(",\"from\":4294967296,\"to\":1"), ":2: damaged: a row of no cell" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct report_file f;
		const char *said;
		int rc;

		spill(files[i].text);
		capture_begin(2);
		rc = report_read(path, &f);
		said = capture_table();
		if (rc != -EINVAL || !strstr(said, files[i].says))
			fail_msg("case %zu: %d, says: %s", i, rc, said);
	}
}

static const char *map_printed(const json_t *end)
{
	capture_begin(1);
	acceptance_print_map(end, stdout);
	fflush(stdout);
	return capture_end();
}

/* A record has nine digits: the level's map is the same from it. */
static void test_map_again(void **state)
{
	json_t *end = json_pack("{s{s[{sssfsf}]}}", "acceptance", "rails", "rail", "x:1", "level", 102257.8648,
				"latency_us", 0.08);
	json_t *again;
	char *line, *said;

	(void)state;
	line = json_dumps(end, JSON_REAL_PRECISION(RECORD_DIGITS));
	again = json_loads(line, 0, NULL);
	said = strdup(map_printed(end));
	assert_string_equal(said, map_printed(again));
	free(said);
	free(line);
	json_decref(again);
	json_decref(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_note_after, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test(test_map_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
