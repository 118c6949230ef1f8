/* test_citable.c - the verdict on a file: each reason alone, several, none, and facts that are missing. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "report/citable.h"
#include "report/report.h"
#include "result_file.h"

/* A run and a row without a reason; cases change members. */
static const char *const good_run =
	"{'oversubscribed': false, 'fabric': {'hardware': true, 'modelled': false, 'doubt': '',"
	" 'text': 'two adapters', 'rails': [{}]},"
	" 'ranks': [{'host': 'a', 'cores': [0]}, {'host': 'a', 'cores': [1]}, {'host': 'b', 'cores': [0]}],"
	" 'provenance': {'machine': {'governor': 'performance'}}}";
static const char *const good_row =
	"{'way': 'stripe', 'bytes': 8, 'converged': true, 'cut': false, 'valid': true,"
	" 'ci_of': 'launches', 'ci_n': 6, 'noise': {'wait_ns': 0, 'wait_ns_most': 0, 'rank': 0,"
	" 'switches': 0, 'steal_ticks': 0, 'wall_ns': 1000000000, 'span_ns': 1000000000}}";

#define BIT(reason) CITABLE_BIT(CITABLE_##reason)
#define NOISE(waited, ticks) \
	"{'noise': {'wait_ns': " waited ", 'wait_ns_most': " waited ", 'rank': 3, 'switches': 1," \
	" 'steal_ticks': " ticks ", 'wall_ns': 1000000000, 'span_ns': 1000000000}}"
/* A wait of a share of 10 ms, by so many slices, in a row of n samples. */
#define TOUCHED(waited, slices, n) \
	"{'n': " n ", 'noise': {'wait_ns': " waited ", 'wait_ns_most': " waited ", 'rank': 0, 'slices': " \
	slices ", 'switches': 1, 'steal_ticks': 0, 'wall_ns': 10000000, 'span_ns': 10000000}}"
#define RANKS(a, b) "{'ranks': [{'host': 'a', 'cores': " a "}, {'host': 'a', 'cores': " b "}]}"
#define FABRIC(members) "{'fabric': {'text': 'two ports', 'rails': [{}], " members "}}"

enum { UNFINISHED = -1 };

