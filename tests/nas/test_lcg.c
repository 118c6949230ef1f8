/*
 * test_lcg.c - the generator against arithmetic of its own: decimal digits, long
 * multiplication, division by subtraction of 2^46.
 */
#include "cmocka_all.h"

#include <string.h>

#include "nas/lcg.h"

/* Numbers of 40 decimal digits, the lowest first. */
enum { DIGITS = 40 };
struct big { int digit[DIGITS]; };

static struct big big_of(uint64_t value)
{
	struct big b = { { 0 } };

	for (int i = 0; value; i++, value /= 10)
		b.digit[i] = (int)(value % 10);
	return b;
}

static struct big big_product(const struct big *a, const struct big *b)
{
	struct big p = { { 0 } };

	for (int i = 0; i < DIGITS; i++)
		for (int k = 0; i + k < DIGITS; k++)
			p.digit[i + k] += a->digit[i] * b->digit[k];
	for (int i = 0; i + 1 < DIGITS; i++) {
		p.digit[i + 1] += p.digit[i] / 10;
		p.digit[i] %= 10;
	}
	return p;
}

/* Horner's rule on decimal digits: what is left never exceeds 10 * 2^46. */
static uint64_t big_mod_2_46(const struct big *b)
{
	uint64_t rest = 0;

	for (int i = DIGITS - 1; i >= 0; i--) {
		rest = rest * 10 + (uint64_t)b->digit[i];
		while (rest >= UINT64_C(70368744177664))
			rest -= UINT64_C(70368744177664);
	}
	return rest;
}

static uint64_t step(uint64_t x)
{
	struct big a = big_of(1220703125), b = big_of(x), p = big_product(&a, &b);

	return big_mod_2_46(&p);
}

static void test_steps(void **state)
{
	uint64_t x = LCG_SEED, expected = 314159265;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		x = lcg_next(x);
		expected = step(expected);
		assert_true(x == expected);
	}
}

static void test_skip(void **state)
{
	uint64_t x = LCG_SEED;

	(void)state;
	assert_true(lcg_skip(LCG_SEED, 0) == LCG_SEED);
	for (uint64_t n = 1; n <= 3000; n++) {
		x = step(x);
		assert_true(lcg_skip(LCG_SEED, n) == x);
	}
	/* Far: a leap of leaps. */
	x = LCG_SEED;
	for (int i = 0; i < 1000; i++)
		x = lcg_skip(x, UINT64_C(123456789));
	assert_true(lcg_skip(LCG_SEED, UINT64_C(123456789000)) == x);
	/* The period is 2^44. */
	assert_true(lcg_skip(LCG_SEED, UINT64_C(1) << 44) == LCG_SEED);
	assert_true(lcg_skip(LCG_SEED, UINT64_C(1) << 43) != LCG_SEED);
}

static void test_fill(void **state)
{
	double out[67];

	(void)state;
	for (size_t n = 0; n <= 66; n++) {
		uint64_t x = lcg_skip(LCG_SEED, 7 * n);

		memset(out, 0, sizeof(out));
		lcg_fill(x, out, n);
		for (size_t i = 0; i < n; i++) {
			x = step(x);
			assert_true(out[i] == (double)x / 70368744177664.0);
			assert_true(out[i] > 0 && out[i] < 1);
		}
		assert_true(out[n] == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_fill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
