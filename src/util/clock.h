/* clock.h - time in uint64_t nanoseconds of CLOCK_MONOTONIC. */
#ifndef RG_UTIL_CLOCK_H
#define RG_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t rg_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
