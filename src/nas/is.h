/*
 * is.h - integer sort: keys, buckets, ranks; without the messages.
 *
 * RNR-94-007, section 2.8: the rank of a key is its place in the sorted sequence.  Keys
 * are scaled sums of four numbers of the generator, so most lie in the middle.  The keys are
 * sorted into buckets by their high bits.  Whole buckets are assigned to ranks so that each gets
 * about the same number of keys.  A rank then counts the keys of its buckets.
 */
#ifndef RG_NAS_IS_H
#define RG_NAS_IS_H

#include "nas/nas.h"

enum { IS_ITERATIONS = 10, IS_TESTS = 5 };

/* In iteration i the key at `index` has rank `rank` + slope * (i - lag). */
struct is_test {
	uint32_t index, rank;
	int slope, lag;
};

struct is_class {
	int keys_log, max_log, buckets_log;	/* log2 of: keys; their bound; buckets */
	struct is_test test[IS_TESTS];
};
extern const struct is_class is_classes[NAS_CLASSES];

static inline uint64_t is_keys(const struct is_class *c)
{
	return UINT64_C(1) << c->keys_log;
}

static inline uint32_t is_key_max(const struct is_class *c)	/* all keys are below */
{
	return UINT32_C(1) << c->max_log;
}

static inline int is_buckets(const struct is_class *c)
{
	return 1 << c->buckets_log;
}

static inline int is_shift(const struct is_class *c)		/* bucket = key >> shift */
{
	return c->max_log - c->buckets_log;
}

/* The largest number of keys that a rank can be assigned. */
size_t is_room(const struct is_class *c, int ranks);
int is_ranks_max(enum nas_class c);
/* Per rank: is_room keys three times, counts, buckets. */
uint64_t is_memory_bytes(enum nas_class c, int ranks);

/* Keys first, first + 1, ... of the sequence. */
void is_generate(const struct is_class *c, uint32_t *keys, uint64_t first, size_t count);

/* The number of keys in each bucket. */
void is_bucket_sizes(const uint32_t *keys, size_t count, int shift, uint32_t *size, int buckets);

/* Sort keys by bucket.  at: scratch memory of `buckets` numbers. */
void is_bucket_sort(const uint32_t *keys, size_t count, int shift, const uint32_t *size,
		    int buckets, uint32_t *at, uint32_t *sorted);

/*
 * Assign buckets: rank r gets buckets first[r] to first[r + 1] - 1; first has ranks + 1 members.  A
 * bucket belongs to the rank in whose part of the sorted sequence, keys / ranks long, it begins.
 * total: keys of all ranks, by bucket.
 */
void is_deal(const uint32_t *total, int buckets, uint64_t keys, int ranks, int *first);

/* The sum of size[from] to size[to - 1]. */
uint64_t is_sum(const uint32_t *size, int from, int to);

/*
 * Count keys: add 1 to count[key - low] for each; low is the smallest possible key.  count has
 * mask + 1 places, a power of two, so that a damaged key is counted in one of them, too.
 */
void is_count(const uint32_t *keys, size_t count_of_keys, uint32_t low, uint32_t mask,
	      uint32_t *count);
/* Turn counts into ranks: the number of smaller keys. */
void is_ranks(uint32_t *count, size_t range);

/* The rank that test t expects in an iteration. */
uint32_t is_expected(const struct is_class *c, int t, int iteration);

/*
 * Full verification: put keys at the places given by their ranks (from is_ranks; overwritten).
 * rank has mask + 1 places, as count; out: `room` places of IS_EMPTY.  False if a place is
 * outside or taken.
 */
#define IS_EMPTY UINT32_MAX
bool is_place(const uint32_t *keys, size_t count, uint32_t low, uint32_t mask, uint32_t *rank,
	      uint32_t *out, size_t room);
/* Is no key smaller than the key before it, and no place empty? */
bool is_ascending(const uint32_t *keys, size_t count);

#endif
