/* random.h - a number that nobody else has, for keys, cookies and first sequence numbers. */
#ifndef RG_UTIL_RANDOM_H
#define RG_UTIL_RANDOM_H

#include <stdint.h>
#include <sys/random.h>

#include "clock.h"

/*
 * 64 bits, all of them random: take as many as you need.  Never waits and never
 * fails.  Where the kernel gives none (yet) they come of the time and an address
 * and are only likely to differ between calls and processes, so no secret is made
 * of them.
 */
static inline uint64_t rg_random(void)
{
	uint64_t value = 0;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
		value = (rg_now_ns() ^ (uint64_t)(uintptr_t)&value) * 0x9e3779b97f4a7c15u;
	return value;
}

#endif
