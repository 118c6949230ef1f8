/*
 * test_copy.c - copies of every kind of length, with the bytes next to them; the way that costs choose.
 */
#include "cmocka_all.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "util/copy.h"
#include "util/copy_choice.h"

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

/* Costs of 16 KiB, ns. */
static const struct machine {
	uint32_t blocks_ns, whole_ns;
	enum rg_copy_way way;
} machines[] = {
	{ 560, 260, RG_COPY_WHOLE },
	{ 900, 3600, RG_COPY_BLOCKS },
	{ 1000, 992, RG_COPY_BLOCKS },		/* within the margin */
	{ 1000, 970, RG_COPY_WHOLE },
	{ 0, 0, RG_COPY_BLOCKS },		/* a clock that does not advance */
};

static void learn(struct rg_copy_cell *cell, const struct machine *m, unsigned disturbed, size_t bytes)
{
	unsigned n = 0;

	memset(cell, 0, sizeof(*cell));
	for (; !cell->settled; n++) {
		const bool timed = rg_copy_next(cell);
		uint64_t ns = (cell->way == RG_COPY_WHOLE ? m->whole_ns : m->blocks_ns) * bytes / RG_COPY_MOST;

		assert_int_equal(timed, n >= RG_COPY_PASSED);
		if (disturbed && n % disturbed == 0)
			ns += 5000000000;
		if (timed)
			rg_copy_took(cell, bytes, ns);
		else
			assert_int_equal(cell->way, RG_COPY_BLOCKS);
	}
	assert_true(n == RG_COPY_PASSED + RG_COPY_WAYS * RG_COPY_FEW || n == RG_COPY_PASSED + RG_COPY_WAYS * RG_COPY_SAMPLES);
}

static void test_choice(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		for (unsigned disturbed = 0; disturbed < 8; disturbed += 3)
			for (size_t bytes = RG_COPY_LEAST; bytes <= RG_COPY_MOST; bytes *= 2) {
				struct rg_copy_cell cell;

				learn(&cell, &machines[i], disturbed, bytes);
				assert_int_equal(cell.way, machines[i].way);
			}
}

/* ---- Launches with noise --------------------------------------------------- */

enum { LAUNCHES = 200 };

/* From 0 on, below 1. */
static double random_of(uint64_t *dice)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return (double)(*dice >> 11) / (double)(UINT64_C(1) << 53);
}

/* About normal, of standard deviation 1. */
static double deviation(uint64_t *dice)
{
	return 1.732 * (random_of(dice) + random_of(dice) + random_of(dice) + random_of(dice) - 2);
}

/* Either way, only more, and alike for copies that follow each other; some meet an interrupt, or are off the core. */
static double disturbed(uint64_t *dice, double *drift, double ns)
{
	const double more = deviation(dice), chance = random_of(dice);

	ns *= 1 + 0.06 * deviation(dice) + 0.06 * (more < 0 ? -more : more);
	*drift += 0.0018 * deviation(dice) - 0.01 * (*drift - 1);
	ns *= *drift;
	if (chance < 0.001)
		return ns + 4e6 * random_of(dice);
	return chance < 0.03 ? ns + 2e3 + 8e3 * random_of(dice) : ns;
}

static enum rg_copy_way launch(const double cost_ns[RG_COPY_WAYS], size_t bytes, uint64_t seed)
{
	struct rg_copy_cell cell = { .passed = 0 };
	uint64_t dice = seed * 7919 + 1;
	double drift = 1;

	while (!cell.settled) {
		const bool timed = rg_copy_next(&cell);
		const double ns = disturbed(&dice, &drift, cost_ns[cell.way]);

		if (timed)
			rg_copy_took(&cell, bytes, (uint64_t)ns);
	}
	return (enum rg_copy_way)cell.way;
}

/* The choice costs at most 3 % more than the best in 19 of 20 launches, whatever the ways' costs differ by. */
static void test_steady(void **state)
{
	static const double ratios[] = {
		0.5, 0.8, 0.9, 0.93, 0.95, 0.96, 0.98, 1, 1.02, 1.04, 1.05, 1.07, 1.1, 1.25, 2,
	};

	(void)state;
	for (size_t r = 0; r < sizeof(ratios) / sizeof(ratios[0]); r++)
		for (size_t bytes = 2 * RG_COPY_LEAST; bytes <= RG_COPY_MOST; bytes *= 2) {
			const double blocks = 1000.0 * (double)bytes / RG_COPY_MOST;
			const double cost_ns[RG_COPY_WAYS] = { [RG_COPY_BLOCKS] = blocks,
							       [RG_COPY_WHOLE] = blocks * ratios[r] };
			const double least = ratios[r] < 1 ? cost_ns[RG_COPY_WHOLE] : blocks;
			int good = 0;

			for (int i = 0; i < LAUNCHES; i++)
				good += cost_ns[launch(cost_ns, bytes, (uint64_t)i)] <= 1.03 * least;
			if (good < LAUNCHES * 19 / 20)
				fail_msg("whole / blocks %.2f, %zu bytes: %d of %d within 3 %%", ratios[r], bytes, good,
					 LAUNCHES);
		}
}

/* A choice of a file stays, with its costs. */
static void test_given(void **state)
{
	static const uint32_t cost_ns[RG_COPY_WAYS] = { [RG_COPY_BLOCKS] = 500, [RG_COPY_WHOLE] = 300 };
	struct rg_copy_cell cell = { .passed = 0 };

	(void)state;
	rg_copy_give(&cell, RG_COPY_WHOLE, cost_ns);
	assert_true(cell.settled && cell.given);
	assert_int_equal(cell.way, RG_COPY_WHOLE);
	assert_int_equal(rg_copy_cost(&cell, RG_COPY_BLOCKS), 500);
	assert_int_equal(rg_copy_cost(&cell, RG_COPY_WHOLE), 300);
}

static void test_class(void **state)
{
	const unsigned char *at = from;

	(void)state;
	assert_int_equal(rg_copy_class(at, at + 8192, 1024), 1);
	assert_int_equal(rg_copy_class(at + 511, at, 2048), 1);
	assert_int_equal(rg_copy_class(at + 512, at, 2048), 0);
	assert_int_equal(rg_copy_class(at + 100, at + 612, 2049), 3);
	assert_int_equal(rg_copy_class(at + 100, at + 613, 2049), 2);
	assert_int_equal(rg_copy_class(at, at + 2048, 8184), 4);
	assert_int_equal(rg_copy_class(at, at + 2048, RG_COPY_MOST), RG_COPY_CLASSES - 2);
	assert_int_equal(rg_copy_class(at, at, RG_COPY_MOST), RG_COPY_CLASSES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_to_other_core),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_steady),
		cmocka_unit_test(test_class),
		cmocka_unit_test(test_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
