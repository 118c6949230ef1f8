/* test_cmdline.c - command lines: precedence, operands, help, error lines. */
#include "cmocka_all.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "util/err.h"
#include "util/opt.h"

static struct values {
	uint64_t threshold, count;
	bool full;
	const char *soft;
} v;

#define AT(member) .offset = offsetof(struct values, member)
static const struct opt rows_a[] = {
	{ .name = "threshold", .type = OPT_SIZE, AT(threshold), .standard = "8K", .min = 1,
	  .max = UINT64_C(1) << 40, .special = "auto", .arg = "BYTES",
	  .help = "messages above this many bytes are cut and travel over all rails at once" },
	{ .name = NULL },
};
static const struct opt rows_b[] = {
	{ .name = "iterations", .alias = "rounds", .letter = 'i', .type = OPT_COUNT, AT(count), .arg = "N",
	  .help = "timed iterations" },
	{ .name = "full", .letter = 'f', .type = OPT_FLAG, AT(full), .help = "more columns" },
	{ .name = "soft", .type = OPT_TEXT, AT(soft), .arg = "SPEC", .help = "software HCA" },
	{ .name = NULL },
};
static unsigned char origin_a[OPT_ROWS_MAX], origin_b[OPT_ROWS_MAX];
static struct opt_table tables[] = {
	{ "Transport", rows_a, &v, origin_a },
	{ "Measurement", rows_b, &v, origin_b },
};

static int rc, operand, count;
static char *words[16], copy[16][64];

/* Parse a line of words; what stderr (fd 2) or stdout (fd 1) got comes back. */
static const char *parse(const char *line, const char *operands, bool ends, int fd)
{
	struct opt_program program = {
		.name = "rg_test", .summary = "A test.", .operands = operands,
		.first_operand_ends = ends, .tables = tables, .table_count = 2,
	};
	const char *at = line;

	memset(&v, 0, sizeof(v));
	operand = -1;
	for (count = 0; *at; count++, at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");

		memcpy(copy[count], at, length);
		copy[count][length] = '\0';
		words[count] = copy[count];
		at += length;
	}
	words[count] = NULL;
	rg_set_program("/usr/bin/rg_test");
	capture_begin(fd);
	rc = opt_parse(&program, count, words, &operand);
	return capture_end();
}

static void test_precedence(void **state)
{
	setenv("RAILGAUGE_THRESHOLD", "16K", 1);
	setenv("RAILGAUGE_ITERATIONS", "7", 1);
	assert_string_equal(parse("x -i 5 --soft=a,b=c -f", NULL, false, 2), "");
	assert_int_equal(rc, 0);
	assert_int_equal(v.threshold, 16384);
	assert_int_equal(v.count, 5);
	assert_true(v.full);
	assert_string_equal(v.soft, "a,b=c");
	assert_true(v.soft >= (char *)copy && v.soft < (char *)(copy + 16));
	assert_int_equal(origin_a[0], OPT_FROM_ENVIRONMENT);
	assert_int_equal(origin_b[0], OPT_FROM_COMMAND_LINE);
	assert_int_equal(operand, count);
	unsetenv("RAILGAUGE_THRESHOLD");
	unsetenv("RAILGAUGE_ITERATIONS");
	parse("x -i 5 -i6 --iterations=8 --soft one --soft two", NULL, false, 2);
	assert_int_equal(v.count, 8);
	assert_string_equal(v.soft, "two");
}

/* An alias is accepted as the name is, and shown nowhere. */
static void test_alias(void **state)
{
	parse("x --rounds=8", NULL, false, 2);
	assert_int_equal(rc, 0);
	assert_int_equal(v.count, 8);
	assert_string_equal(parse("x --rounds", NULL, false, 2),
			    "rg_test: --rounds: needs N (accepted: a whole number)\n");
	assert_string_equal(parse("x --rounds 1K", NULL, false, 2), "rg_test: --iterations 1K: "
			    "makes no sense (accepted: a whole number)\n");
	assert_string_equal(parse("x --round 8", NULL, false, 2),
			    "rg_test: --round: unknown option (accepted: see --help)\n");
	assert_null(strstr(parse("x --help", NULL, false, 1), "rounds"));
	setenv("RAILGAUGE_ROUNDS", "7", 1);
	parse("x", NULL, false, 2);
	assert_int_equal(v.count, 7);
	setenv("RAILGAUGE_ITERATIONS", "6", 1);
	parse("x", NULL, false, 2);
	assert_int_equal(v.count, 6);
	unsetenv("RAILGAUGE_ITERATIONS");
	setenv("RAILGAUGE_ROUNDS", "ten", 1);
	assert_string_equal(parse("x", NULL, false, 2), "rg_test: RAILGAUGE_ROUNDS=ten: "
			    "makes no sense (accepted: a whole number)\n");
	unsetenv("RAILGAUGE_ROUNDS");
}

