/* test_report.c - what is written can be read again, however the writer ended. */
#include "cmocka_all.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture.h"
#include "report/report.h"
#include "result_file.h"

static const char *const ways[] = { "native", "stripe" };

static int setup(void **state)
{
	(void)state;
	return result_file_make("test_report");
}

static struct report_table table_for(FILE *text, int way_count, bool full)
{
	return (struct report_table){
		.text = text, .json_path = path, .program = "rg_test", .title = "a test",
		.metric = REPORT_BANDWIDTH, .ways = ways, .way_count = way_count,
		.validate = true, .full = full,
	};
}

static struct report_row row_for(const char *way, uint64_t bytes, double mean)
{
	return (struct report_row){
		.way = way, .bytes = bytes, .valid = 1,
		.stat = {[STATS_MEAN] = mean, [STATS_MEDIAN] = mean + 1, [STATS_MIN] = mean - 1,
			 [STATS_MAX] = mean + 2, [STATS_P99] = NAN, [STATS_SD] = 0.000123456,
			 [STATS_N] = 100},
	};
}

static json_t *run_with_notes(void)
{
	return json_pack("{s:[s], s:[s], s:[s]}", "notes", "a note: of 'this' \"kind\"",
			 "caption", "it's \"quoted\"\\ `touch /tmp/rg-pwned` \x01",
			 "foreign_ways", "native");
}

/* count sizes of two ways each, the last of them cut and failed. */
static void write_rows(struct report *r, int count)
{
	for (int i = 0; i < count; i++)
		for (int w = 0; w < 2; w++) {
			struct report_row row = row_for(ways[w], UINT64_C(8) << i, 100.5 + i + w);

			row.valid = !(w && i == count - 1);
			row.cut = w && i == count - 1;
			assert_int_equal(report_row(r, &row), 0);
		}
}

static void write_file(int count)
{
	struct report_table t = table_for(NULL, 2, false);
	struct report *r;

	assert_int_equal(report_open(&t, run_with_notes(), &r), 0);
	write_rows(r, count);
	assert_int_equal(report_close(r, 1, NULL), 0);
}

static char *slurp(size_t *length)
{
	FILE *in = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(in);
	*length = fread(text, 1, (1 << 20) - 1, in);
	fclose(in);
	return text;
}

static void spill(const char *text, size_t length)
{
	FILE *out = fopen(path, "w");

	assert_int_equal(fwrite(text, 1, length, out), length);
	fclose(out);
}

/* Read, with stderr captured into *said. */
static int read_file(struct report_file *f, const char **said)
{
	int rc;

	capture_begin(2);
	rc = report_read(path, f);
	*said = capture_end();
	return rc;
}

/* The line with all columns of row_for("native", 8, 100.5), in the order of STATISTICS. */
static void full_line(char *line, size_t size, const char *sd)
{
	const char *const shown[STATS_ROWS] = {
		[STATS_MEAN] = "100.5000", [STATS_MEDIAN] = "101.5000", [STATS_MIN] = "99.5000",
		[STATS_MAX] = "102.5000", [STATS_P99] = "-", [STATS_SD] = sd,
		[STATS_N] = "100",
	};
	int at = snprintf(line, size, "8         ");

	for (int i = 0; i < STATS_ROWS; i++)
		at += snprintf(line + at, size - (size_t)at, "%16s", shown[i] ? shown[i] :
			       statistics[i].kind == STATS_COUNT ? "0" : "0.0000");
	snprintf(line + at, size - (size_t)at, "        Pass  native\n");
}

