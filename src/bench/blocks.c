/* blocks.c - the small functions that bench_def entries are made of. */
#include "bench.h"

int bench_one(const struct bench *b)
{
	return 1;
}

int bench_two(const struct bench *b)
{
	return 2;
}

int bench_per_rank(const struct bench *b)
{
	return b->size;
}

int bench_window(const struct bench *b)
{
	return b->window;
}

int bench_two_windows(const struct bench *b)
{
	return 2 * b->window;
}

int bench_window_side0(const struct bench *b)
{
	return b->side == 0 ? b->window : 0;
}

int bench_window_side1(const struct bench *b)
{
	return b->side == 1 ? b->window : 0;
}

struct bench_origin bench_from_peer(const struct bench *b, int block)
{
	return (struct bench_origin){ .rank = b->peer, .block = block };
}
