/* random.h - random numbers for keys, cookies and first sequence numbers. */
#ifndef RG_UTIL_RANDOM_H
#define RG_UTIL_RANDOM_H

#include <stdint.h>
#include <sys/random.h>

#include "util/clock.h"

/*
 * 64 random bits.  Never waits and never fails.  If the kernel has none (yet), the
 * value is computed from the time and an address: it is only likely to differ between
 * calls and processes, so it must not be used as a secret.
 */
static inline uint64_t rg_random(void)
{
	uint64_t value = 0;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
		value = (rg_now_ns() ^ (uint64_t)(uintptr_t)&value) * 0x9e3779b97f4a7c15u;
	return value;
}

#endif
