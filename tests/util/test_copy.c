/* test_copy.c - copies of every kind of length, with the bytes next to them. */
#include "cmocka_all.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "util/copy.h"

enum { ROOM = 40000, MARGIN = 64, KEPT = 0xa5 };

static unsigned char from[ROOM], to[ROOM];

/* No block is like the next. */
static unsigned char value(size_t i)
{
	return (unsigned char)((uint32_t)i * 2654435761u >> 24);
}

static void check(void (*copy)(void *, const void *, size_t), size_t bytes, size_t from_at, size_t to_at)
{
	memset(to, KEPT, sizeof(to));
	copy(to + to_at, from + from_at, bytes);
	for (size_t i = 0; i < to_at + bytes + MARGIN; i++) {
		bool inside = i >= to_at && i < to_at + bytes;

		assert_int_equal(to[i], inside ? value(from_at + i - to_at) : KEPT);
	}
}

static void copies(void (*copy)(void *, const void *, size_t))
{
	static const size_t around[] = { 256, 512, 1024, 2048, 3000, 8192, 16384, 20000 };

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = value(i);
	for (size_t bytes = 0; bytes < 80; bytes++)
		check(copy, bytes, MARGIN + bytes % 5, MARGIN + bytes % 3);
	for (size_t k = 0; k < sizeof(around) / sizeof(around[0]); k++)
		for (size_t bytes = around[k] - 2; bytes <= around[k] + 2; bytes++)
			check(copy, bytes, MARGIN + 1, MARGIN + bytes % 9);
}

static void copy_short(void *out, const void *in, size_t bytes)
{
	rg_copy_short(out, in, bytes);
}

static void test_blocks(void **state)
{
	(void)state;
	copies(rg_copy_blocks);
}

static void test_to_other_core(void **state)
{
	(void)state;
	copies(rg_copy_to_other_core);
}

static void test_short(void **state)
{
	(void)state;
	copies(copy_short);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_to_other_core),
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
