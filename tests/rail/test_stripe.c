/*
 * test_stripe.c - the guarantees of stripe.h, on random input: the chunks cover
 * every byte exactly once, none is empty, cuts are aligned, their number is
 * bounded.  The seed is printed with a failure and can be given as argument.
 */
#include "cmocka_all.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "rail/policy.h"
#include "rail/message/stripe.h"

static uint64_t seed = 20041106;

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;	/* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Numbers of every magnitude, not only large ones. */
static uint64_t magnitude(uint64_t *state, uint64_t max)
{
	uint64_t value = next_random(state) >> (next_random(state) % 64);

	return value % (max + 1);
}

static void check_table(const struct rail_cut *cut, uint64_t bytes)
{
	struct rail_stripe s;
	uint64_t expected = 0, per_rail[RAIL_MAX] = { 0 };
	int last_rail = -1;

	assert_int_equal(rail_stripe_plan(&s, bytes, cut), 0);
	assert_true(s.chunk_count <= RAIL_CHUNKS_MAX);
	assert_true((s.chunk_count == 0) == (bytes == 0));
	for (uint32_t n = 0; n < s.chunk_count; n++) {
		struct rail_chunk c = rail_stripe_chunk(&s, n);

		/* Each begins where the one before it ended: every byte once. */
		assert_int_equal(c.offset, expected);
		assert_true(c.bytes > 0);
		assert_true(c.bytes < (uint64_t)1 << 31);
		assert_int_equal(c.offset % RAIL_STRIPE_ALIGN, 0);
		assert_in_range(c.rail, 0, cut->rail_count - 1);
		assert_true(cut->weight[c.rail] > 0);
		assert_true(c.rail >= last_rail);
		last_rail = c.rail;
		per_rail[c.rail] += c.bytes;
		expected += c.bytes;
	}
	assert_int_equal(expected, bytes);
	for (int r = 0; r < cut->rail_count; r++)
		assert_int_equal(per_rail[r], s.piece[r].bytes);
}

/* Chunks that any rail takes: every byte once, aligned, none empty, few enough. */
static void check_pull(int rails, uint64_t bytes)
{
	struct rail_cut cut = { .rail_count = rails, .pull = true };
	struct rail_stripe s;
	uint64_t expected = 0, first = 0;

	assert_int_equal(rail_stripe_plan(&s, bytes, &cut), 0);
	assert_true(s.chunk_count <= RAIL_CHUNKS_MAX);
	assert_true((s.chunk_count == 0) == (bytes == 0));
	for (uint32_t n = 0; n < s.chunk_count; n++) {
		struct rail_chunk c = rail_stripe_chunk(&s, n);

		assert_int_equal(c.offset, expected);
		assert_true(c.bytes > 0);
		assert_true(c.bytes < (uint64_t)1 << 31);
		assert_int_equal(c.offset % RAIL_STRIPE_ALIGN, 0);
		assert_int_equal(c.rail, RAIL_ANY);
		first = n ? first : c.bytes;
		assert_true(c.bytes < first + 2 * RAIL_STRIPE_ALIGN);
		expected += c.bytes;
	}
	assert_int_equal(expected, bytes);
	/* A large enough message has a chunk for every rail. */
	if (bytes >= (uint64_t)rails * RAIL_STRIPE_ALIGN)
		assert_true(s.chunk_count >= (uint32_t)rails);
	/* The last chunk to end can be late by a small part of the message only. */
	if (bytes >= (uint64_t)rails << 20 && bytes <= (uint64_t)1 << 35)
		assert_true(rail_stripe_chunk(&s, s.chunk_count - 1).bytes <=
			    bytes / (uint64_t)rails / 15 + RAIL_STRIPE_ALIGN);
}

static void test_pull(void **unused)
{
	uint64_t state = seed;
	struct rail_cut cut = { .rail_count = 2, .pull = true };
	struct rail_stripe s;

	(void)unused;
	for (int i = 0; i < 200000; i++) {
		int rails = 1 + (int)(next_random(&state) % RAIL_MAX);

		check_pull(rails, magnitude(&state, RAIL_STRIPE_MAX_BYTES));
	}
	for (int rails = 1; rails <= RAIL_MAX; rails++)
		for (uint64_t bytes = 0; bytes <= 5000; bytes++)
			check_pull(rails, bytes);
	for (int rails = 1; rails <= RAIL_MAX; rails++)
		check_pull(rails, RAIL_STRIPE_MAX_BYTES);
	/* 2 MiB for two: 30 chunks of 64 KiB, two of 32, four of 16. */
	assert_int_equal(rail_stripe_plan(&s, 2 << 20, &cut), 0);
	assert_int_equal(s.chunk_count, 36);
	assert_int_equal(rail_stripe_chunk(&s, 29).bytes, 64 << 10);
	assert_int_equal(rail_stripe_chunk(&s, 30).bytes, 32 << 10);
	assert_int_equal(rail_stripe_chunk(&s, 31).bytes, 32 << 10);
	assert_int_equal(rail_stripe_chunk(&s, 32).bytes, 16 << 10);
	assert_int_equal(rail_stripe_chunk(&s, 35).bytes, 16 << 10);
	assert_int_equal(rail_stripe_plan(&s, RAIL_STRIPE_MAX_BYTES + 1, &cut), -EMSGSIZE);
}

/* Every share within one alignment of its due, in exact arithmetic. */
static void check_shares(const struct rail_cut *cut, uint64_t bytes)
{
	struct rail_stripe s;
	long double total = 0;

	assert_int_equal(rail_stripe_plan(&s, bytes, cut), 0);
	for (int r = 0; r < cut->rail_count; r++)
		total += cut->weight[r];
	for (int r = 0; r < cut->rail_count; r++) {
		long double due = (long double)bytes * cut->weight[r] / total;
		long double off = (long double)s.piece[r].bytes - due;

		assert_true(off < RAIL_STRIPE_ALIGN && off > -(long double)RAIL_STRIPE_ALIGN);
	}
}