static const struct {
	const char *what;
	const char *run, *row;		/* members that replace the good ones; null: the member is absent */
	int status;			/* or UNFINISHED */
	unsigned reasons;
	const char *why;		/* all texts, joined by "; " */
} cases[] = {
	{ "nothing", NULL, NULL, 0, 0, "" },
	{ "oversubscribed", "{'oversubscribed': true}", NULL, 0, BIT(OVERSUBSCRIBED),
	  "more ranks than cores" },
	{ "unbound", RANKS("[0]", "[1, 2]"), NULL, 0, BIT(UNBOUND),
	  "1 of 2 ranks are not bound to a core" },
	{ "unbound, overlapping", RANKS("[0, 1]", "[0, 1]"), NULL, 0, BIT(UNBOUND),
	  "2 of 2 ranks are not bound to a core" },
	{ "one core twice", RANKS("[4]", "[4]"), NULL, 0, BIT(SHARED), "ranks 0 and 1 share a core" },
	{ "one core three times", "{'ranks': [{'host': 'a', 'cores': [0]}, {'host': 'b', 'cores': [7]},"
	  "{'host': 'b', 'cores': [7]}, {'host': 'b', 'cores': [7]}]}", NULL, 0, BIT(SHARED),
	  "ranks 1 and 2 share a core, and others do" },
	{ "governor", "{'provenance': {'machine': {'governor': 'powersave'}}}", NULL, 0, BIT(GOVERNOR),
	  "CPU governor powersave, not performance" },
	{ "governor of another host", "{'hosts': [{'machine': {'governor': 'performance'}},"
	  " {'machine': {'governor': 'ondemand'}}]}", NULL, 0, BIT(GOVERNOR),
	  "CPU governor ondemand, not performance" },
	{ "a host without a word of it", "{'hosts': [{'machine': {'governor': 'performance'}}, {}]}", NULL,
	  0, BIT(UNRECORDED), "not recorded: CPU governor" },
	{ "no governor", "{'provenance': {'machine': {'governor': null}}}", NULL, 0, 0, "" },
	{ "doubt", FABRIC("'hardware': true, 'doubt': 'too fast'"), NULL, 0, BIT(DOUBT), "model: too fast" },
	{ "wait", NULL, NOISE("20000000", "0"), 0, BIT(NOISE), "noise in 1 of 1 rows" },
	{ "wait below the share", NULL, NOISE("19999999", "0"), 0, 0, "" },
	{ "wait of a wake-up", NULL, "{'noise': {'wait_ns': 499999, 'wait_ns_most': 499999, 'rank': 0,"
	  " 'switches': 1, 'steal_ticks': 0, 'wall_ns': 500000, 'span_ns': 500000}}", 0, 0, "" },
	/* good_row has six launches: 100 samples of each, whose interval reaches over 19.6. */
	{ "a few long samples", NULL, TOUCHED("2499999", "19", "600"), 0, 0, "" },
	{ "many long samples", NULL, TOUCHED("2499999", "20", "600"), 0, BIT(NOISE), "noise in 1 of 1 rows" },
	{ "many short waits", NULL, TOUCHED("199999", "600", "600"), 0, 0, "" },
	{ "a shared core", NULL, TOUCHED("2500000", "1", "600"), 0, BIT(NOISE), "noise in 1 of 1 rows" },
	{ "few samples", NULL, TOUCHED("1000000", "5", "24"), 0, BIT(NOISE), "noise in 1 of 1 rows" },
	{ "slices not known", NULL, TOUCHED("1000000", "null", "600"), 0, BIT(NOISE), "noise in 1 of 1 rows" },
	{ "samples not known", NULL, TOUCHED("1000000", "1", "null"), 0, BIT(NOISE), "noise in 1 of 1 rows" },
	{ "one launch", NULL, "{'ci_of': 'batches', 'ci_n': 20, 'n': 100, 'noise': {'wait_ns_most': 1000000, 'rank': 0,"
	  " 'slices': 19, 'wall_ns': 10000000}}", 0, BIT(LAUNCHES), "1 launch, fewer than 6" },
	{ "steal", NULL, NOISE("0", "2"), 0, BIT(NOISE), "noise in 1 of 1 rows" },
	{ "a tick", NULL, "{'noise': {'wait_ns': 0, 'wait_ns_most': 0, 'rank': 0,"
	  " 'switches': 1, 'steal_ticks': 1, 'wall_ns': 9000000, 'span_ns': 9000000}}", 0, 0, "" },
	{ "steal below the share", NULL, NOISE("0", "1"), 0, 0, "" },
	{ "steal not known", NULL, NOISE("0", "null"), 0, 0, "" },
	{ "unconverged", NULL, "{'converged': false}", 0, BIT(UNCONVERGED), "1 of 1 rows did not converge" },
	{ "counts given", NULL, "{'converged': null}", 0, 0, "" },
	{ "cut", NULL, "{'cut': true}", 0, BIT(CUT), "1 of 1 rows were cut by --time-cap" },
	{ "invalid", NULL, "{'valid': false}", 0, BIT(INVALID), "validation failed in 1 of 1 rows" },
	{ "not validated", NULL, "{'valid': null}", 0, 0, "" },
	{ "five launches", NULL, "{'ci_n': 5}", 0, BIT(LAUNCHES), "5 launches, fewer than 6" },
	{ "batches of a launch", NULL, "{'ci_of': 'batches', 'ci_n': 20}", 0, BIT(LAUNCHES),
	  "1 launch, fewer than 6" },
	{ "no interval", NULL, "{'ci_of': null, 'ci_n': 0}", 0, BIT(LAUNCHES), "1 launch, fewer than 6" },
	{ "exit code", NULL, NULL, 4, BIT(STATUS), "exit code 4" },
	{ "killed", NULL, NULL, UNFINISHED, BIT(UNFINISHED), "the job did not finish" },
	{ "wait not known", NULL, NOISE("null", "0"), 0, BIT(UNRECORDED), "not recorded: noise" },
	{ "cores not known", RANKS("null", "[1]"), NULL, 0, BIT(UNRECORDED), "not recorded: cores of ranks" },
	{ "an old run", "{'oversubscribed': 'absent', 'ranks': 'absent', 'provenance': 'absent',"
	  " 'fabric': 'absent'}", NULL, 0, BIT(UNRECORDED),
	  "not recorded: oversubscription, cores of ranks, CPU governor, fabric" },
	{ "an old row", NULL, "{'noise': 'absent', 'converged': 'absent', 'ci_of': 'absent'}", 0,
	  BIT(UNRECORDED) | BIT(LAUNCHES),
	  "1 launch, fewer than 6; not recorded: noise, convergence, intervals" },
	{ "an app has no stopping rule", "{'app': {}}", "{'converged': 'absent'}", 0, 0, "" },
	{ "several", "{'oversubscribed': true}", "{'converged': false, 'cut': true, 'valid': false}", 1,
	  BIT(OVERSUBSCRIBED) | BIT(UNCONVERGED) | BIT(CUT) | BIT(INVALID) | BIT(STATUS),
	  "more ranks than cores; 1 of 1 rows did not converge; 1 of 1 rows were cut by --time-cap; "
	  "validation failed in 1 of 1 rows; exit code 1" },
	{ "a model", FABRIC("'hardware': false, 'modelled': true"), NULL, 0, 0,
	  "values of a model in software, not of hardware: two ports" },
	{ "software", FABRIC("'hardware': false, 'modelled': false"), NULL, 4, BIT(STATUS),
	  "exit code 4; values of a fabric in software, not of hardware: two ports" },
	{ "no rails", "{'fabric': {'hardware': false, 'rails': []}}", NULL, 0, 0, "" },
	{ "wrong types", "{'oversubscribed': 1, 'ranks': 7, 'provenance': [], 'fabric': 'x'}",
	  "{'noise': [], 'converged': 3, 'ci_of': 5, 'ci_n': 'x', 'cut': 1, 'valid': 'y'}", 0,
	  BIT(UNRECORDED) | BIT(LAUNCHES), "1 launch, fewer than 6; "
	  "not recorded: oversubscription, cores of ranks, CPU governor, fabric, noise" },
};

