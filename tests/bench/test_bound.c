/* test_bound.c - what lets several rails bring no more, against sums done by hand. */
#include "cmocka_all.h"

#include <math.h>

#include "bench/bound.h"

struct expected { double link, shared; int share, sets; };

static void check(const double *rate, int rails, const struct bound_share *share, int shares,
		  bool both_ways, struct expected e)
{
	struct bound b;

	bound_find(rate, rails, share, shares, both_ways, &b);
	assert_true(b.link == e.link);
	assert_true(isinf(e.shared) ? isinf(b.shared) : fabs(b.shared - e.shared) < 1e-9);
	assert_int_equal(b.share, e.share);
	assert_int_equal(b.sets, e.sets);
}

static void test_ports_alone(void **state)
{
	static const double rate[] = { 3, 1 };

	(void)state;
	check(rate, 2, NULL, 0, false, (struct expected){ 4, 4, -1, 0 });
	check(rate, 2, NULL, 0, true, (struct expected){ 8, 8, -1, 0 });
	check(rate, 1, NULL, 0, false, (struct expected){ 3, 3, -1, 0 });
}

/* Two ports of one slot: the slot is the limit, unless it is wide. */
static void test_one_slot(void **state)
{
	static const double rate[] = { 1, 1 };
	static const struct bound_share narrow = { 3, 1.5, 1.5, false },
		wide = { 3, 2.5, 2.5, false }, lopsided = { 3, 1.75, 1.25, false },
		half = { 3, 2, 3, true }, silent = { 3, 0, 1, false };

	(void)state;
	check(rate, 2, &narrow, 1, false, (struct expected){ 2, 1.5, 0, 1 });
	check(rate, 2, &narrow, 1, true, (struct expected){ 4, 3, 0, 1 });
	check(rate, 2, &wide, 1, false, (struct expected){ 2, 2, -1, 0 });
	/* Data that leave a node enter another like it. */
	check(rate, 2, &lopsided, 1, false, (struct expected){ 2, 1.25, 0, 1 });
	/* A second is 0.6 to read 1.2 and 0.4 to write as much. */
	check(rate, 2, &half, 1, true, (struct expected){ 4, 2.4, 0, 1 });
	check(rate, 2, &half, 1, false, (struct expected){ 2, 2, -1, 0 });
	check(rate, 2, &silent, 1, false, (struct expected){ 2, 2, -1, 0 });
}

static void test_several(void **state)
{
	static const double rate[] = { 1, 1, 1, 1 };
	static const struct bound_share adapters[] = {
		{ 0x3, 1.5, 1.5, false }, { 0xc, 1.25, 1.25, false }, { 0xf, 2, 2, false },
	}, twice[] = { { 0x3, 1.5, 1.5, false }, { 0x3, 1.25, 1.25, false } };

	(void)state;
	check(rate, 4, adapters, 1, false, (struct expected){ 4, 3.5, 0, 1 });
	/* The one that takes more away is named. */
	check(rate, 4, adapters, 2, false, (struct expected){ 4, 2.75, 1, 2 });
	/* A switch above both takes the rest. */
	check(rate, 4, adapters, 3, false, (struct expected){ 4, 2, 2, 1 });
	check(rate, 2, twice, 2, false, (struct expected){ 2, 1.25, 1, 1 });
}

static void test_unknown(void **state)
{
	static const double none[] = { 0, 0 }, one[] = { 1, 0 };
	static const struct bound_share both = { 3, 1.5, 1.5, false },
		first = { 1, 0.5, 0.5, false }, strange = { 0xf0, 1, 1, false };

	(void)state;
	check(none, 2, NULL, 0, false, (struct expected){ INFINITY, INFINITY, -1, 0 });
	check(none, 2, &both, 1, false, (struct expected){ INFINITY, 1.5, 0, 1 });
	check(one, 2, &first, 1, false, (struct expected){ INFINITY, INFINITY, 0, 1 });
	check(none, 2, &strange, 1, false, (struct expected){ INFINITY, INFINITY, -1, 0 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ports_alone),
		cmocka_unit_test(test_one_slot),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
