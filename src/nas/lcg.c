/* lcg.c - the generator: many numbers at once, and jumps in the sequence. */
#include "nas/lcg.h"

static uint64_t factor_of(uint64_t steps)
{
	uint64_t power = LCG_FACTOR, product = 1;

	for (; steps; steps >>= 1) {
		if (steps & 1)
			product = product * power & LCG_MASK;
		power = power * power & LCG_MASK;
	}
	return product;
}

uint64_t lcg_skip(uint64_t x, uint64_t n)
{
	return x * factor_of(n) & LCG_MASK;
}

void lcg_fill(uint64_t x, double *out, size_t n)
{
	/* Four sequences in turn: no number waits for the product before it. */
	enum { LEAP = 4 };
	const uint64_t factor = factor_of(LEAP);
	uint64_t state[LEAP];
	size_t i = 0;

	for (int k = 0; k < LEAP; k++)
		state[k] = x = lcg_next(x);
	for (; i + LEAP <= n; i += LEAP)
		for (int k = 0; k < LEAP; k++) {
			out[i + (size_t)k] = (double)(int64_t)state[k] * 0x1p-46;
			state[k] = state[k] * factor & LCG_MASK;
		}
	for (int k = 0; i < n; i++, k++)
		out[i] = (double)(int64_t)state[k] * 0x1p-46;
}
