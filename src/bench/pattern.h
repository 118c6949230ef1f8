/*
 * pattern.h - data whose bytes show their origin.
 *
 * Byte k of a block is a pure function of the rank that sent it, the block's number, the
 * generation (a counter of runs) and k.  So stale data, data of another block and data of
 * another place in the block are all detected.  The check computes the pattern anew and
 * never reads a send buffer.
 *
 * The sum of a block over all ranks, in unsigned words of 4 bytes as memory has them,
 * is a pattern as well.
 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct pattern {
	uint64_t seed;
	int ranks;		/* ranks in the sum; 0: no sum */
	int block;
	uint64_t generation;
};

struct pattern pattern_of(int rank, int block, uint64_t generation);
struct pattern pattern_sum(int ranks, int block, uint64_t generation);
void pattern_fill(struct pattern p, unsigned char *to, size_t bytes);
/* Every byte differs from the byte that pattern_fill writes. */
void pattern_fill_wrong(struct pattern p, unsigned char *to, size_t bytes);
/* The first byte that differs, or `bytes` if none does. */
size_t pattern_check(struct pattern p, const unsigned char *at, size_t bytes);
unsigned char pattern_byte(struct pattern p, size_t offset);

#endif