/* Further percentiles: named by their number, null where the samples are too few. */
static void test_percentiles(void **state)
{
	static const double wanted[] = { 50, 99.9 }, got[] = { 12.5, NAN };
	struct report_table t = table_for(NULL, 2, false);
	struct report_row row = row_for("native", 8, 100.5);
	struct report_file f;
	const char *said;
	struct report *r;
	json_t *record, *all;

	t.percentiles = wanted;
	t.percentile_count = 2;
	memcpy(row.percentile, got, sizeof(got));
	assert_int_equal(report_open(&t, run_with_notes(), &r), 0);
	assert_int_equal(report_row(r, &row), 0);
	assert_int_equal(report_close(r, 0, NULL), 0);
	assert_int_equal(read_file(&f, &said), 0);
	assert_string_equal(said, "");
	record = report_file_record(&f, report_file_row(&f, "native", 8));
	all = json_object_get(record, "percentiles");
	assert_int_equal(json_object_size(all), 2);
	assert_true(json_real_value(json_object_get(all, "50")) == 12.5);
	assert_true(json_is_null(json_object_get(all, "99.9")));
	json_decref(record);
	report_file_free(&f);
}

static void test_round_trip(void **state)
{
	struct report_file f;
	const struct report_row *row;
	const char *said;
	json_t *record;

	write_file(20);
	assert_int_equal(read_file(&f, &said), 0);
	assert_string_equal(said, "");
	assert_int_equal(f.row_count, 40);
	assert_int_equal(f.metric, REPORT_BANDWIDTH);
	assert_int_equal(json_integer_value(json_object_get(f.end, "status")), 1);
	assert_int_equal(json_integer_value(json_object_get(f.end, "rows")), 40);
	row = report_file_row(&f, "stripe", 16);
	assert_true(row->stat[STATS_MEAN] == 102.5);
	assert_true(isnan(row->stat[STATS_P99]));
	assert_true(fabs(row->stat[STATS_SD] - 0.000123456) < 1e-12);
	assert_int_equal(row->valid, 1);
	record = report_file_record(&f, row);
	assert_int_equal(json_integer_value(json_object_get(record, "schema")), 2);
	assert_true(json_is_null(json_object_get(record, "p99")));
	json_decref(record);
	assert_null(report_file_row(&f, "stripe", 17));
	report_file_free(&f);
}

static void test_text(void **state)
{
	struct report_table t = table_for(stdout, 1, false);
	struct report_row row = row_for("native", 8, 12.345);
	char line[1024];
	struct report_file f;
	const char *said;
	struct report *r;

	/* A single way: parsers of other suites know this layout. */
	t.metric = REPORT_LATENCY;
	row.stat[STATS_CI_LOW] = 12;
	row.stat[STATS_CI_HIGH] = NAN;
	capture_begin(1);
	assert_int_equal(report_open(&t, NULL, &r), 0);
	report_row(r, &row);
	report_note(r, "ledger %d", 5);
	report_close(r, 0, NULL);
	assert_string_equal(capture_table(),
		"# Railgauge rg_test: a test\n"
		"# CI-low, CI-high: 95 % interval of the median, from batches of one launch\n"
		"# Size         Avg Latency(us)          Median          CI-low         CI-high"
		"  Validation\n"
		"8                        12.35         13.3450         12.0000               -"
		"        Pass\n"
		"# ledger 5\n");
	/* Size and mean alone, for one way and for several. */
	for (int ways_shown = 1; ways_shown <= 2; ways_shown++) {
		t = table_for(stdout, ways_shown, true);
		t.layout = REPORT_LAYOUT_OSU;
		t.validate = false;
		capture_begin(1);
		assert_int_equal(report_open(&t, NULL, &r), 0);
		for (int w = 0; w < ways_shown; w++) {
			row = row_for(ways[w], 8, 12.345);
			report_row(r, &row);
		}
		report_close(r, 0, NULL);
		assert_non_null(strstr(capture_end(), ways_shown == 1 ?
			"# Size        Bandwidth (MB/s)\n8                        12.35\n" :
			"# Bandwidth (MB/s), one column per way\n"
			"# Size              native          stripe\n"
			"8                  12.3450         12.3450\n"));
	}
	/* Several: what the program prints, the records print again. */
	t = table_for(stdout, 2, false);
	capture_begin(1);
	assert_int_equal(report_open(&t, run_with_notes(), &r), 0);
	write_rows(r, 2);
	report_close(r, 1, NULL);
	said = strdup(capture_table());
	assert_string_equal(said,
		"# Railgauge rg_test: a test\n"
		"# a note: of 'this' \"kind\"\n"
		"# Bandwidth (MB/s), medians, one column per way\n"
		"# Size              native          stripe  Validation\n"
		"8                 101.5000        102.5000        Pass\n"
		"16                102.5000        103.5000        Fail  cut\n"
		"# cut: fewer iterations than asked for, because of --time-cap\n");
	assert_int_equal(report_read(path, &f), 0);
	capture_begin(1);
	report_print(&f, stdout, false);
	assert_string_equal(capture_table(), said);
	full_line(line, sizeof(line), "0.0001");
	capture_begin(1);
	report_print(&f, stdout, true);
	assert_non_null(strstr(capture_end(), line));
	free((char *)said);
	report_file_free(&f);
}

