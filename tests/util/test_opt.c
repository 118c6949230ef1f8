/* test_opt.c - option rows: defaults, environment, ranges, texts. */
#include "cmocka_all.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/opt.h"

struct values {
	bool full;
	uint64_t count, threshold, cap, rate, pause;
	struct opt_range sizes;
	int bind;
	struct opt_list over, apart;
	const char *soft;
	struct opt_texts with;
};

static const struct opt_choice ways[] = {
	{ "native", 10 }, { "single", 11, NULL, "single[:N]" }, { "single:1", 21, NULL, "" },
	{ "bind", 12 }, { "stripe", 13 }, { NULL },
};
static const struct opt_choice binds[] = { { "rank", 0 }, { "near", 1 }, { NULL } };

static int soft_check(const char *text, char *why, size_t why_size)
{
	if (strcmp(text, "bad") == 0) {
		snprintf(why, why_size, "ports=0, accepted: 1 to 8");
		return -EINVAL;
	}
	return 0;
}

#define AT(member) .offset = offsetof(struct values, member)
static const struct opt rows[] = {
	{ .name = "full", .letter = 'f', .type = OPT_FLAG, AT(full), .help = "h" },
	{ .name = "count", .letter = 'i', .type = OPT_COUNT, AT(count), .standard = "100",
	  .min = 1, .max = 1000, .help = "h" },
	{ .name = "threshold", .type = OPT_SIZE, AT(threshold), .standard = "8K",
	  .min = 1, .max = UINT64_C(1) << 40, .special = "auto", .help = "h" },
	{ .name = "time-cap", .type = OPT_TIME, AT(cap), .standard = "10s", .help = "h" },
	{ .name = "pause", .type = OPT_TIME, AT(pause), .bare = "s", .help = "h" },
	{ .name = "rate", .type = OPT_RATE, AT(rate), .help = "h" },
	{ .name = "sizes", .letter = 'm', .type = OPT_SIZES, AT(sizes), .standard = "1:4M",
	  .max = UINT64_C(1) << 40, .help = "h" },
	{ .name = "bind", .type = OPT_CHOICE, AT(bind), .standard = "near", .choices = binds,
	  .help = "h" },
	{ .name = "over", .type = OPT_CHOICES, AT(over), .choices = ways, .help = "h" },
	{ .name = "apart", .type = OPT_CHOICES, AT(apart), .choices = ways, .settings = true,
	  .help = "h" },
	{ .name = "soft", .type = OPT_TEXT, AT(soft), .check = soft_check, .help = "h" },
	{ .name = "with", .type = OPT_TEXTS, AT(with), .check = soft_check, .help = "h" },
	{ .name = NULL },
};

static struct values v;
static unsigned char origin[OPT_ROWS_MAX];
static const struct opt_table table = { "Test", rows, &v, origin };

static int setup(void **state)
{
	memset(&v, 0xa5, sizeof(v));
	memset(origin, 0xa5, sizeof(origin));
	return opt_defaults(&table);
}

static void test_defaults(void **state)
{
	assert_false(v.full);
	assert_int_equal(v.count, 100);
	assert_int_equal(v.threshold, 8192);
	assert_int_equal(v.cap, 10000000000);
	assert_int_equal(v.rate, 0);
	assert_true(v.sizes.min == 1 && v.sizes.max == 4 << 20);
	assert_int_equal(v.bind, 1);
	assert_int_equal(v.over.count, 0);
	assert_null(v.soft);
	assert_int_equal(v.with.count, 0);
	assert_int_equal(origin[0], OPT_FROM_DEFAULT);
}

struct set_case {
	const char *name, *text;
	const char *why;	/* NULL: taken, and `shown` is its text */
	const char *shown;
};

