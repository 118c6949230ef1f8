/* test_is.c - ranks of keys against qsort, for any number of ranks; the published tests. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "nas/is.h"
#include "nas/lcg.h"

enum { RANKS_MAX = 16 };

/* The steps of the program, for all ranks in sequence. */
struct job {
	const struct is_class *c;
	int ranks;
	size_t count;			/* keys of each */
	uint32_t *keys;			/* all */
	uint32_t *rank_of[RANKS_MAX], low[RANKS_MAX];
	size_t range[RANKS_MAX];
	uint64_t before[RANKS_MAX];
	int first[RANKS_MAX + 1];
};

static void job_open(struct job *j, const struct is_class *c, int ranks)
{
	*j = (struct job){ .c = c, .ranks = ranks, .count = (size_t)is_keys(c) / (size_t)ranks };
	j->keys = malloc((size_t)is_keys(c) * sizeof(uint32_t));
	assert_non_null(j->keys);
	for (int r = 0; r < ranks; r++)
		is_generate(c, j->keys + (size_t)r * j->count, (uint64_t)r * j->count, j->count);
}

static void job_close(struct job *j)
{
	for (int r = 0; r < RANKS_MAX; r++)
		free(j->rank_of[r]);
	free(j->keys);
}

/* All ranks' keys, each rank's sorted into buckets, dealt and counted. */
static void job_rank(struct job *j)
{
	int buckets = is_buckets(j->c), shift = is_shift(j->c);
	uint32_t *size = calloc((size_t)(j->ranks * buckets), sizeof(*size));
	uint32_t *total = calloc((size_t)buckets, sizeof(*total));
	uint32_t *at = malloc((size_t)buckets * sizeof(*at));
	uint32_t *sorted = malloc((size_t)is_keys(j->c) * sizeof(*sorted));

	for (int r = 0; r < j->ranks; r++) {
		uint32_t *mine = size + r * buckets;

		is_bucket_sizes(j->keys + (size_t)r * j->count, j->count, shift, mine, buckets);
		is_bucket_sort(j->keys + (size_t)r * j->count, j->count, shift, mine, buckets, at,
			       sorted + (size_t)r * j->count);
		for (int b = 0; b < buckets; b++)
			total[b] += mine[b];
	}
	is_deal(total, buckets, is_keys(j->c), j->ranks, j->first);
	for (int r = 0; r < j->ranks; r++) {
		size_t dealt = 0;

		j->low[r] = (uint32_t)j->first[r] << shift;
		j->range[r] = (size_t)(j->first[r + 1] - j->first[r]) << shift;
		j->before[r] = is_sum(total, 0, j->first[r]);
		free(j->rank_of[r]);
		j->rank_of[r] = calloc(j->range[r] + 1, sizeof(uint32_t));
		for (int from = 0; from < j->ranks; from++) {
			const uint32_t *mine = size + from * buckets;
			size_t begin = (size_t)is_sum(mine, 0, j->first[r]);
			size_t count = (size_t)is_sum(mine, j->first[r], j->first[r + 1]);

			is_count(sorted + (size_t)from * j->count + begin, count, j->low[r],
				 is_key_max(j->c) - 1, j->rank_of[r]);
			dealt += count;
		}
		assert_true(dealt <= is_room(j->c, j->ranks));
		is_ranks(j->rank_of[r], j->range[r]);
	}
	free(size);
	free(total);
	free(at);
	free(sorted);
}

