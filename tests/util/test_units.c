/* test_units.c - numbers with units: tables, and properties on random input. */
#include "cmocka_all.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/units.h"
#include "random.h"

typedef int parse_fn(const char *text, uint64_t *value);

struct parse_case {
	parse_fn *parse;
	const char *text;
	int rc;
	uint64_t value;
};

static const struct parse_case cases[] = {
	{ rg_parse_count, "0", 0, 0 },
	{ rg_parse_count, "18446744073709551615", 0, UINT64_MAX },
	{ rg_parse_count, "18446744073709551616", -ERANGE, 0 },
	{ rg_parse_count, "99999999999999999999999", -ERANGE, 0 },
	{ rg_parse_count, "1.0", -EINVAL, 0 },
	{ rg_parse_count, "1K", -EINVAL, 0 },
	{ rg_parse_count, "", -EINVAL, 0 },
	{ rg_parse_count, "-1", -EINVAL, 0 },
	{ rg_parse_count, "+1", -EINVAL, 0 },
	{ rg_parse_count, " 1", -EINVAL, 0 },
	{ rg_parse_count, "1 ", -EINVAL, 0 },
	{ rg_parse_count, "0x10", -EINVAL, 0 },
	{ rg_parse_size, "0", 0, 0 },
	{ rg_parse_size, "8192", 0, 8192 },
	{ rg_parse_size, "8K", 0, 8192 },
	{ rg_parse_size, "8k", 0, 8192 },
	{ rg_parse_size, "8KB", 0, 8192 },
	{ rg_parse_size, "8KiB", 0, 8192 },
	{ rg_parse_size, "8B", 0, 8 },
	{ rg_parse_size, "8iB", -EINVAL, 0 },
	{ rg_parse_size, "8KBB", -EINVAL, 0 },
	{ rg_parse_size, "8Ki", -EINVAL, 0 },
	{ rg_parse_size, "1.5K", 0, 1536 },
	{ rg_parse_size, "0.5K", 0, 512 },
	{ rg_parse_size, "1.50000000000000000000000000000K", 0, 1536 },
	{ rg_parse_size, "0.1K", -EINVAL, 0 },
	{ rg_parse_size, "1.5", -EINVAL, 0 },
	{ rg_parse_size, ".5K", -EINVAL, 0 },
	{ rg_parse_size, "1.K", -EINVAL, 0 },
	{ rg_parse_size, "1e3", -EINVAL, 0 },
	{ rg_parse_size, "K", -EINVAL, 0 },
	{ rg_parse_size, "1T", 0, UINT64_C(1) << 40 },
	{ rg_parse_size, "16777215T", 0, UINT64_C(16777215) << 40 },
	{ rg_parse_size, "16777216T", -ERANGE, 0 },
	{ rg_parse_size, "1GB/s", -EINVAL, 0 },
	{ rg_parse_rate, "1GB/s", 0, 1000000000 },
	{ rg_parse_rate, "8Gb/s", 0, 1000000000 },
	{ rg_parse_rate, "0.008Gb/s", 0, 1000000 },
	{ rg_parse_rate, "200MB/s", 0, 200000000 },
	{ rg_parse_rate, "1kb/s", 0, 125 },
	{ rg_parse_rate, "1.5kb/s", -EINVAL, 0 },
	{ rg_parse_rate, "7B/s", 0, 7 },
	{ rg_parse_rate, "0", 0, 0 },
	{ rg_parse_rate, "1", -EINVAL, 0 },
	{ rg_parse_rate, "1G", -EINVAL, 0 },
	{ rg_parse_rate, "1gb/s", -EINVAL, 0 },
	{ rg_parse_time, "2us", 0, 2000 },
	{ rg_parse_time, "1.5us", 0, 1500 },
	{ rg_parse_time, "0.0015ms", 0, 1500 },
	{ rg_parse_time, "81.5ms", 0, 81500000 },
	{ rg_parse_time, "10s", 0, UINT64_C(10000000000) },
	{ rg_parse_time, "0", 0, 0 },
	{ rg_parse_time, "0.0", 0, 0 },
	{ rg_parse_time, "5", -EINVAL, 0 },
	{ rg_parse_time, "1.5ns", -EINVAL, 0 },
	{ rg_parse_time, "1min", -EINVAL, 0 },
	{ rg_parse_time, "18446744074s", -ERANGE, 0 },
};