/* Of 1137.382852 a record has 1137.38285, whose fourth decimal is rounded down. */
static void test_last_digit(void **state)
{
	struct report_table t = table_for(stdout, 1, false);
	struct report_row row = row_for(ways[0], 8, 1137.382852);
	struct report_file f;
	struct report *r;
	char *said;

	(void)state;
	row.stat[STATS_MEDIAN] = 1137.382852;
	capture_begin(1);
	assert_int_equal(report_open(&t, run_with_notes(), &r), 0);
	report_row(r, &row);
	report_close(r, 0, NULL);
	said = strdup(capture_table());
	assert_non_null(strstr(said, " 1137.3828 "));
	assert_int_equal(report_read(path, &f), 0);
	capture_begin(1);
	report_print(&f, stdout, false);
	assert_string_equal(capture_table(), said);
	free(said);
	report_file_free(&f);
}

/* Rows that have not converged are counted; the slowest of several pairs has a line. */
static void test_open_rows(void **state)
{
	struct report_table t = table_for(stdout, 1, false);
	struct report_file f;
	const char *said;
	struct report *r;

	capture_begin(1);
	assert_int_equal(report_open(&t, NULL, &r), 0);
	for (int i = 0; i < 3; i++) {
		struct report_row row = row_for(ways[0], UINT64_C(8) << i, 100);

		row.converged = (enum report_converged)i;
		row.extra = json_pack("{s:o}", "converged", i ? json_boolean(i == 1) : json_null());
		if (i == 1) {
			row.slowest.rank[1] = 2;
			row.slowest.median = 7.5;
			json_object_set_new(row.extra, "slowest_pair",
					    json_pack("{s:[i, i], s:f}", "ranks", 0, 2, "median", 7.5));
		}
		assert_int_equal(report_row(r, &row), 0);
		json_decref(row.extra);
	}
	report_close(r, 0, NULL);
	said = strdup(capture_end());
	assert_non_null(strstr(said, "\n# slowest pair, 16 bytes over native: ranks 0 and 2, median "
			       "7.5000\n32 "));
	assert_non_null(strstr(said, "\n# not converged: 1 of 3 rows, "));
	assert_int_equal(report_read(path, &f), 0);
	capture_begin(1);
	report_print(&f, stdout, false);
	assert_string_equal(capture_end(), said);
	report_file_free(&f);
	free((char *)said);
}

/* A file of a version that has one statistic less is read; the column says "-". */
static void test_fewer_statistics(void **state)
{
	static char text[65536];
	struct report_file f;
	char *at, *end, line[1024];
	const char *said;
	FILE *file;

	write_file(2);
	file = fopen(path, "r");
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	while ((at = strstr(text, "\"sd\":"))) {
		end = strchr(at, ',') + 1;
		memmove(at, end, strlen(end) + 1);
	}
	file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
	assert_int_equal(read_file(&f, &said), 0);
	assert_string_equal(said, "");
	capture_begin(1);
	report_print(&f, stdout, true);
	full_line(line, sizeof(line), "-");
	assert_non_null(strstr(capture_end(), line));
	report_file_free(&f);
}

static const struct report_axis queue = { "queue", "messages", "Queue length (messages)" };

