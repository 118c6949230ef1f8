/*
 * lcg.h - the generator of the NAS kernels: x' = 5^13 x mod 2^46; the number is x' / 2^46.
 *
 * Source: RNR-94-007, section 2.3.  Products are computed mod 2^64, of which 2^46 is a
 * divisor, so the result is exact.  Numbers have 46 bits and are exact as doubles.
 */
#ifndef RG_NAS_LCG_H
#define RG_NAS_LCG_H

#include <stddef.h>
#include <stdint.h>

#define LCG_SEED UINT64_C(314159265)
#define LCG_FACTOR UINT64_C(1220703125)		/* 5^13 */
#define LCG_BITS 46
#define LCG_MASK ((UINT64_C(1) << LCG_BITS) - 1)

static inline uint64_t lcg_next(uint64_t x)
{
	return x * LCG_FACTOR & LCG_MASK;
}

/* The value after n steps from x, computed in log2(n) steps. */
uint64_t lcg_skip(uint64_t x, uint64_t n);

/* The n numbers that follow x, in (0, 1). */
void lcg_fill(uint64_t x, double *out, size_t n);

#endif