/* JSON, with ' in place of ". */
static json_t *parsed(const char *text)
{
	char copy[2048];
	json_t *value;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	value = json_loads(copy, 0, NULL);
	assert_non_null(value);
	return value;
}

static json_t *changed(const char *good, const char *changes)
{
	json_t *record = parsed(good), *with = parsed(changes ? changes : "{}"), *value;
	const char *name;

	json_object_foreach(with, name, value) {
		const char *text = json_string_value(value);

		if (text && strcmp(text, "absent") == 0)
			json_object_del(record, name);
		else
			json_object_set(record, name, value);
	}
	json_decref(with);
	return record;
}

static void joined(const json_t *why, char *text, size_t size)
{
	size_t i, used = 0;
	const json_t *reason;

	*text = '\0';
	json_array_foreach(why, i, reason)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "; " : "",
					 json_string_value(reason));
}

static void test_cases(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *run = changed(good_run, cases[i].run), *row = changed(good_row, cases[i].row), *why;
		unsigned reasons;
		struct citable c;
		char text[2048];

		citable_run(&c, run);
		citable_row(&c, row);
		if (cases[i].status != UNFINISHED)
			citable_end(&c, cases[i].status);
		why = citable_why(&c, &reasons);
		joined(why, text, sizeof(text));
		if (reasons != cases[i].reasons || strcmp(text, cases[i].why))
			fail_msg("%s: %#x, not %#x: %s", cases[i].what, reasons, cases[i].reasons, text);
		json_decref(why);
		json_decref(run);
		json_decref(row);
	}
}

static void test_no_rows(void **state)
{
	json_t *run = parsed(good_run), *why;
	unsigned reasons;
	struct citable c;

	citable_run(&c, run);
	citable_end(&c, 0);
	why = citable_why(&c, &reasons);
	assert_int_equal(reasons, BIT(EMPTY));
	json_decref(why);
	capture_begin(1);
	citable_print(&c, stdout);
	fflush(stdout);
	assert_string_equal(capture_end(), "");
	json_decref(run);
}

/* A single row of many decides; the line names the worst one. */
static void test_rows(void **state)
{
	static const char *const rows[] = {
		NULL, NOISE("20000000", "0"), NOISE("120000000", "5"), NOISE("30000000", "3"),
		"{'bytes': 16, 'ci_n': 3, 'noise': {'wait_ns': null}}",
	};
	json_t *run = parsed(good_run);
	struct citable c;

	citable_run(&c, run);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *row = changed(good_row, rows[i]);

		json_object_set_new(row, "bytes", json_integer(8 << i));
		citable_row(&c, row);
		json_decref(row);
	}
	citable_end(&c, 0);
	capture_begin(1);
	citable_print(&c, stdout);
	fflush(stdout);
	assert_string_equal(capture_end(),
		"# noise: not known in 1 of 5 rows: the kernel does not tell how long ranks wait for a "
		"core (/proc/self/schedstat)\n"
		"# noise: ranks waited for a core in 3 of 5 rows, most in stripe, 32 bytes: rank 3 for "
		"12 % of the time\n"
		"# noise: a hypervisor took cores in 2 of 5 rows, most in stripe, 32 bytes: 5 % of one "
		"core\n"
		"# citable: no, noise in 3 of 5 rows; 3 launches, fewer than 6; not recorded: noise\n");
	json_decref(run);
}

static void test_yes(void **state)
{
	json_t *run = parsed(good_run), *row = parsed(good_row);
	struct citable c;

	citable_run(&c, run);
	citable_row(&c, row);
	citable_end(&c, 0);
	capture_begin(1);
	citable_print(&c, stdout);
	fflush(stdout);
	assert_string_equal(capture_end(), "# citable: yes\n");
	json_decref(run);
	json_decref(row);
}