/* Two ways at queues of 0.5, 8 and 64: not each is a whole number. */
static void write_axis(FILE *text)
{
	static const double x[] = { 0.5, 8, 64 };
	struct report_table t = table_for(text, 2, false);
	struct report *r;

	t.axis = &queue;
	assert_int_equal(report_open(&t, NULL, &r), 0);
	for (int i = 0; i < 3; i++)
		for (int w = 0; w < 2; w++) {
			struct report_row row = row_for(ways[w], 4096, 10 * i + w);

			row.x = x[i];
			assert_int_equal(report_row(r, &row), 0);
		}
	report_close(r, 0, NULL);
}

/* A coordinate other than the message size, in the table, in records and in the figure. */
static void test_axis(void **state)
{
	struct report_file f;
	const json_t *x;
	json_t *record;
	const char *said;
	size_t length;
	char *text;

	capture_begin(1);
	write_axis(stdout);
	said = strdup(capture_table());
	assert_string_equal(said,
		"# Railgauge rg_test: a test\n"
		"# Bandwidth (MB/s), medians, one column per way\n"
		"# queue             native          stripe  Validation\n"
		"0.5                 1.0000          2.0000        Pass\n"
		"8                  11.0000         12.0000        Pass\n"
		"64                 21.0000         22.0000        Pass\n");
	assert_int_equal(report_read(path, &f), 0);
	record = report_file_record(&f, report_file_row(&f, "stripe", 0.5));
	x = json_object_get(record, "x");
	assert_string_equal(json_string_value(json_object_get(x, "name")), "queue");
	assert_string_equal(json_string_value(json_object_get(x, "unit")), "messages");
	assert_true(json_number_value(json_object_get(x, "value")) == 0.5);
	json_decref(record);
	assert_true(report_file_row(&f, "native", 64)->x == 64);
	assert_null(report_file_row(&f, "native", 4096));
	capture_begin(1);
	report_print(&f, stdout, false);
	assert_string_equal(capture_table(), said);
	free((char *)said);
	if (system("gnuplot --version >/dev/null 2>&1") == 0) {
		assert_int_equal(report_plot(&f, dir), 0);
		snprintf(path, sizeof(path), "%s/r.gp", dir);
		text = slurp(&length);
		assert_non_null(strstr(text, "set xlabel 'Queue length (messages)'"));
		assert_non_null(strstr(text, "set logscale x 2\nset xrange [0.384615:83.2]"));
		assert_null(strstr(text, "Message size"));
		free(text);
		snprintf(path, sizeof(path), "%s/r.jsonl", dir);
	}
	report_file_free(&f);
}

