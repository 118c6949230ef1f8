/* test_reader.c - look-ups, records, streams, older files; files that are replaced, and names. */
#include "cmocka_all.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "report/output.h"
#include "report/redact.h"
#include "report/report.h"
#include "scratch.h"
#include "util/err.h"

static char dir[SCRATCH_PATH];

static int setup(void **state)
{
	rg_set_program("test_reader");
	return scratch_make(dir);
}

static int teardown(void **state)
{
	return scratch_remove(dir);
}

static const char *path_of(const char *name)
{
	static char path[4][SCRATCH_PATH + 64];
	static unsigned next;
	char *at = path[next++ % 4];

	snprintf(at, sizeof(path[0]), "%s/%s", dir, name);
	return at;
}

static void spill(const char *name, const char *text)
{
	FILE *out = fopen(path_of(name), "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static const char run_two[] = "{\"schema\":2,\"type\":\"run\",\"program\":\"p\",\"title\":\"t\","
	"\"metric\":\"latency\",\"ways\":[\"a\",\"b\"]}\n";

/* `count` rows of two ways; the median is the number of the row. */
static FILE *file_of(int count, int said)
{
	FILE *out = tmpfile();

	assert_non_null(out);
	fputs(run_two, out);
	for (int i = 0; i < count; i++)
		fprintf(out, "{\"type\":\"row\",\"way\":\"%c\",\"bytes\":%d,\"n\":5,\"mean\":0,\"median\":"
			"%d,\"other\":[%d]}\n", "ab"[i % 2], i / 2 * 3, i, i);
	fprintf(out, "{\"type\":\"end\",\"status\":0,\"rows\":%d}\n", said);
	rewind(out);
	return out;
}

/* Every row of many is found, and no other; its record has the members that are not kept. */
static void test_lookup(void **state)
{
	struct report_file f;

	assert_int_equal(report_read_stream(file_of(5000, 5000), "x", NULL, NULL, &f), 0);
	assert_int_equal(f.row_count, 5000);
	assert_int_equal(f.schema, 2);
	for (int i = 0; i < 5000; i++) {
		const struct report_row *row = report_file_row(&f, i % 2 ? "b" : "a", i / 2 * 3);
		json_t *record;

		assert_ptr_equal(row, &f.row[i]);
		assert_true(row->stat[STATS_MEDIAN] == i && isnan(row->stat[STATS_MAX]));
		if (i % 100)
			continue;
		record = report_file_record(&f, row);
		assert_int_equal(json_integer_value(json_array_get(json_object_get(record, "other"),
								   0)), i);
		json_decref(record);
	}
	assert_null(report_file_row(&f, "a", 1));
	assert_null(report_file_row(&f, "a", 7500));
	assert_null(report_file_row(&f, "c", 0));
	report_file_free(&f);
}

/* Of rows with one coordinate the first is found. */
static void test_first_of_equals(void **state)
{
	struct report_file f;
	char text[1024];

	snprintf(text, sizeof(text), "%s%s%s%s", run_two,
		 "{\"type\":\"row\",\"way\":\"a\",\"bytes\":8,\"n\":5,\"mean\":1}\n",
		 "{\"type\":\"row\",\"way\":\"a\",\"bytes\":8,\"n\":5,\"mean\":2}\n",
		 "{\"type\":\"end\",\"status\":0}\n");
	spill("r.jsonl", text);
	assert_int_equal(report_read(path_of("r.jsonl"), &f), 0);
	assert_true(report_file_row(&f, "a", 8)->stat[STATS_MEAN] == 1);
	report_file_free(&f);
}

struct sums { double median; int rows, stop_at; };

static int row_add(void *user, const struct report_file *f, const struct report_row *row,
		   const json_t *record)
{
	struct sums *s = user;

	assert_int_equal(json_object_get(f->run, "ways") != NULL, 1);
	assert_true(json_number_value(json_object_get(record, "median")) == row->stat[STATS_MEDIAN]);
	s->median += row->stat[STATS_MEDIAN];
	return ++s->rows == s->stop_at ? -ECANCELED : 0;
}

static void test_each(void **state)
{
	struct sums s = {0};
	struct report_file f;

	assert_int_equal(report_read_stream(file_of(100, 100), "x", row_add, &s, &f), 0);
	assert_true(s.rows == 100 && s.median == 99 * 100 / 2);
	assert_true(f.row_count == 100 && !f.row && f.end);
	report_file_free(&f);
	s = (struct sums){ .stop_at = 7 };
	assert_int_equal(report_read_stream(file_of(100, 100), "x", row_add, &s, &f), -ECANCELED);
	assert_int_equal(s.rows, 7);
}

static void test_row_count(void **state)
{
	struct report_file f;

	for (int said = 3; said <= 5; said++) {
		capture_begin(2);
		assert_int_equal(report_read_stream(file_of(4, said), "x", NULL, NULL, &f),
				 said == 4 ? 0 : -EINVAL);
		if (said == 4) {
			report_file_free(&f);
			assert_string_equal(capture_end(), "");
		} else {
			assert_non_null(strstr(capture_end(), said == 3 ?
				"x:6: damaged: 4 rows, and the end record counts 3" :
				"x:6: damaged: 4 rows, and the end record counts 5"));
		}
	}
}

static void test_damaged(void **state)
{
	static const char run[] = "{\"schema\":1,\"type\":\"run\",\"program\":\"p\",\"title\":\"t\","
		"\"metric\":\"bandwidth\",\"ways\":[\"a\"]}\n";
	static const char row[] = "{\"schema\":1,\"type\":\"row\",\"way\":\"a\",\"bytes\":8,"
		"\"mean\":1,\"median\":1,\"min\":1,\"max\":1,\"p99\":null,\"sd\":1,\"n\":5}\n";
	static const char run_x[] = "{\"schema\":1,\"type\":\"run\",\"program\":\"p\",\"title\":\"t\","
		"\"metric\":\"bandwidth\",\"ways\":[\"a\"],\"x\":{\"name\":\"queue\",\"unit\":\"m\","
		"\"title\":\"q\"}}\n";
	static const char row_x[] = "{\"schema\":1,\"type\":\"row\",\"way\":\"a\",\"bytes\":8,"
		"\"x\":{\"name\":\"share\",\"value\":1,\"unit\":\"m\"},"
		"\"mean\":1,\"median\":1,\"min\":1,\"max\":1,\"p99\":null,\"sd\":1,\"n\":5}\n";
	static const char *const files[][3] = {
		{ "", "", "empty" },
		{ "hello\n", "", ":1: damaged: not a Railgauge result file" },
		{ row, "", ":1: damaged: does not begin with a run record" },
		{ run, "garbage\n", ":2: damaged: not a record" },
		{ run, run, ":2: damaged: a second run record" },
		{ run, "{\"type\":\"dance\"}\n", ":2: damaged: a record of unknown type" },
		{ run, "{\"type\":\"row\",\"way\":\"a\"}\n", ":2: damaged: a row without" },
		{ run, "{\"type\":\"row\",\"way\":\"b\",\"bytes\":8,\"mean\":1,\"median\":1,\"min\":1,"
		  "\"max\":1,\"p99\":null,\"sd\":1,\"n\":5}\n", "does not name" },
		{ run, "{\"type\":\"row\",\"way\":\"a\",\"bytes\":8,\"n\":5,\"mean\":\"x\"}\n",
		  "statistics" },
		{ run, "{\"type\":\"end\",\"status\":0}\n{\"type\":\"end\",\"status\":0}\n",
		  ":3: damaged: a record after the end" },
		{ "{\"schema\":3,\"type\":\"run\"}\n", "",
		  ":1: schema 3 of a newer version of Railgauge (accepted: schema 1 and 2)" },
		{ "{\"schema\":\"2\",\"type\":\"run\"}\n", "", "lacks its schema" },
		{ run, "{\"type\":\"end\",\"status\":0,\"rows\":1}\n",
		  ":2: damaged: 0 rows, and the end record counts 1" },
		{ run, "{\"type\":\"end\",\"status\":0,\"rows\":\"1\"}\n", "no number" },
		{ "{\"schema\":1,\"type\":\"run\",\"program\":\"p\",\"title\":\"t\","
		  "\"metric\":\"speed\",\"ways\":[\"a\"]}\n", "", "metric" },
		{ "{\"schema\":1,\"type\":\"run\",\"program\":\"p\",\"title\":\"t\","
		  "\"metric\":\"rate\",\"ways\":[1]}\n", "", "ways" },
		{ run, row_x, "an x that the run record does not name" },
		{ run_x, row, "without the x that the run record names" },
		{ run_x, row_x, "without the x" },
		{ "{\"schema\":1,\"type\":\"run\",\"program\":\"p\",\"title\":\"t\","
		  "\"metric\":\"rate\",\"ways\":[\"a\"],\"x\":5}\n", "", "an x without name" },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct report_file f;
		const char *said;
		char text[1024];

		snprintf(text, sizeof(text), "%s%s", files[i][0], files[i][1]);
		spill("r.jsonl", text);
		capture_begin(2);
		assert_int_equal(report_read(path_of("r.jsonl"), &f), -EINVAL);
		said = capture_end();
		if (!strstr(said, files[i][2]))
			fail_msg("case %zu says: %s", i, said);
	}
}

/* A NUL, deep nesting, numbers that no type holds: a line that is no record. */
static void test_hostile(void **state)
{
	static const char *const lines[] = {
		"{\"type\":\"row\",\"way\":\"a\",\"bytes\":99999999999999999999,\"n\":5,\"mean\":1}",
		"{\"type\":\"row\",\"way\":\"a\",\"bytes\":8,\"n\":5,\"mean\":1e999}",
		"{\"type\":\"row\",\"type\":\"row\",\"way\":\"a\",\"bytes\":8,\"n\":5,\"mean\":1}",
		"{\"type\":\"row\",\"way\":\"a\\u0000b\",\"bytes\":8,\"n\":5,\"mean\":1}",
		"{\"type\":5}", "[]", "null", "",
	};
	char *deep = malloc(100000);
	struct report_file f;

	for (size_t i = 0; i <= sizeof(lines) / sizeof(lines[0]); i++) {
		FILE *out = fopen(path_of("r.jsonl"), "w");

		fputs(run_two, out);
		if (i < sizeof(lines) / sizeof(lines[0]))
			fputs(lines[i], out);
		else
			fwrite(memset(deep, '[', 100000), 1, 100000, out);
		fputs("\n{\"type\":\"end\",\"status\":0}\n", out);
		fclose(out);
		capture_begin(2);
		assert_int_equal(report_read(path_of("r.jsonl"), &f), -EINVAL);
		assert_non_null(strstr(capture_end(), ":2: damaged: not a record of JSON"));
	}
	free(deep);
}

/* A pipe is read as a file is. */
static void test_pipe(void **state)
{
	char path[64], text[1024];
	struct report_file f;
	json_t *record;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	snprintf(text, sizeof(text), "%s%s{\"type\":\"end\",\"status\":0}\n", run_two,
		 "{\"type\":\"row\",\"way\":\"a\",\"bytes\":8,\"n\":5,\"mean\":1,\"other\":4}\n");
	assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
	close(ends[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	assert_int_equal(report_read(path, &f), 0);
	close(ends[0]);
	record = report_file_record(&f, &f.row[0]);
	assert_int_equal(json_integer_value(json_object_get(record, "other")), 4);
	json_decref(record);
	report_file_free(&f);
}

/* A file of schema 1, as an earlier version wrote it. */
static void test_schema_1(void **state)
{
	const char *top = getenv("srcdir");
	char path[4096];
	struct report_file f;

	snprintf(path, sizeof(path), "%s/tests/report/schema1.jsonl", top ? top : ".");
	if (access(path, R_OK))
		skip();
	capture_begin(2);
	assert_int_equal(report_read(path, &f), 0);
	assert_string_equal(capture_end(), "");
	assert_int_equal(f.schema, 1);
	assert_int_equal(f.row_count, 4);
	assert_int_equal(report_file_row(&f, "single", 16)->valid, 1);
	assert_true(report_file_row(&f, "native", 8)->stat[STATS_MEDIAN] > 0);
	capture_begin(1);
	assert_int_equal(report_print(&f, stdout, false), 0);
	assert_non_null(strstr(capture_end(), "\n16 "));
	report_file_free(&f);
}

/* ---- Files that are written ----------------------------------------------------- */

static int check(const char *name, bool (*ours)(const char *line))
{
	int rc;

	capture_begin(2);
	rc = output_check(path_of(name), "json", ours);
	assert_true(rc == 0 ? !*capture_end() :
		    strstr(capture_end(), "(accepted: another name, or --overwrite)") != NULL);
	return rc;
}

static void test_replaced(void **state)
{
	spill("notes", "my notes\n");
	spill("empty", "");
	spill("result", run_two);
	spill("json", "{\"type\":\"run\"}\n");
	spill("csv", "way,bytes,series,iteration,ns\nnative,8,0,0,5\n");
	spill("csv2", "launch,way,bytes,unit,batch\n");
	spill("foreign", "name,bytes,age\n");
	assert_int_equal(check("absent", output_is_records), 0);
	assert_int_equal(check("empty", output_is_records), 0);
	assert_int_equal(check("result", output_is_records), 0);
	assert_int_equal(check("notes", output_is_records), -EEXIST);
	assert_int_equal(check("json", output_is_records), -EEXIST);
	assert_int_equal(check("csv", output_is_records), -EEXIST);
	assert_int_equal(check("csv", output_is_samples), 0);
	assert_int_equal(check("csv2", output_is_samples), 0);
	assert_int_equal(check("foreign", output_is_samples), -EEXIST);
	assert_int_equal(check("result", output_is_samples), -EEXIST);
	assert_int_equal(output_check("/dev/null", "json", output_is_records), 0);
}

static void test_one_file(void **state)
{
	char dotted[SCRATCH_PATH + 80];

	spill("a", "");
	assert_int_equal(symlink(path_of("a"), path_of("link")), 0);
	assert_int_equal(link(path_of("a"), path_of("hard")), 0);
	snprintf(dotted, sizeof(dotted), "%s/../%s/new", dir, strrchr(dir, '/') + 1);
	assert_true(output_is_same(path_of("a"), path_of("a")));
	assert_true(output_is_same(path_of("a"), path_of("link")));
	assert_true(output_is_same(path_of("hard"), path_of("a")));
	assert_true(output_is_same(path_of("new"), dotted));
	assert_true(output_is_same("new", "./new"));
	assert_false(output_is_same(path_of("new"), path_of("a")));
	assert_false(output_is_same(path_of("new"), path_of("other")));
	assert_false(output_is_same("/dev/null", "/dev/null"));
}

static void test_one_step(void **state)
{
	struct output o;
	char text[16] = "";
	FILE *in;

	spill("a", "old");
	assert_int_equal(output_begin(&o, path_of("a")), 0);
	assert_int_equal(write(o.fd, "new", 3), 3);
	output_drop(&o);
	in = fopen(path_of("a"), "r");
	assert_int_equal(fread(text, 1, sizeof(text), in), 3);
	fclose(in);
	assert_string_equal(text, "old");
	assert_int_equal(output_begin(&o, path_of("a")), 0);
	assert_int_equal(write(o.fd, "newer", 5), 5);
	assert_int_equal(output_commit(&o, path_of("a")), 0);
	close(o.fd);
	in = fopen(path_of("a"), "r");
	assert_int_equal(fread(text, 1, sizeof(text), in), 5);
	fclose(in);
	assert_int_equal(output_begin(&o, path_of("none/a")), -ENOENT);
}

/* ---- Names ---------------------------------------------------------------------- */

static void test_redact(void **state)
{
	static const char *const pairs[][2] = {
		{ "node7", "host1" }, { "node7.cluster.org", "host1" }, { "on node7.", "on host1." },
		{ "node71", "node71" }, { "mynode7", "mynode7" }, { "node7-ib", "node7-ib" },
		{ "node8,node7:2", "host2,host1:2" },
		{ "/home/ada/x.jsonl", "/path1" }, { "-o=/home/ada/x.jsonl /tmp", "-o=/path1 /path2" },
		{ "to ada's", "to user1's" }, { "MB/s and 1/2", "MB/s and 1/2" },
		{ "781MB/s/1199MB/s:half", "781MB/s/1199MB/s:half" }, { "../run.sh", "/path3" },
		{ "out.jsonl", "/path4" }, { "native", "native" },
	};
	struct redact *r = redact_new();
	json_t *record, *clean;

	assert_string_equal(redact_name(r, "host", "node7.cluster.org"), "host1");
	assert_string_equal(redact_name(r, "host", "node8"), "host2");
	assert_string_equal(redact_name(r, "host", "node7.cluster.org"), "host1");
	redact_name(r, "user", "ada");
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (strcmp(pairs[i][0], "out.jsonl") == 0)
			redact_name(r, "/path", "out.jsonl");
		record = json_pack("{s:{s:[s]}}", "a", "b", pairs[i][0]);
		clean = redact_record(r, record);
		assert_string_equal(json_string_value(json_array_get(json_object_get(
			json_object_get(clean, "a"), "b"), 0)), pairs[i][1]);
		json_decref(record);
		json_decref(clean);
	}
	/* Words of the format stay; a list of hosts has no names left. */
	record = json_pack("{s:s, s:s, s:[s], s:i}", "way", "ada", "SLURM_JOB_NODELIST", "node[1-4]",
			   "ways", "ada", "n", 5);
	clean = redact_record(r, record);
	assert_string_equal(json_string_value(json_object_get(clean, "way")), "ada");
	assert_string_equal(json_string_value(json_object_get(clean, "SLURM_JOB_NODELIST")), "hosts");
	assert_int_equal(json_integer_value(json_object_get(clean, "n")), 5);
	json_decref(record);
	json_decref(clean);
	redact_free(r);
}

static void test_facts(void **state)
{
	json_t *libraries = report_libraries(), *machine = report_machine(), *p;
	char *argv[] = { "x" };

	assert_true(json_is_string(json_object_get(libraries, "ucx")));
	assert_true(json_is_string(json_object_get(libraries, "rdma_core")));
	assert_null(json_object_get(machine, "host"));
	assert_true(json_integer_value(json_object_get(machine, "cpus_online")) > 0);
	json_decref(libraries);
	json_decref(machine);
	unsetenv("SLURM_JOB_ID");
	p = report_provenance(1, argv);
	assert_true(json_is_null(json_object_get(p, "slurm")));
	json_decref(p);
	setenv("SLURM_JOB_ID", "4711", 1);
	setenv("SLURM_JOB_PARTITION", "fast", 1);
	p = report_provenance(1, argv);
	assert_string_equal(json_string_value(json_object_get(json_object_get(p, "slurm"), "job")),
			    "4711");
	assert_string_equal(json_string_value(json_object_get(json_object_get(p, "slurm"),
							      "partition")), "fast");
	json_decref(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lookup, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first_of_equals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each, setup, teardown),
		cmocka_unit_test_setup_teardown(test_row_count, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pipe, setup, teardown),
		cmocka_unit_test_setup_teardown(test_schema_1, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_step, setup, teardown),
		cmocka_unit_test(test_redact),
		cmocka_unit_test(test_facts),
	};

	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