static const struct set_case set_cases[] = {
	{ "full", "yes", NULL, "yes" },
	{ "full", "0", NULL, "no" },
	{ "full", "on", "full on: makes no sense (accepted: 1, 0, yes or no)", NULL },
	{ "count", "1000", NULL, "1000" },
	{ "count", "1001", "count 1001: out of range (accepted: 1 to 1000)", NULL },
	{ "count", "", "count : is empty (accepted: 1 to 1000)", NULL },
	{ "count", "ten", "count ten: makes no sense (accepted: 1 to 1000)", NULL },
	{ "count", "auto", "count auto: makes no sense (accepted: 1 to 1000)", NULL },
	{ "threshold", "auto", NULL, "auto" },
	{ "threshold", "1T", NULL, "1T" },
	{ "threshold", "0", "threshold 0: out of range (accepted: 1 to 1T, or auto)", NULL },
	{ "threshold", "1099511627777",
	  "threshold 1099511627777: out of range (accepted: 1 to 1T, or auto)", NULL },
	{ "threshold", "99999999T", "threshold 99999999T: out of range (accepted: 1 to 1T, or auto)",
	  NULL },
	{ "time-cap", "5", "time-cap 5: makes no sense (accepted: a time such as 2us)", NULL },
	{ "time-cap", "1.5s", NULL, "1.5s" },
	{ "time-cap", "18446744073709551615ns",	/* would read as the special word */
	  "time-cap 18446744073709551615ns: out of range (accepted: a time such as 2us)", NULL },
	{ "rate", "8Gb/s", NULL, "1GB/s" },
	{ "pause", "0.5", NULL, "500ms" },
	{ "pause", "2us", NULL, "2us" },
	{ "pause", "2.", "pause 2.: makes no sense (accepted: a time such as 2us)", NULL },
	{ "sizes", "8", NULL, "8:8" },
	{ "sizes", "0:1K", NULL, "0:1K" },
	{ "sizes", ":8K", NULL, "1:8K" },
	{ "sizes", "8K:", NULL, "8K:4M" },
	{ "sizes", "8K:1K", "sizes 8K:1K: the first size is larger than the last "
	  "(accepted: MIN:MAX or one size, 0 to 1T)", NULL },
	{ "sizes", "8M:", "sizes 8M:: the first size is larger than the last "
	  "(accepted: MIN:MAX or one size, 0 to 1T)", NULL },
	{ "sizes", ":", "sizes :: makes no sense (accepted: MIN:MAX or one size, 0 to 1T)", NULL },
	{ "sizes", "1:2T", "sizes 1:2T: out of range (accepted: MIN:MAX or one size, 0 to 1T)", NULL },
	{ "sizes", "1:2:3", "sizes 1:2:3: makes no sense (accepted: MIN:MAX or one size, 0 to 1T)",
	  NULL },
	{ "bind", "rank", NULL, "rank" },
	{ "bind", "far", "bind far: unknown (accepted: rank or near)", NULL },
	{ "over", "stripe,native", NULL, "stripe,native" },
	{ "over", "single:1,single", NULL, "single:1,single" },
	{ "over", "native,native", "over native,native: the same item twice "
	  "(accepted: a list of native, single[:N], bind, stripe)", NULL },
	{ "over", "native,", "over native,: empty item "
	  "(accepted: a list of native, single[:N], bind, stripe)", NULL },
	{ "over", "nativ", "over nativ: unknown item "
	  "(accepted: a list of native, single[:N], bind, stripe)", NULL },
	{ "over", "single,a=1", "over single,a=1: unknown item "
	  "(accepted: a list of native, single[:N], bind, stripe)", NULL },
	{ "apart", "single,a=1", NULL, "single,a=1" },
	{ "apart", "single,a=1,b=,bind,single,single,a=1,stripe,c=d=e", NULL,
	  "single,a=1,b=,bind,single,single,a=1,stripe,c=d=e" },
	{ "apart", "single,a=1,bind,single,a=1", "apart single,a=1,bind,single,a=1: the same item twice "
	  "(accepted: a list of native, single[:N], bind, stripe, each with ,NAME=VALUE if wanted)", NULL },
	{ "apart", "single,a=1,", "apart single,a=1,: empty item "
	  "(accepted: a list of native, single[:N], bind, stripe, each with ,NAME=VALUE if wanted)", NULL },
	{ "apart", "a=1", "apart a=1: unknown item "
	  "(accepted: a list of native, single[:N], bind, stripe, each with ,NAME=VALUE if wanted)", NULL },
	{ "soft", "rate=1GB/s", NULL, "rate=1GB/s" },
	{ "soft", "bad", "soft bad: ports=0, accepted: 1 to 8", NULL },
};

static const struct opt *row_named(const char *name)
{
	const struct opt *row = rows;

	while (strcmp(row->name, name))
		row++;
	return row;
}

static void test_set(void **state)
{
	for (size_t i = 0; i < sizeof(set_cases) / sizeof(set_cases[0]); i++) {
		const struct set_case *c = &set_cases[i];
		char why[OPT_WHY_BYTES] = "", shown[64];
		struct values before = v;
		int rc = opt_set(&table, c->name, c->text, OPT_FROM_CALL, why, sizeof(why));

		assert_string_equal(why, c->why ? c->why : "");
		assert_int_equal(rc, c->why ? -EINVAL : 0);
		if (rc)
			assert_memory_equal(&before, &v, sizeof(v));
		else
			assert_string_equal(opt_text(&table, row_named(c->name), shown,
						     sizeof(shown)), c->shown);
	}
	assert_int_equal(opt_set(&table, "nothing", "1", OPT_FROM_CALL, NULL, 0), -ENOENT);
}

