/* test_pattern.c - damage of any kind is seen, and only damage. */
#include "cmocka_all.h"

#include <string.h>

#include "bench/pattern.h"

enum { BYTES = 203 };

static void test_fill_and_check(void **state)
{
	unsigned char data[BYTES + 1];

	for (size_t bytes = 0; bytes <= BYTES; bytes++) {
		struct pattern p = pattern_of(3, 5, bytes);

		memset(data, 0xaa, sizeof(data));
		pattern_fill(p, data, bytes);
		assert_int_equal(data[bytes], 0xaa);
		assert_int_equal(pattern_check(p, data, bytes), bytes);
		for (size_t k = 0; k < bytes; k++) {
			assert_int_equal(data[k], pattern_byte(p, k));
			data[k] ^= 0x40;
			assert_int_equal(pattern_check(p, data, bytes), k);
			data[k] ^= 0x40;
		}
	}
}

static void test_wrong_everywhere(void **state)
{
	struct pattern p = pattern_of(0, 0, 0);
	unsigned char data[BYTES];

	pattern_fill_wrong(p, data, BYTES);
	for (size_t k = 0; k < BYTES; k++)
		assert_int_not_equal(data[k], pattern_byte(p, k));
}

/* Words of 4 bytes, each rank's once. */
static void test_sum(void **state)
{
	unsigned char data[3][64], sum[64];
	struct pattern p = pattern_sum(3, 7, 11);

	for (int rank = 0; rank < 3; rank++)
		pattern_fill(pattern_of(rank, 7, 11), data[rank], 64);
	for (int i = 0; i < 64; i += 4) {
		uint32_t total = 0, w;

		for (int rank = 0; rank < 3; rank++) {
			memcpy(&w, data[rank] + i, 4);
			total += w;
		}
		memcpy(sum + i, &total, 4);
	}
	for (size_t bytes = 0; bytes <= 64; bytes += 4)
		assert_int_equal(pattern_check(p, sum, bytes), bytes);
	sum[61] ^= 1;
	assert_int_equal(pattern_check(p, sum, 64), 61);
	pattern_fill_wrong(p, data[0], 64);
	sum[61] ^= 1;
	for (int i = 0; i < 64; i++)
		assert_int_not_equal(data[0][i], sum[i]);
}

/* Another rank, block, generation or place looks different at once: within 16 bytes. */
static void test_distinct(void **state)
{
	unsigned char data[BYTES];

	for (int rank = 0; rank < 12; rank++)
		for (int block = 0; block < 12; block++)
			for (uint64_t g = 0; g < 12; g++) {
				struct pattern p = pattern_of(rank, block, g);

				pattern_fill(p, data, BYTES);
				assert_true(pattern_check(pattern_of(rank + 1, block, g), data, 16) < 16);
				assert_true(pattern_check(pattern_of(block, rank, g), data, 16) < 16 ||
					    rank == block);
				assert_true(pattern_check(pattern_of(rank, block + 1, g), data, 16) < 16);
				assert_true(pattern_check(pattern_of(rank, block, g + 1), data, 16) < 16);
				for (size_t shift = 1; shift < 64; shift++)
					assert_true(pattern_check(p, data + shift, 16) < 16);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fill_and_check),
		cmocka_unit_test(test_wrong_everywhere),
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_distinct),
	};

	return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