static void test_parse(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct parse_case *c = &cases[i];
		uint64_t value = 0xdead;
		int rc = c->parse(c->text, &value);

		if (rc != c->rc || value != (rc ? 0xdead : c->value))
			fail_msg("\"%s\": %d, %" PRIu64, c->text, rc, value);
	}
}

static void test_format(void **state)
{
	char buf[RG_UNIT_TEXT];

	assert_string_equal(rg_format_size(0, buf, sizeof(buf)), "0");
	assert_string_equal(rg_format_size(8192, buf, sizeof(buf)), "8K");
	assert_string_equal(rg_format_size(8191, buf, sizeof(buf)), "8191");
	assert_string_equal(rg_format_size(1536, buf, sizeof(buf)), "1536");
	assert_string_equal(rg_format_size(UINT64_C(1) << 40, buf, sizeof(buf)), "1T");
	assert_string_equal(rg_format_size(UINT64_MAX, buf, sizeof(buf)), "18446744073709551615");
	assert_string_equal(rg_format_rate(1000000000, buf, sizeof(buf)), "1GB/s");
	assert_string_equal(rg_format_rate(1486000000, buf, sizeof(buf)), "1486MB/s");
	assert_string_equal(rg_format_rate(12500000000, buf, sizeof(buf)), "12.5GB/s");
	assert_string_equal(rg_format_time(2000, buf, sizeof(buf)), "2us");
	assert_string_equal(rg_format_time(1500, buf, sizeof(buf)), "1.5us");
	assert_string_equal(rg_format_time(0, buf, sizeof(buf)), "0ns");
	assert_string_equal(rg_format_time(999, buf, 3), "99");	/* a small buffer truncates */
}

/* Formatted text parses back to the same value, and fits into RG_UNIT_TEXT bytes. */
static void test_round_trip(void **state)
{
	static const struct {
		char *(*format)(uint64_t value, char *buf, size_t size);
		parse_fn *parse;
	} pairs[] = {
		{ rg_format_size, rg_parse_size },
		{ rg_format_rate, rg_parse_rate },
		{ rg_format_time, rg_parse_time },
	};
	uint64_t seed = 20041106;

	for (int i = 0; i < 200000; i++) {
		/* Every magnitude, and numbers with many trailing zeros of either base. */
		uint64_t value = random_next(&seed) >> (random_next(&seed) % 64);
		uint64_t zeros = random_next(&seed) % 40;

		if (i % 3 == 1)
			value = value >> zeros << zeros;
		if (i % 3 == 2)
			value -= value % UINT64_C(1000000);
		for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
			char buf[RG_UNIT_TEXT];
			uint64_t back = ~value;

			pairs[p].format(value, buf, sizeof(buf));
			assert_int_equal(pairs[p].parse(buf, &back), 0);
			assert_true(back == value);
		}
	}
}

/* Reference for sizes and times: long double has 64 bits of mantissa here. */
static int reference(const char *text, uint64_t factor, long double *value)
{
	char *end;

	*value = strtold(text, &end) * (long double)factor;
	return end == text;
}

/* Random strings never crash, never set the output on failure, agree with strtold on success. */
static void test_fuzz(void **state)
{
	static const char alphabet[] = "0123456789.KMGTkmgiBb/snu -+eEx";
	static parse_fn *const parsers[] = {
		rg_parse_count, rg_parse_size, rg_parse_rate, rg_parse_time,
	};
	uint64_t seed = 3;
	int accepted = 0;

	for (int i = 0; i < 500000; i++) {
		char text[24];
		size_t length = random_next(&seed) % (sizeof(text) - 1);

		for (size_t j = 0; j < length; j++)
			text[j] = alphabet[random_next(&seed) %
					   (j + 2 < length ? 11 : sizeof(alphabet) - 1)];
		text[length] = '\0';
		for (size_t p = 0; p < sizeof(parsers) / sizeof(parsers[0]); p++) {
			uint64_t value = 0xdead;
			int rc = parsers[p](text, &value);
			long double want;

			if (rc) {
				assert_true(rc == -EINVAL || rc == -ERANGE);
				assert_true(value == 0xdead);
				continue;
			}
			accepted++;
			assert_int_equal(reference(text, 1, &want), 0);
			if (want == 0)
				assert_true(value == 0);
			else	/* some unit: the ratio is at least that of a bit, at most T's */
				assert_true((long double)value >= want * 0.125L &&
					    (long double)value <= want * 1099511627776.0L);
		}
	}
	assert_true(accepted > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_fuzz),
	};

	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
