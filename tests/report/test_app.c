/* test_app.c - programs timed as a whole: what is printed, what is read again. */
#include "cmocka_all.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "report/report.h"
#include "result_file.h"

static const char *const ways[] = { "native", "stripe" };

static int setup(void **state)
{
	(void)state;
	return result_file_make("test_app");
}

static json_t *run_of(int ranks)
{
	return json_pack("{s:[s], s:{s:s, s:s, s:I, s:i, s:f, s:s, s:i}}", "notes", "a remark",
			 "app", "class", "S", "size", "64x64x64", "bytes", (json_int_t)4194304,
			 "iterations", 6, "operations", 3e6, "operation", "floating point",
			 "ranks", ranks);
}

/* Rank i takes 1 + i / 10 s, of which share is communication. */
static json_t *times_of(int ranks, double share)
{
	json_t *total = json_array(), *communication = json_array(), *bytes = json_array();

	for (int i = 0; i < ranks; i++) {
		double seconds = 1 + i / 10.0;

		json_array_append_new(total, json_real(seconds));
		json_array_append_new(communication, json_real(seconds * share));
		json_array_append_new(bytes, json_integer(1000 + i));
	}
	return json_pack("{s:{s:o, s:o, s:o}}", "app", "total_s", total, "communication_s",
			 communication, "sent_bytes", bytes);
}

/* The program's text; it must be that which is printed from its records. */
static const char *printed(int ranks, int way_count, const double share[], const int valid[],
			   int runs)
{
	struct report_table t = {
		.text = stdout, .json_path = path, .program = "rg_test", .title = "a test",
		.metric = REPORT_MOPS, .ways = ways, .way_count = way_count,
	};
	static char said[16384];
	struct report_file f;
	struct report *r;

	capture_begin(1);
	assert_int_equal(report_open(&t, run_of(ranks), &r), 0);
	for (int w = 0; w < way_count; w++) {
		struct report_row row = {
			.way = ways[w], .bytes = 4194304,
			.stat = {[STATS_MEAN] = 2, [STATS_MEDIAN] = 2, [STATS_MIN] = 1,
				 [STATS_CI_LOW] = runs < 6 ? NAN : 1.5,
				 [STATS_CI_HIGH] = runs < 6 ? NAN : 2.5,
				 /* A record has nine digits: 2.505, which is a little less. */
				 [STATS_MAX] = 2.505000000001, [STATS_N] = runs},
			.valid = valid[w], .extra = times_of(ranks, share[w]),
		};

		assert_int_equal(report_row(r, &row), 0);
		json_decref(row.extra);
	}
	assert_int_equal(report_close(r, 0, NULL), 0);
	strcpy(said, capture_table());
	assert_int_equal(report_read(path, &f), 0);
	capture_begin(1);
	assert_int_equal(report_print(&f, stdout, false), 0);
	assert_string_equal(capture_table(), said);
	capture_begin(1);
	assert_int_equal(report_plot(&f, dir), 0);
	assert_string_equal(capture_end(), "");
	report_file_free(&f);
	return said;
}

static void test_one_way(void **state)
{
	static const double share[] = { 0.5 };
	static const int good[] = { 1 }, bad[] = { 0 };
	const char *text;

	(void)state;
	text = printed(2, 1, share, good, 1);
	assert_string_equal(text,
		"# Railgauge rg_test: a test\n"
		"# a remark\n"
		"# over native\n"
		" Class           =                        S\n"
		" Size            =                 64x64x64\n"
		" Iterations      =                        6\n"
		" Time in seconds =                     1.10\n"
		" Total processes =                        2\n"
		" Mop/s total     =                     2.73\n"
		" Mop/s/process   =                     1.36\n"
		" Operation type  =           floating point\n"
		" Verification    =               SUCCESSFUL\n"
		"# native: seconds; communication includes waiting for others; bytes to other ranks\n"
		"# rank               total   communication     computation          bytes sent\n"
		"# 0               1.000000        0.500000        0.500000                1000\n"
		"# 1               1.100000        0.550000        0.550000                1001\n"
		"# sum             2.100000        1.050000        1.050000                2001\n");
	text = printed(1, 1, share, bad, 1);
	assert_non_null(strstr(text, " Verification    =             UNSUCCESSFUL\n"));
}

static void test_ways(void **state)
{
	static const double share[] = { 0.5, 0.3 };
	static const int valid[] = { 1, 1 };
	const char *text;

	(void)state;
	text = printed(2, 2, share, valid, 5);
	assert_non_null(strstr(text, "# over stripe\n"));
	assert_non_null(strstr(text, "# 5 runs, Mop/s: mean 2.00, median 2.00, 95 % interval none "
			       "below 6 runs, min 1.00, max 2.50; shown"));
	assert_non_null(strstr(text, "# against native: less communication"));
	assert_non_null(strstr(text, "# stripe              0.630000    40.0 %        1.100000     "
			       "0.0 %            2.73\n"));
	/* Many ranks are not listed. */
	text = printed(17, 2, share, valid, 1);
	assert_null(strstr(text, "\n# 0 "));
	assert_non_null(strstr(text, "(of each of 17 ranks: in the file of --json)"));
}

/* Values of a file are not trusted. */
static void damaged(const char *member, json_t *value, const char *words)
{
	json_t *run = json_pack("{s:i, s:s, s:s, s:s, s:s, s:[s]}", "schema", 1, "type", "run",
				"program", "x", "title", "x", "metric", "operations", "ways",
				"native");
	json_t *more = run_of(2), *row, *times = times_of(2, 0.5);
	struct report_file f;
	char *text;
	FILE *out = fopen(path, "w");

	json_object_update(run, more);
	if (json_object_get(json_object_get(run, "app"), member))
		json_object_set(json_object_get(run, "app"), member, value);
	row = json_pack("{s:i, s:s, s:s, s:i, s:i, s:n, s:n, s:n, s:n, s:n, s:n}", "schema", 1,
			"type", "row", "way", "native", "bytes", 8, "n", 1, "mean", "median",
			"min", "max", "p99", "sd");
	json_object_update(row, times);
	if (json_object_get(json_object_get(row, "app"), member))
		json_object_set(json_object_get(row, "app"), member, value);
	assert_non_null(out);
	text = json_dumps(run, JSON_COMPACT);
	fprintf(out, "%s\n", text);
	free(text);
	text = json_dumps(row, JSON_COMPACT);
	fprintf(out, "%s\n{\"schema\":1,\"type\":\"end\",\"status\":0}\n", text);
	free(text);
	fclose(out);
	capture_begin(2);
	assert_int_equal(report_read(path, &f), -EINVAL);
	assert_non_null(strstr(capture_end(), words));
	json_decref(run);
	json_decref(more);
	json_decref(row);
	json_decref(times);
	json_decref(value);
}

static void test_damage(void **state)
{
	(void)state;
	damaged("class", json_integer(1), "lacks class, size");
	damaged("operations", json_string("many"), "lacks class, size");
	damaged("ranks", json_integer(0), "lacks its ranks");
	damaged("ranks", json_integer(3), "without the times of all ranks");
	damaged("total_s", json_integer(3), "without the times of all ranks");
	damaged("sent_bytes", json_pack("[s, s]", "a", "b"), "without the times of all ranks");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_way),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