/* A killed writer: every finished row survives. */
static void test_killed(void **state)
{
	struct report_file f;
	const char *said;
	int status, to_parent[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(to_parent), 0);
	child = fork();
	if (child == 0) {
		struct report_table t = table_for(NULL, 2, false);
		struct report *r;

		report_open(&t, NULL, &r);
		write_rows(r, 6);
		if (write(to_parent[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(to_parent[0], &byte, 1), 1);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	close(to_parent[0]);
	close(to_parent[1]);
	assert_int_equal(read_file(&f, &said), 0);
	assert_non_null(strstr(said, "no end record"));
	assert_int_equal(f.row_count, 12);
	assert_null(f.end);
	report_file_free(&f);
}

/* Cut the file after every byte: rows before the cut are there, or the file is refused. */
static void test_torn(void **state)
{
	size_t length, run_end;
	char *text;

	write_file(2);
	text = slurp(&length);
	run_end = (size_t)(strchr(text, '\n') - text);
	for (size_t cut = 0; cut <= length; cut++) {
		struct report_file f;
		const char *said;
		size_t whole = 0;
		int rc;

		spill(text, cut);
		rc = read_file(&f, &said);
		if (cut < run_end) {
			assert_int_equal(rc, -EINVAL);
			assert_non_null(strstr(said, "damaged"));
			continue;
		}
		assert_int_equal(rc, 0);
		for (size_t i = run_end + 1; i < cut; i++)
			whole += text[i] == '\n' || (i + 1 == cut && i + 1 < length &&
						     text[i + 1] == '\n');
		assert_int_equal(f.row_count + (f.end != NULL), whole);
		report_file_free(&f);
	}
	free(text);
}

static void test_unwritable(void **state)
{
	struct report_table t = table_for(NULL, 1, false);
	struct report *r = NULL;
	struct stat st;

	t.json_path = "/nonexistent/dir/x.jsonl";
	capture_begin(2);
	assert_int_equal(report_open(&t, NULL, &r), -ENOENT);
	assert_string_equal(capture_end(), "test_report: /nonexistent/dir/x.jsonl: "
			    "cannot be written: No such file or directory\n");
	assert_null(r);
	/* A full device: the row fails, once, and so does close. */
	t.json_path = "/dev/full";
	capture_begin(2);
	assert_int_equal(report_open(&t, NULL, &r), -ENOSPC);
	capture_end();
	/* An earlier result survives a run that cannot begin. */
	write_file(3);
	chmod(dir, 0500);
	if (geteuid() != 0) {
		t.json_path = path;
		assert_int_not_equal(report_open(&t, NULL, &r), 0);
	}
	chmod(dir, 0700);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 500);
}

/* A limit on file size plays the disk that fills up in the middle. */
static void test_disk_full(void **state)
{
	int status;
	pid_t child = fork();
	struct report_file f;
	const char *said;

	if (child == 0) {
		struct report_table t = table_for(NULL, 2, false);
		struct rlimit limit = { 2050, 2050 };
		struct report *r;
		int failed = 0;

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		if (report_open(&t, NULL, &r))
			_exit(1);
		for (int i = 0; i < 20; i++) {
			struct report_row row = row_for(ways[i % 2], UINT64_C(1) << (i / 2), 5);

			failed += report_row(r, &row) != 0;
		}
		_exit(failed > 0 && report_close(r, 0, NULL) < 0 ? 0 : 2);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(read_file(&f, &said), 0);
	assert_non_null(strstr(said, "torn last record dropped"));
	assert_true(f.row_count >= 5);
	report_file_free(&f);
}

static bool exists(const char *suffix)
{
	char name[200];
	struct stat st;

	snprintf(name, sizeof(name), "%s/r%s", dir, suffix);
	return stat(name, &st) == 0 && st.st_size > 0;
}

static void test_plot(void **state)
{
	struct report_file f;

	if (system("gnuplot --version >/dev/null 2>&1"))
		skip();
	unlink("/tmp/rg-pwned");
	write_file(12);
	assert_int_equal(report_read(path, &f), 0);
	assert_int_equal(report_plot(&f, dir), 0);
	report_file_free(&f);
	assert_true(exists(".dat") && exists(".gp") && exists(".svg") && exists(".png"));
	/* Text of a result file is text, not a command. */
	assert_int_not_equal(access("/tmp/rg-pwned", F_OK), 0);
}

static void test_provenance(void **state)
{
	char *argv[] = { "rg_bw", "-m", "\xff\xfe" };
	json_t *p, *e;

	setenv("RAILGAUGE_THRESHOLD", "8K", 1);
	setenv("AWS_SECRET", "no", 1);
	setenv("SOFTHCA_PORTS", "19000-19001", 1);
	setenv("SOFTHCA_SECRET_FILE", "/root/secret", 1);
	p = report_provenance(3, argv);
	e = json_object_get(p, "environment");
	assert_string_equal(json_string_value(json_object_get(e, "RAILGAUGE_THRESHOLD")), "8K");
	assert_null(json_object_get(e, "AWS_SECRET"));
	assert_string_equal(json_string_value(json_object_get(e, "SOFTHCA_PORTS")), "19000-19001");
	assert_null(json_object_get(e, "SOFTHCA_SECRET_FILE"));
	assert_int_equal(json_array_size(json_object_get(p, "argv")), 3);
	assert_string_equal(json_string_value(json_array_get(json_object_get(p, "argv"), 2)), "??");
	json_decref(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_percentiles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_digit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_open_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fewer_statistics, setup, teardown),
		cmocka_unit_test_setup_teardown(test_axis, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_torn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unwritable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_provenance, setup, teardown),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