/* Launches add up; a reason of one launch is a reason of all. */
static void test_merge(void **state)
{
	static const char *const rows[] = { "{'ci_of': 'batches'}",
		"{'ci_of': 'batches', 'noise': {'wait_ns_most': 40000000, 'wall_ns': 1000000000, 'rank': 2}}",
		"{'ci_of': 'batches', 'noise': {'wait_ns_most': 30000000, 'wall_ns': 1000000000, 'rank': 1}}" };
	static const int of[] = { 0, 0, 1, 0, 2, 0 };
	struct citable all, c;
	unsigned reasons;

	for (int noisy = 0; noisy < 2; noisy++) {
		for (int i = 0; i < 6; i++) {
			json_t *run = parsed(good_run), *row = changed(good_row, rows[noisy ? of[i] : 0]);

			citable_run(&c, run);
			citable_row(&c, row);
			citable_end(&c, 0);
			json_decref(run);
			json_decref(row);
			if (i)
				citable_merge(&all, &c);
			else
				all = c;
			if (i == 4) {
				json_decref(citable_why(&all, &reasons));
				assert_true(reasons & BIT(LAUNCHES));
			}
		}
		capture_begin(1);
		citable_print(&all, stdout);
		fflush(stdout);
		assert_string_equal(capture_end(), !noisy ? "# citable: yes\n" :
			"# noise: ranks waited for a core in 2 of 6 rows, most in stripe, 8 bytes: rank 2 "
			"for 4 % of the time\n"
			"# citable: no, noise in 2 of 6 rows\n");
	}
	c.ended = false;
	c.status = 0;
	citable_merge(&all, &c);
	json_decref(citable_why(&all, &reasons));
	assert_int_equal(reasons, BIT(NOISE) | BIT(UNFINISHED));
}

/* ---- Files --------------------------------------------------------------------------------- */

static const char *const ways[] = { "stripe" };

static int setup(void **state)
{
	(void)state;
	return result_file_make("test_citable");
}

/* Write a file of one row; the text of the table is captured. */
static const char *file_write(void)
{
	struct report_table t = { .text = stdout, .json_path = path, .program = "rg_test",
				  .title = "a test", .metric = REPORT_LATENCY, .ways = ways,
				  .way_count = 1, .validate = true };
	struct report_row row = { .way = "stripe", .bytes = 8, .valid = 1,
				  .stat = {[STATS_MEAN] = 1, [STATS_N] = 7} };
	struct report *r;

	capture_begin(1);
	assert_int_equal(report_open(&t, parsed(good_run), &r), 0);
	row.extra = parsed(good_row);
	assert_int_equal(report_row(r, &row), 0);
	json_decref(row.extra);
	assert_int_equal(report_close(r, 0, NULL), 0);
	return capture_end();
}

/* The verdict of the file, as its reader has it; all output of report_print in *text. */
static unsigned file_judge(const char **text)
{
	struct report_file f;
	unsigned reasons;
	json_t *why;

	capture_begin(2);
	assert_int_equal(report_read(path, &f), 0);
	capture_end();
	why = citable_why(&f.citable, &reasons);
	json_decref(why);
	capture_begin(1);
	assert_int_equal(report_print(&f, stdout, false), 0);
	fflush(stdout);
	*text = capture_end();
	report_file_free(&f);
	return reasons;
}

/* The writer, the end record and the reader agree; a killed job's file lacks its end. */
static void test_files(void **state)
{
	char written[4096], line[4096], last[4096] = "";
	const char *text;
	long end = 0;
	json_t *record;
	FILE *file;

	snprintf(written, sizeof(written), "%s", file_write());
	assert_non_null(strstr(written, "\n# citable: yes\n"));
	assert_int_equal(file_judge(&text), 0);
	assert_string_equal(text, written);

	file = fopen(path, "r+");
	assert_non_null(file);
	for (long at = 0; fgets(line, sizeof(line), file); at = ftell(file)) {
		end = at;
		snprintf(last, sizeof(last), "%s", line);
	}
	record = json_loads(last, 0, NULL);
	assert_true(json_is_true(json_object_get(record, "citable")));
	assert_int_equal(json_array_size(json_object_get(record, "why")), 0);
	assert_true(json_is_array(json_object_get(record, "why")));
	json_decref(record);
	assert_int_equal(ftruncate(fileno(file), end), 0);
	fclose(file);

	assert_int_equal(file_judge(&text), BIT(UNFINISHED));
	assert_non_null(strstr(text, "\n# citable: no, the job did not finish\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases), cmocka_unit_test(test_no_rows), cmocka_unit_test(test_rows),
		cmocka_unit_test(test_yes), cmocka_unit_test(test_merge), cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
