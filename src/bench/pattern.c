/* pattern.c - data whose bytes show their origin (pattern.h). */
#include <string.h>

#include "bench/pattern.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit depends on every bit. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

struct pattern pattern_of(int rank, int block, uint64_t generation)
{
	uint64_t place = (uint64_t)(uint32_t)rank << 32 | (uint32_t)block;

	return (struct pattern){ .seed = mix(mix(place + GOLDEN) ^ (generation + 1) * GOLDEN) };
}

struct pattern pattern_sum(int ranks, int block, uint64_t generation)
{
	return (struct pattern){ .ranks = ranks, .block = block, .generation = generation };
}

static uint64_t sum_word(struct pattern p, size_t index)
{
	uint32_t sum[2] = { 0, 0 }, half[2];
	uint64_t w;

	for (int rank = 0; rank < p.ranks; rank++) {
		w = mix(pattern_of(rank, p.block, p.generation).seed + index * GOLDEN);
		memcpy(half, &w, 8);
		sum[0] += half[0];
		sum[1] += half[1];
	}
	memcpy(&w, sum, 8);
	return w;
}

static uint64_t word(struct pattern p, size_t index)
{
	return p.ranks ? sum_word(p, index) : mix(p.seed + index * GOLDEN);
}

/* Byte k in the order of memory, as pattern_fill writes it. */
unsigned char pattern_byte(struct pattern p, size_t offset)
{
	uint64_t w = word(p, offset / 8);
	unsigned char bytes[8];

	memcpy(bytes, &w, 8);
	return bytes[offset % 8];
}

static void fill(struct pattern p, unsigned char *to, size_t bytes, uint64_t flip)
{
	uint64_t w;
	size_t i;

	for (i = 0; i < bytes / 8; i++) {
		w = word(p, i) ^ flip;
		memcpy(to + i * 8, &w, 8);
	}
	w = word(p, i) ^ flip;
	memcpy(to + i * 8, &w, bytes % 8);
}

void pattern_fill(struct pattern p, unsigned char *to, size_t bytes)
{
	fill(p, to, bytes, 0);
}

void pattern_fill_wrong(struct pattern p, unsigned char *to, size_t bytes)
{
	fill(p, to, bytes, ~UINT64_C(0));
}

size_t pattern_check(struct pattern p, const unsigned char *at, size_t bytes)
{
	size_t i, k;

	for (i = 0; i < bytes / 8; i++) {
		uint64_t w = word(p, i);

		if (memcmp(at + i * 8, &w, 8))
			break;
	}
	for (k = i * 8; k < bytes; k++)
		if (at[k] != pattern_byte(p, k))
			return k;
	return bytes;
}