static uint64_t job_rank_of(const struct job *j, uint32_t key)
{
	int found = -1;

	for (int r = 0; r < j->ranks; r++)
		if (key >= j->low[r] && key - j->low[r] < j->range[r]) {
			assert_int_equal(found, -1);
			found = r;
		}
	assert_true(found >= 0);
	return j->before[found] + j->rank_of[found][key - j->low[found]];
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The number of smaller keys of each key, by qsort. */
static void check_ranks(struct job *j)
{
	size_t n = (size_t)is_keys(j->c);
	uint32_t *sorted = malloc(n * sizeof(*sorted));

	job_rank(j);
	memcpy(sorted, j->keys, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || sorted[i] != sorted[i - 1])
			assert_true(job_rank_of(j, sorted[i]) == i);
	free(sorted);
}

static void test_against_qsort(void **state)
{
	(void)state;
	for (int ranks = 1; ranks <= RANKS_MAX; ranks *= 2) {
		struct job j;

		job_open(&j, &is_classes[NAS_S], ranks);
		check_ranks(&j);
		job_close(&j);
	}
}

/* Keys that are nothing like the generator's: all alike, few, at either end. */
static void test_other_keys(void **state)
{
	static const struct is_class small = { .keys_log = 12, .max_log = 9, .buckets_log = 5 };

	(void)state;
	for (int kind = 0; kind < 4; kind++)
		for (int ranks = 1; ranks <= RANKS_MAX; ranks *= 2) {
			struct job j;
			size_t n = (size_t)is_keys(&small);

			job_open(&j, &small, ranks);
			for (size_t i = 0; i < n; i++)
				j.keys[i] = kind == 0 ? 511 : kind == 1 ? 0 : kind == 2 ?
					(uint32_t)(i % 2 * 511) : (uint32_t)(i * i % 512);
			/* A single bucket may hold them all. */
			if (kind == 3)
				check_ranks(&j);
			else if (ranks == 1)
				check_ranks(&j);
			job_close(&j);
		}
}

static void test_deal(void **state)
{
	static const uint32_t flat[8] = { 2, 2, 2, 2, 2, 2, 2, 2 },
		heavy[8] = { 0, 0, 13, 0, 1, 1, 1, 0 }, late[8] = { 0, 0, 0, 0, 0, 0, 0, 16 };
	int first[9];

	(void)state;
	is_deal(flat, 8, 16, 4, first);
	assert_memory_equal(first, ((int[]){ 0, 2, 4, 6, 8 }), 5 * sizeof(int));
	is_deal(flat, 8, 16, 1, first);
	assert_memory_equal(first, ((int[]){ 0, 8 }), 2 * sizeof(int));
	/* The heavy bucket begins in the first share; the next two ranks get nothing. */
	is_deal(heavy, 8, 16, 4, first);
	assert_memory_equal(first, ((int[]){ 0, 3, 3, 3, 8 }), 5 * sizeof(int));
	is_deal(late, 8, 16, 4, first);
	assert_memory_equal(first, ((int[]){ 0, 8, 8, 8, 8 }), 5 * sizeof(int));
	is_deal(flat, 8, 16, 8, first);
	for (int r = 0; r <= 8; r++)
		assert_int_equal(first[r], r);
}

/* The published numbers, after the changes of ten iterations (and of the untimed one). */
static void test_published(void **state)
{
	(void)state;
	for (int class = NAS_S; class <= NAS_W; class++)
		for (int ranks = 1; ranks <= 4; ranks *= 4) {
			const struct is_class *c = &is_classes[class];
			struct job j;

			job_open(&j, c, ranks);
			for (int i = 1; i <= IS_ITERATIONS; i++) {
				j.keys[i] = (uint32_t)i;
				j.keys[i + IS_ITERATIONS] = is_key_max(c) - (uint32_t)i;
				job_rank(&j);
				for (int t = 0; t < IS_TESTS; t++)
					assert_int_equal(job_rank_of(&j, j.keys[c->test[t].index]),
							 is_expected(c, t, i));
			}
			job_close(&j);
		}
}

/* Keys are floor(max / 4 * sum of four numbers), wherever a rank begins. */
static void test_keys(void **state)
{
	const struct is_class *c = &is_classes[NAS_A];
	uint32_t keys[100], later[40];
	double x[400];

	(void)state;
	is_generate(c, keys, 0, 100);
	lcg_fill(LCG_SEED, x, 400);
	for (int i = 0; i < 100; i++)
		assert_int_equal(keys[i], (uint32_t)((double)(is_key_max(c) / 4) *
			(x[4 * i] + x[4 * i + 1] + x[4 * i + 2] + x[4 * i + 3])));
	is_generate(c, later, 60, 40);
	assert_memory_equal(later, keys + 60, sizeof(later));
}

static void test_place(void **state)
{
	static const uint32_t keys[] = { 5, 3, 5, 4, 3 };
	static const uint32_t damaged[] = { 0xdeadbeef, 2 };
	uint32_t rank[4], out[5];

	(void)state;
	memset(rank, 0, sizeof(rank));
	is_count(keys, 5, 3, 3, rank);
	is_ranks(rank, 3);
	assert_memory_equal(rank, ((uint32_t[]){ 0, 2, 3, 0 }), sizeof(rank));
	memset(out, 0xff, sizeof(out));
	assert_true(is_place(keys, 5, 3, 3, rank, out, 5));
	assert_memory_equal(out, ((uint32_t[]){ 3, 3, 4, 5, 5 }), sizeof(out));
	assert_true(is_ascending(out, 5));
	/* Ranks that are used up, or too large, or wrong. */
	assert_false(is_place(keys, 5, 3, 3, rank, out, 5));
	memcpy(rank, ((uint32_t[]){ 3, 2, 0, 0 }), sizeof(rank));
	memset(out, 0xff, sizeof(out));
	assert_true(is_place(keys, 5, 3, 3, rank, out, 5));
	assert_false(is_ascending(out, 5));
	memcpy(rank, ((uint32_t[]){ 0, 1, 2, 0 }), sizeof(rank));
	memset(out, 0xff, sizeof(out));
	assert_false(is_place(keys, 5, 3, 3, rank, out, 5));
	memset(out, 0xff, sizeof(out));
	assert_false(is_ascending(out, 5));
	/* Keys that the way here damaged stay within the table. */
	memset(rank, 0, sizeof(rank));
	is_count(damaged, 2, 3, 3, rank);
	assert_memory_equal(rank, ((uint32_t[]){ 1, 0, 0, 1 }), sizeof(rank));
	assert_false(is_place(damaged, 2, 3, 3, rank, out, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_qsort),
		cmocka_unit_test(test_other_keys),
		cmocka_unit_test(test_deal),
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
