/* is.c - integer sort, without its messages. */
#include "nas/is.h"

#include <string.h>

#include "nas/lcg.h"

/*
 * Numbers of the published verification, from NPB 3.4-MPI, IS/is.c (the arrays *_test_index_array
 * and *_test_rank_array, and the shifts next to them).
 */
const struct is_class is_classes[NAS_CLASSES] = {
	[NAS_S] = { 16, 11, 9, {
		{ 48427, 0, 1, 0 }, { 17148, 18, 1, 0 }, { 23627, 346, 1, 0 },
		{ 62548, 64917, -1, 0 }, { 4431, 65463, -1, 0 },
	} },
	[NAS_W] = { 20, 16, 10, {
		{ 357773, 1249, 1, 2 }, { 934767, 11698, 1, 2 }, { 875723, 1039987, -1, 0 },
		{ 898999, 1043896, -1, 0 }, { 404505, 1048018, -1, 0 },
	} },
	[NAS_A] = { 23, 19, 10, {
		{ 2112377, 104, 1, 1 }, { 662041, 17523, 1, 1 }, { 5336171, 123928, 1, 1 },
		{ 3642833, 8288932, -1, 1 }, { 4250760, 8388264, -1, 1 },
	} },
	[NAS_B] = { 25, 21, 10, {
		{ 41869, 33422937, -1, 0 }, { 812306, 10244, 1, 0 }, { 5102857, 59149, 1, 0 },
		{ 18232239, 33135281, -1, 0 }, { 26860214, 99, 1, 0 },
	} },
	[NAS_C] = { 27, 23, 10, {
		{ 44172927, 61147, 1, 0 }, { 72999161, 882988, 1, 0 },
		{ 74326391, 266290, 1, 0 }, { 129606274, 133997595, -1, 0 },
		{ 21736814, 133525895, -1, 0 },
	} },
};

/* ---- Size ------------------------------------------------------------------------ */

/*
 * A share, and the rest of a bucket that begins in it.  The density of a sum of four
 * has its maximum, 2/3 of one number's, in the middle: 8/3 of a bucket's mean.
 */
size_t is_room(const struct is_class *c, int ranks)
{
	return (size_t)(is_keys(c) / (uint64_t)ranks + 4 * is_keys(c) / (uint64_t)is_buckets(c));
}

/* Each iteration sets keys 1 to 20 of the first rank; buckets are not divided. */
int is_ranks_max(enum nas_class class)
{
	const struct is_class *c = &is_classes[class];
	uint64_t most = is_keys(c) / 32;

	return most < (uint64_t)is_buckets(c) ? (int)most : is_buckets(c);
}

uint64_t is_memory_bytes(enum nas_class class, int ranks)
{
	const struct is_class *c = &is_classes[class];

	return sizeof(uint32_t) * (3 * (uint64_t)is_room(c, ranks) + is_key_max(c) +
				   4 * (uint64_t)is_buckets(c) + 8 * (uint64_t)ranks);
}

/* ---- Keys ------------------------------------------------------------------------- */

/*
 * key = floor(max / 4 * (x1 + x2 + x3 + x4)) of numbers of 46 bits: all are powers of
 * two, so the sum of the states, shifted, is exact.
 */
void is_generate(const struct is_class *c, uint32_t *keys, uint64_t first, size_t count)
{
	const int shift = LCG_BITS + 2 - c->max_log;
	uint64_t x = lcg_skip(LCG_SEED, 4 * first);

	for (size_t i = 0; i < count; i++) {
		uint64_t sum = 0;

		for (int k = 0; k < 4; k++) {
			x = lcg_next(x);
			sum += x;
		}
		keys[i] = (uint32_t)(sum >> shift);
	}
}

/* ---- Buckets ------------------------------------------------------------------------ */

void is_bucket_sizes(const uint32_t *restrict keys, size_t count, int shift,
		     uint32_t *restrict size, int buckets)
{
	memset(size, 0, (size_t)buckets * sizeof(size[0]));
	for (size_t i = 0; i < count; i++)
		size[keys[i] >> shift]++;
}

void is_bucket_sort(const uint32_t *restrict keys, size_t count, int shift, const uint32_t *size,
		    int buckets, uint32_t *restrict at, uint32_t *restrict sorted)
{
	uint32_t next = 0;

	for (int b = 0; b < buckets; b++) {
		at[b] = next;
		next += size[b];
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t key = keys[i];

		sorted[at[key >> shift]++] = key;
	}
}

uint64_t is_sum(const uint32_t *size, int from, int to)
{
	uint64_t sum = 0;

	for (int b = from; b < to; b++)
		sum += size[b];
	return sum;
}

void is_deal(const uint32_t *total, int buckets, uint64_t keys, int ranks, int *first)
{
	uint64_t share = keys / (uint64_t)ranks, before = 0;
	int r = 0;

	for (int b = 0; b < buckets; b++) {
		uint64_t owner = before / share;

		/* Empty buckets after the last key. */
		if (owner >= (uint64_t)ranks)
			owner = (uint64_t)ranks - 1;
		while ((uint64_t)r <= owner)
			first[r++] = b;
		before += total[b];
	}
	while (r <= ranks)
		first[r++] = buckets;
}

/* ---- Ranks -------------------------------------------------------------------------- */

void is_count(const uint32_t *restrict keys, size_t count_of_keys, uint32_t low, uint32_t mask,
	      uint32_t *restrict count)
{
	for (size_t i = 0; i < count_of_keys; i++)
		count[(keys[i] - low) & mask]++;
}

void is_ranks(uint32_t *count, size_t range)
{
	uint32_t smaller = 0;

	for (size_t i = 0; i < range; i++) {
		uint32_t here = count[i];

		count[i] = smaller;
		smaller += here;
	}
}

uint32_t is_expected(const struct is_class *c, int t, int iteration)
{
	const struct is_test *test = &c->test[t];

	return (uint32_t)((int64_t)test->rank + test->slope * (iteration - test->lag));
}

bool is_place(const uint32_t *keys, size_t count, uint32_t low, uint32_t mask, uint32_t *rank,
	      uint32_t *out, size_t room)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = rank[(keys[i] - low) & mask]++;

		if (at >= room || out[at] != IS_EMPTY)
			return false;
		out[at] = keys[i];
	}
	return true;
}

bool is_ascending(const uint32_t *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (keys[i] == IS_EMPTY || (i && keys[i] < keys[i - 1]))
			return false;
	return true;
}
