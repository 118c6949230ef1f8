/* random.h - random numbers of tests: a seed gives the same sequence on every machine. */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

/* splitmix64: every state is a seed as good as another. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* A number from 0 to limit - 1. */
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
	return random_next(state) % limit;
}

#endif