static void random_cut(uint64_t *state, struct rail_cut *cut)
{
	*cut = (struct rail_cut){ .rail_count = 1 + (int)(next_random(state) % RAIL_MAX) };
	for (int r = 0; r < cut->rail_count; r++)
		if (next_random(state) % 4)
			cut->weight[r] = (uint32_t)(1 + magnitude(state, RAIL_WEIGHT_MAX - 1));
	if (next_random(state) % 2)		/* even */
		for (int r = 0; r < cut->rail_count; r++)
			cut->weight[r] = cut->weight[r] != 0;
	cut->weight[next_random(state) % (uint64_t)cut->rail_count] = 1;
	cut->chunk_bytes = RAIL_STRIPE_ALIGN * (2 + magnitude(state, 1 << 16));
}

static void test_random(void **unused)
{
	uint64_t state = seed;

	(void)unused;
	for (int i = 0; i < 200000; i++) {
		struct rail_cut cut;
		uint64_t bytes, before = state;

		random_cut(&state, &cut);
		bytes = magnitude(&state, RAIL_STRIPE_MAX_BYTES);
		if (getenv("VERBOSE"))
			printf("state %" PRIu64 "\n", before);
		check_table(&cut, bytes);
		check_shares(&cut, bytes);
	}
}

/* All small lengths on all rail counts: where pieces would be empty. */
static void test_small(void **unused)
{
	(void)unused;
	for (int rails = 1; rails <= RAIL_MAX; rails++)
		for (uint64_t bytes = 0; bytes <= 5000; bytes++) {
			struct rail_cut cut = { .rail_count = rails, .chunk_bytes = 256 };

			rail_policy_cut(&cut, RAIL_STRIPE, 1, bytes, rails - 1, NULL);
			check_table(&cut, bytes);
		}
}

static void test_policies(void **unused)
{
	static const uint8_t weight[RAIL_MAX] = { 240, 0, 80 };
	struct rail_cut cut = { .rail_count = 3, .chunk_bytes = 1 << 20 };
	struct rail_stripe s;

	(void)unused;
	/* A message of the threshold is whole. */
	rail_policy_cut(&cut, RAIL_STRIPE, 8192, 8192, 1, NULL);
	assert_int_equal(rail_stripe_plan(&s, 8192, &cut), 0);
	assert_int_equal(s.chunk_count, 1);
	assert_int_equal(rail_stripe_chunk(&s, 0).rail, 1);
	rail_policy_cut(&cut, RAIL_STRIPE, 8192, 8193, 1, NULL);
	assert_int_equal(rail_stripe_plan(&s, 8193, &cut), 0);
	assert_int_equal(s.chunk_count, 3);
	/* Never cut over rails, however long. */
	rail_policy_cut(&cut, RAIL_BIND, 8192, 1 << 20, 2, NULL);
	assert_int_equal(rail_stripe_plan(&s, 1 << 20, &cut), 0);
	assert_int_equal(s.chunk_count, 1);
	assert_int_equal(rail_stripe_chunk(&s, 0).rail, 2);
	rail_policy_cut(&cut, RAIL_SINGLE, 8192, 3 << 20, 2, NULL);
	assert_int_equal(rail_stripe_plan(&s, 3 << 20, &cut), 0);
	assert_int_equal(s.chunk_count, 3);
	assert_int_equal(rail_stripe_chunk(&s, 2).rail, 2);
	/* Above the threshold, weights count; a rail may get nothing. */
	rail_policy_cut(&cut, RAIL_WEIGHTED, 8192, 8192, 1, weight);
	assert_int_equal(rail_stripe_plan(&s, 8192, &cut), 0);
	assert_int_equal(s.chunk_count, 1);
	assert_int_equal(rail_stripe_chunk(&s, 0).rail, 1);
	rail_policy_cut(&cut, RAIL_WEIGHTED, 8192, 1 << 20, 1, weight);
	assert_int_equal(rail_stripe_plan(&s, 1 << 20, &cut), 0);
	assert_int_equal(s.piece[0].bytes, 768 << 10);
	assert_int_equal(s.piece[1].bytes, 0);
	assert_int_equal(s.piece[2].bytes, 256 << 10);
	rail_policy_cut(&cut, RAIL_PULL, 8192, 8192, 2, NULL);
	assert_int_equal(rail_stripe_plan(&s, 8192, &cut), 0);
	assert_int_equal(rail_stripe_chunk(&s, 0).rail, 2);
	rail_policy_cut(&cut, RAIL_PULL, 8192, 8193, 2, NULL);
	assert_int_equal(rail_stripe_plan(&s, 8193, &cut), 0);
	assert_int_equal(s.chunk_count, 3);
	assert_int_equal(rail_stripe_chunk(&s, 0).rail, RAIL_ANY);
}

static void test_limits(void **unused)
{
	struct rail_cut cut = { .rail_count = 2, .weight = { 1, 1 }, .chunk_bytes = 1 << 20 };
	struct rail_stripe s;

	(void)unused;
	check_table(&cut, RAIL_STRIPE_MAX_BYTES);
	assert_int_equal(rail_stripe_plan(&s, RAIL_STRIPE_MAX_BYTES + 1, &cut), -EMSGSIZE);
	assert_int_equal(rail_stripe_plan(&s, UINT64_MAX, &cut), -EMSGSIZE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_pull),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_limits),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	printf("# seed %" PRIu64 "\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
