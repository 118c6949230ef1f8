/* test_campaign.c - journals: whole, torn, resumed, damaged, of others. */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "report/campaign.h"
#include "scratch.h"
#include "util/err.h"

#define PLAN "{\"type\":\"campaign\",\"version\":1,\"launches\":2,\"interleaved\":true," \
	"\"builds\":[{\"name\":\"\",\"dir\":\".\"},{\"name\":\"new\",\"dir\":\"n\"}]," \
	"\"programs\":[{\"name\":\"rg_bw\",\"options\":[]}]}\n"
#define LAUNCH(build, number, record, code) "{\"type\":\"launch\",\"index\":0,\"build\":\"" build \
	"\",\"program\":\"rg_bw\",\"launch\":" number ",\"record\":\"" record "\",\"exit\":" code \
	",\"seconds\":1.5}\n"

static int parse(const char *text, struct campaign *c)
{
	return campaign_parse("d", text, strlen(text), c);
}

static void test_whole(void **state)
{
	struct campaign c;
	char *path;

	assert_int_equal(parse(PLAN LAUNCH("", "0", "records/a", "0") "{\"type\":\"later\"}\n"
			       LAUNCH("new", "0", "records/..b", "4"), &c), 0);
	assert_int_equal(c.launches, 2);
	assert_true(c.interleaved && !c.torn);
	assert_int_equal(c.launch_count, 2);
	assert_string_equal(c.launch[1].build, "new");
	assert_int_equal(c.launch[1].exit, 4);
	assert_true(c.launch[0].seconds == 1.5);
	assert_ptr_equal(campaign_find(&c, "new", "rg_bw", 0), &c.launch[1]);
	assert_null(campaign_find(&c, "new", "rg_bw", 1));
	assert_true(campaign_has_build(&c, "new") && !campaign_has_build(&c, "old"));
	path = campaign_record_path(&c, &c.launch[1]);
	assert_string_equal(path, "d/records/..b");
	free(path);
	campaign_free(&c);
}

/* A writer that was killed: the whole lines count, and their bytes say where to go on. */
static void test_torn(void **state)
{
	static const char text[] = PLAN LAUNCH("", "0", "a", "0");
	struct campaign c;

	for (size_t bytes = 0; bytes < sizeof(text); bytes++) {
		int rc;

		capture_begin(2);
		rc = campaign_parse("d", text, bytes, &c);
		capture_end();
		assert_int_equal(rc, bytes < strlen(PLAN) ? -EINVAL : 0);
		if (rc)
			continue;
		assert_int_equal(c.launch_count, bytes == strlen(text));
		assert_int_equal(c.torn, bytes != strlen(PLAN) && bytes != strlen(text));
		assert_int_equal(c.whole_bytes, c.torn ? strlen(PLAN) : bytes);
		campaign_free(&c);
	}
}

/* A launch that was repeated counts once, where it was repeated. */
static void test_repeated(void **state)
{
	struct campaign c;

	assert_int_equal(parse(PLAN LAUNCH("", "0", "a", "4") LAUNCH("", "1", "b", "0")
			       LAUNCH("", "0", "c", "0"), &c), 0);
	assert_int_equal(c.launch_count, 2);
	assert_string_equal(c.launch[0].record, "b");
	assert_string_equal(c.launch[1].record, "c");
	campaign_free(&c);
}

static void test_damaged(void **state)
{
	static const char *const cases[][2] = {
		{ "", ":1: damaged: empty" },
		{ "{", ":1: damaged: the plan is torn" },
		{ "\n", ":1: not the journal" },
		{ "hello\n", ":1: not the journal" },
		{ LAUNCH("", "0", "a", "0"), ":1: damaged: does not begin with the plan" },
		{ "{\"type\":\"campaign\"}\n", "lacks its version" },
		{ "{\"type\":\"campaign\",\"version\":2}\n", "newer version" },
		{ "{\"type\":\"campaign\",\"version\":1,\"builds\":[{}]}\n", "lacks its builds" },
		{ PLAN PLAN, ":2: damaged: a second plan" },
		{ PLAN "[]\n", ":2: damaged: not a record" },
		{ PLAN LAUNCH("old", "0", "a", "0"), ":2: damaged: a launch of a build" },
		{ PLAN LAUNCH("", "-1", "a", "0"), "without its number" },
		{ PLAN LAUNCH("", "0", "/a", "0"), "without a record below" },
		{ PLAN LAUNCH("", "0", "..", "0"), "without a record below" },
		{ PLAN LAUNCH("", "0", "a/../../b", "0"), "without a record below" },
		{ PLAN LAUNCH("", "0", "a", "99999999999"), "without its exit code" },
		{ PLAN "{\"type\":\"launch\",\"build\":\"\",\"program\":\"x\"}\n", "of a program" },
	};
	struct campaign c;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *said;
		int rc;

		capture_begin(2);
		rc = parse(cases[i][0], &c);
		said = capture_end();
		assert_int_equal(rc, -EINVAL);
		if (!strstr(said, cases[i][1]) || !strstr(said, "d/campaign.jsonl:") ||
		    strchr(said, '\n') != said + strlen(said) - 1)
			fail_msg("%s says %s", cases[i][0], said);
	}
}

static void test_directory(void **state)
{
	char dir[SCRATCH_PATH], path[SCRATCH_PATH + 32];
	struct campaign c;
	FILE *out;

	assert_int_equal(scratch_make(dir), 0);
	assert_false(campaign_exists(dir));
	capture_begin(2);
	assert_int_equal(campaign_read(dir, &c), -ENOENT);
	assert_non_null(strstr(capture_end(), "No such file"));
	snprintf(path, sizeof(path), "%s/" CAMPAIGN_JOURNAL, dir);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(PLAN, out);
	fclose(out);
	assert_true(campaign_exists(dir));
	assert_int_equal(campaign_read(dir, &c), 0);
	assert_int_equal(c.launch_count, 0);
	campaign_free(&c);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole), cmocka_unit_test(test_torn),
		cmocka_unit_test(test_repeated), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_directory),
	};

	rg_set_program("test_campaign");
	return cmocka_run_group_tests_name("campaign", tests, NULL, NULL);
}
