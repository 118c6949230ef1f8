/* test_merge.c - launches of one job become one table; other files do not. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture.h"
#include "report/files.h"
#include "report/merge.h"
#include "scratch.h"
#include "util/err.h"

static char dir[SCRATCH_PATH];

static int setup(void **state)
{
	rg_set_program("test_merge");
	return scratch_make(dir);
}

static int teardown(void **state)
{
	return scratch_remove(dir);
}

static const char *path_of(const char *name)
{
	static char path[SCRATCH_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* A launch of two ways at 8 and 16 bytes; `median` is that of native at 8 bytes. */
static void write_launch(const char *name, enum report_metric metric, double median, int window,
			 int status)
{
	static const char *const ways[] = { "native", "stripe" };
	struct report_table t = {
		.json_path = path_of(name), .program = "rg_test", .title = "a test",
		.metric = metric, .ways = ways, .way_count = 2,
	};
	json_t *run = json_pack("{s:{s:{s:i}, s:{s:s}}, s:[{s:s, s:i}], s:{s:f}}",
		"options", "window", "value", window, "json", "value", name,
		"ranks", "host", name, "node", 0, "provenance", "when", median);
	struct report *r;

	assert_int_equal(report_open(&t, run, &r), 0);
	for (int i = 0; i < 4; i++) {
		struct report_row row = {
			.way = ways[i % 2], .bytes = i < 2 ? 8 : 16, .valid = -1,
			.stat = { [STATS_MEDIAN] = median + i, [STATS_MEAN] = 2 * (median + i),
				  [STATS_MIN] = median - 1, [STATS_MAX] = median + 9,
				  [STATS_N] = 100 },
		};

		assert_int_equal(report_row(r, &row), 0);
	}
	assert_int_equal(report_close(r, status, NULL), 0);
}

static void merge_all(enum report_metric metric, struct report_files *files,
		      struct report_file *merged, const struct report_file **job)
{
	static const double medians[] = { 60, 10, 50, 20, 40, 30 };
	char *paths[] = { dir };

	for (int i = 0; i < 6; i++) {
		char name[32];

		snprintf(name, sizeof(name), "l%d.jsonl", i);
		write_launch(name, metric, medians[i], 64, 0);
	}
	assert_int_equal(report_files_read(paths, 1, files), 0);
	assert_int_equal(files->count, 6);
	assert_int_equal(files->group_count, 1);
	assert_int_equal(report_files_job(files, 0, merged, job), 0);
	assert_ptr_equal(*job, merged);
}

static void test_merged(void **state)
{
	struct report_files files;
	struct report_file merged;
	const struct report_file *job;
	const struct report_row *row;
	json_t *record;

	merge_all(REPORT_LATENCY, &files, &merged, &job);
	assert_int_equal(job->launches, 6);
	assert_int_equal(job->row_count, 4);
	row = report_file_row(job, "stripe", 16);
	assert_true(row->stat[STATS_MEDIAN] == 38);	/* 35 + 3 */
	assert_true(row->stat[STATS_MEAN] == 76);
	assert_true(row->stat[STATS_MIN] == 9 && row->stat[STATS_MAX] == 69);
	assert_true(row->stat[STATS_N] == 600);
	/* Of 13, 23 ... 63: squares of 25, 15, 5, 5, 15, 25; the second and the fifth of six. */
	assert_true(fabs(row->stat[STATS_SD] - sqrt(350)) < 1e-9);
	assert_true(row->stat[STATS_IQR] == 30);
	assert_true(isnan(row->stat[STATS_P25]) && isnan(row->stat[STATS_OUTLIERS]) &&
		    isnan(row->stat[STATS_AUTOCORRELATION]) && isnan(row->stat[STATS_DRIFT]));
	record = report_file_record(job, row);
	assert_true(json_number_value(json_object_get(record, "ci_low")) == 13);
	assert_true(json_number_value(json_object_get(record, "ci_high")) == 63);
	assert_int_equal(json_integer_value(json_object_get(record, "ci_n")), 6);
	assert_string_equal(json_string_value(json_object_get(record, "ci_of")), "launches");
	assert_true(json_number_value(json_object_get(record, "median")) == 38);
	json_decref(record);
	report_file_free(&merged);
	report_files_free(&files);
}

/* The mean of rates is harmonic. */
static void test_merged_rates(void **state)
{
	struct report_files files;
	struct report_file merged;
	const struct report_file *job;
	double sum = 0;

	merge_all(REPORT_BANDWIDTH, &files, &merged, &job);
	for (int i = 1; i <= 6; i++)
		sum += 1 / (20.0 * i);
	assert_true(fabs(report_file_row(job, "native", 8)->stat[STATS_MEAN] - 6 / sum) < 1e-9);
	report_file_free(&merged);
	report_files_free(&files);
}

/* Another option is another job, a copy is no launch, a killed or failed one is told. */
static void test_groups(void **state)
{
	char a[SCRATCH_PATH + 64], b[sizeof(a)], c[sizeof(a)], *paths[] = { a, b, c, a };
	struct report_files files;
	struct report_file merged;
	const struct report_file *job;
	const char *why;

	write_launch("a.jsonl", REPORT_LATENCY, 10, 64, 0);
	strcpy(a, path_of("a.jsonl"));
	write_launch("b.jsonl", REPORT_LATENCY, 20, 32, 0);
	strcpy(b, path_of("b.jsonl"));
	write_launch("c.jsonl", REPORT_LATENCY, 30, 64, 1);
	strcpy(c, path_of("c.jsonl"));
	capture_begin(2);
	assert_int_equal(report_files_read(paths, 4, &files), 0);
	assert_non_null(strstr(capture_end(), "left out: the same launch as"));
	assert_int_equal(files.count, 3);
	assert_int_equal(files.group_count, 2);
	assert_int_equal(files.group[0], 0);
	assert_int_equal(files.group[1], 1);
	assert_int_equal(files.group[2], 0);
	assert_false(report_same_job(&files.file[0], &files.file[1], &why));
	assert_string_equal(why, "window");
	assert_int_equal(report_files_job(&files, 0, &merged, &job), 0);
	assert_int_equal(json_integer_value(json_object_get(job->end, "status")), 1);
	report_file_free(&merged);
	assert_int_equal(report_files_job(&files, 1, &merged, &job), 0);
	assert_ptr_equal(job, &files.file[1]);
	report_file_free(&merged);
	report_files_free(&files);
}

static void test_nothing(void **state)
{
	char *paths[] = { dir };
	struct report_files files;

	capture_begin(2);
	assert_int_not_equal(report_files_read(paths, 1, &files), 0);
	assert_non_null(strstr(capture_end(), "no result file (accepted: a directory with *.jsonl)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_merged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_merged_rates, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
	};

	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