static void test_environment(void **state)
{
	setenv("RAILGAUGE_THRESHOLD", "16K", 1);
	setenv("RAILGAUGE_TIME_CAP", "3s", 1);
	assert_int_equal(opt_from_environment(&table), 0);
	assert_int_equal(v.threshold, 16384);
	assert_int_equal(v.cap, 3000000000);
	assert_int_equal(origin[2], OPT_FROM_ENVIRONMENT);
	assert_int_equal(origin[1], OPT_FROM_DEFAULT);
	setenv("RAILGAUGE_THRESHOLD", "0", 1);
	assert_int_equal(opt_from_environment(&table), -EINVAL);
	unsetenv("RAILGAUGE_THRESHOLD");
	unsetenv("RAILGAUGE_TIME_CAP");
}

/* A table with names has their rows alone, in the order of the rows. */
static void test_only(void **state)
{
	static const char *const names[] = { "bind", "count", NULL };
	static const struct opt_table part = { "Part", rows, &v, origin, names };
	char why[OPT_WHY_BYTES];

	assert_string_equal(opt_next(&part, NULL)->name, "count");
	assert_string_equal(opt_next(&part, &rows[1])->name, "bind");
	assert_null(opt_next(&part, &rows[7]));
	v.count = v.threshold = 1;
	assert_int_equal(opt_defaults(&part), 0);
	assert_int_equal(v.count, 100);
	assert_int_equal(v.threshold, 1);
	assert_int_equal(opt_set(&part, "count", "7", OPT_FROM_CALL, why, sizeof(why)), 0);
	assert_int_equal(origin[1], OPT_FROM_CALL);
	assert_int_equal(opt_set(&part, "threshold", "7", OPT_FROM_CALL, why, sizeof(why)), -ENOENT);
	assert_string_equal(opt_next(&table, NULL)->name, "full");
	assert_null(opt_next(&table, &rows[11]));
}

static void test_broken_row(void **state)
{
	static const struct opt broken[] = {
		{ .name = "count", .type = OPT_COUNT, AT(count), .standard = "0", .min = 1,
		  .max = 5 }, { .name = NULL },
	};
	struct opt_table t = { "Broken", broken, &v, NULL };

	assert_int_equal(opt_defaults(&t), -EINVAL);
}

/* An option that is given several times; a more important origin begins anew. */
static void test_texts(void **state)
{
	char why[OPT_WHY_BYTES], text[64];
	const struct opt *with = rows;

	while (strcmp(with->name, "with"))
		with++;
	assert_int_equal(opt_set(&table, "with", "env", OPT_FROM_ENVIRONMENT, why, sizeof(why)), 0);
	assert_int_equal(opt_set(&table, "with", "a=1", OPT_FROM_COMMAND_LINE, why, sizeof(why)), 0);
	assert_int_equal(opt_set(&table, "with", "b", OPT_FROM_COMMAND_LINE, why, sizeof(why)), 0);
	assert_string_equal(opt_text(&table, with, text, sizeof(text)), "a=1 b");
	assert_int_equal(opt_set(&table, "with", "bad", OPT_FROM_COMMAND_LINE, why, sizeof(why)),
			 -EINVAL);
	assert_string_equal(why, "with bad: ports=0, accepted: 1 to 8");
	assert_int_equal(v.with.count, 2);
	for (int i = 2; i < OPT_LIST_MAX; i++)
		assert_int_equal(opt_set(&table, "with", "x", OPT_FROM_COMMAND_LINE, why, sizeof(why)),
				 0);
	assert_int_equal(opt_set(&table, "with", "y", OPT_FROM_COMMAND_LINE, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "with y: one too many (accepted: up to 16 times)");
}

/* Published values of FNV-1a, 64 bits. */
static void test_digest(void **state)
{
	assert_int_equal(opt_digest(""), 0xcbf29ce484222325u);
	assert_int_equal(opt_digest("a"), 0xaf63dc4c8601ec8cu);
	assert_int_equal(opt_digest("foobar"), 0x85944171f73967e8u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_defaults, setup),
		cmocka_unit_test_setup(test_set, setup),
		cmocka_unit_test_setup(test_environment, setup),
		cmocka_unit_test_setup(test_only, setup),
		cmocka_unit_test_setup(test_texts, setup),
		cmocka_unit_test_setup(test_broken_row, setup),
		cmocka_unit_test(test_digest),
	};

	return cmocka_run_group_tests_name("opt", tests, NULL, NULL);
}