static void test_operands(void **state)
{
	parse("x one -f two --soft s three", "FILE...", false, 2);
	assert_int_equal(rc, 0);
	assert_int_equal(count - operand, 3);
	assert_string_equal(words[operand], "one");
	assert_string_equal(words[operand + 1], "two");
	assert_string_equal(words[operand + 2], "three");
	assert_true(v.full);
	assert_string_equal(v.soft, "s");
	/* The text of an option's value may be an operand too. */
	parse("x same --soft same", "FILE...", false, 2);
	assert_int_equal(count - operand, 1);
	assert_string_equal(words[operand], "same");
	assert_string_equal(v.soft, "same");
	parse("x -f -- ./app -i 3 --full", "PROGRAM", true, 2);
	assert_int_equal(rc, 0);
	assert_int_equal(count - operand, 4);
	assert_string_equal(words[operand], "./app");
	assert_int_equal(v.count, 0);
	parse("x -f ./app -i 3", "PROGRAM", true, 2);
	assert_int_equal(count - operand, 3);
	assert_int_equal(v.count, 0);
}

static void test_errors(void **state)
{
	static const struct { const char *line, *want; } cases[] = {
		{ "x --threshold 0",
		  "rg_test: --threshold 0: out of range (accepted: 1 to 1T, or auto)\n" },
		{ "x --threshold=0",
		  "rg_test: --threshold 0: out of range (accepted: 1 to 1T, or auto)\n" },
		{ "x --treshold 8K",
		  "rg_test: --treshold: unknown option (nearest: --threshold; all: --help)\n" },
		{ "x --thresh=8K",
		  "rg_test: --thresh=8K: unknown option (nearest: --threshold; all: --help)\n" },
		{ "x --iteration 5",
		  "rg_test: --iteration: unknown option (nearest: --iterations; all: --help)\n" },
		{ "x --elephant", "rg_test: --elephant: unknown option (accepted: see --help)\n" },
		{ "x -q", "rg_test: -q: unknown option (accepted: see --help)\n" },
		{ "x --threshold",
		  "rg_test: --threshold: needs BYTES (accepted: 1 to 1T, or auto)\n" },
		{ "x -i", "rg_test: -i: needs N (accepted: a whole number)\n" },
		{ "x --soft", "rg_test: --soft: needs SPEC\n" },
		{ "x --full=yes", "rg_test: --full=yes: takes no value\n" },
		{ "x stray", "rg_test: stray: unexpected (accepted: options only, see --help)\n" },
		{ "x -i 1K", "rg_test: --iterations 1K: makes no sense (accepted: a whole number)\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_string_equal(parse(cases[i].line, NULL, false, 2), cases[i].want);
		assert_int_equal(rc, -EINVAL);
	}
	setenv("RAILGAUGE_THRESHOLD", "0", 1);
	assert_string_equal(parse("x", NULL, false, 2), "rg_test: RAILGAUGE_THRESHOLD=0: "
			    "out of range (accepted: 1 to 1T, or auto)\n");
	rg_set_quiet(true);
	assert_string_equal(parse("x", NULL, false, 2), "");
	assert_int_equal(rc, -EINVAL);
	rg_set_quiet(false);
	unsetenv("RAILGAUGE_THRESHOLD");
}

/* Is `words` in text, whatever the line breaks? */
static bool contains_words(const char *text, const char *wanted)
{
	for (; *text; text++) {
		const char *t = text, *w = wanted;

		while (*w && (*t == *w || (*w == ' ' && *t == '\n'))) {
			t += *w == ' ' ? strspn(t, " \n") : 1;
			w++;
		}
		if (!*w)
			return true;
	}
	return false;
}

static void test_help(void **state)
{
	const char *text;

	setenv("RAILGAUGE_THRESHOLD", "0", 1);	/* help is what one needs then */
	text = parse("x --bogus --help", "FILE...", false, 1);
	unsetenv("RAILGAUGE_THRESHOLD");
	assert_int_equal(rc, 1);
	assert_memory_equal(text, "Usage: rg_test [OPTION]... FILE...\nA test.\n", 43);
	assert_non_null(strstr(text, "\nTransport options:\n      --threshold=BYTES      messages "));
	assert_true(contains_words(text, "at once (1 to 1T, or auto; default 8K)"));
	assert_non_null(strstr(text, "\nMeasurement options:\n  -i, --iterations=N         timed "));
	assert_non_null(strstr(text, "  -f, --full                 more columns\n"));
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		assert_true(strcspn(line, "\n") < 80);
	text = parse("x --version", NULL, false, 1);
	assert_int_equal(rc, 1);
	assert_memory_equal(text, "rg_test (railgauge) ", 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_alias),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests_name("cmdline", tests, NULL, NULL);
}
