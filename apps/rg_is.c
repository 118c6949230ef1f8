/* is - integer sort: ranks of keys, sorted into buckets that ranks exchange. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/err.h"
#include "nas/is.h"
#include "nas_program.h"

static struct nas_values values;
static const struct opt rows[] = NAS_OPTIONS;

static struct {
	const struct is_class *c;
	int buckets, shift, rank, ranks;
	size_t count;			/* keys that this rank generates */
	size_t room;			/* keys that sorted and received can hold */
	uint32_t *keys, *sorted, *received;
	uint32_t *rank_of;		/* ranks; [0]: the first key of this rank's buckets */
	uint32_t mask;			/* index of a key in rank_of: key & mask */
	/* A number for each bucket; size and total end with the tested keys. */
	uint32_t *size, *total, *at;
	/* Arrays by rank. */
	int *first;			/* each rank's first bucket, and the end */
	int *send, *send_at, *receive, *receive_at;
	uint64_t tested;		/* keys tested by this rank in this turn */
} is;

/* The results of one ranking. */
struct ranking {
	uint32_t low;			/* the smallest key of this rank's buckets */
	size_t range;			/* number of different keys, from low on */
	const uint32_t *own;		/* keys of `sorted` that stayed on this rank */
	size_t own_count, received_count;
};

/* ---- Before ---------------------------------------------------------------------- */

static int is_check(int ranks, uint64_t available, char *why, size_t why_size)
{
	static const struct nas_kernel kernel = { "IS", is_ranks_max, is_memory_bytes };

	return nas_check(&kernel, (enum nas_class)values.class, ranks, available, why, why_size);
}

static void is_problem(struct bench_problem *out)
{
	const struct is_class *c = &is_classes[values.class];

	*out = (struct bench_problem){
		.class = nas_class_name((enum nas_class)values.class),
		.bytes = is_keys(c) * sizeof(uint32_t),
		.iterations = IS_ITERATIONS,
		.operations = (double)is_keys(c) * IS_ITERATIONS,
		.operation = "keys ranked",
	};
	snprintf(out->size, sizeof(out->size), "%llu", (unsigned long long)is_keys(c));
}

static int is_open(int rank, int ranks)
{
	size_t vector;

	is.c = &is_classes[values.class];
	is.buckets = is_buckets(is.c);
	is.shift = is_shift(is.c);
	is.rank = rank;
	is.ranks = ranks;
	is.count = (size_t)(is_keys(is.c) / (uint64_t)ranks);
	is.room = is_room(is.c, ranks);
	is.keys = bench_alloc(is.room * sizeof(is.keys[0]));
	is.sorted = bench_alloc(is.room * sizeof(is.sorted[0]));
	is.received = bench_alloc(is.room * sizeof(is.received[0]));
	is.rank_of = bench_alloc(is_key_max(is.c) * sizeof(is.rank_of[0]));
	is.mask = is_key_max(is.c) - 1;
	vector = (size_t)(is.buckets + IS_TESTS) * sizeof(is.size[0]);
	is.size = bench_alloc(vector);
	is.total = bench_alloc(vector);
	is.at = bench_alloc(vector);
	is.first = bench_alloc(5 * (size_t)(ranks + 1) * sizeof(is.first[0]));
	if (!is.keys || !is.sorted || !is.received || !is.rank_of || !is.size || !is.total ||
	    !is.at || !is.first)
		return -ENOMEM;
	is.send = is.first + (ranks + 1);
	is.send_at = is.send + (ranks + 1);
	is.receive = is.send_at + (ranks + 1);
	is.receive_at = is.receive + (ranks + 1);
	return 0;
}

static void is_close(void)
{
	bench_free(is.keys);
	bench_free(is.sorted);
	bench_free(is.received);
	bench_free(is.rank_of);
	bench_free(is.size);
	bench_free(is.total);
	bench_free(is.at);
	bench_free(is.first);
}

/* ---- Ranking ----------------------------------------------------------------------- */

/* Two keys change in each iteration, so that no iteration can be left out. */
static void keys_change(int iteration)
{
	if (is.rank)
		return;
	is.keys[iteration] = (uint32_t)iteration;
	is.keys[iteration + IS_ITERATIONS] = is_key_max(is.c) - (uint32_t)iteration;
}

/* The keys that are tested travel with the sizes: all but one rank add 0. */
static void buckets_fill(struct bench_turn *t)
{
	int vector = is.buckets + IS_TESTS;
	uint64_t begun;

	is_bucket_sizes(is.keys, is.count, is.shift, is.size, is.buckets);
	for (int i = 0; i < IS_TESTS; i++) {
		size_t index = is.c->test[i].index;

		is.size[is.buckets + i] = index / is.count == (size_t)is.rank ?
			is.keys[index % is.count] : 0;
	}
	is_bucket_sort(is.keys, is.count, is.shift, is.size, is.buckets, is.at, is.sorted);
	begun = bench_communication_begin();
	MPI_Allreduce(is.size, is.total, vector, MPI_UINT32_T, MPI_SUM, t->comm);
	bench_communication_end(t, begun, is.ranks > 1 ? (uint64_t)vector * sizeof(is.size[0]) : 0);
}

/* Send whole buckets to their ranks; keys of this rank stay in `sorted`. */
static void buckets_exchange(struct bench_turn *t, struct ranking *r)
{
	uint64_t sent = 0, begun;
	int at = 0;

	is_deal(is.total, is.buckets, is_keys(is.c), is.ranks, is.first);
	for (int i = 0; i < is.ranks; i++) {
		is.send[i] = (int)is_sum(is.size, is.first[i], is.first[i + 1]);
		is.send_at[i] = at;
		at += is.send[i];
	}
	r->own = is.sorted + is.send_at[is.rank];
	r->own_count = (size_t)is.send[is.rank];
	is.send[is.rank] = 0;
	for (int i = 0; i < is.ranks; i++)
		sent += (uint64_t)is.send[i] * sizeof(is.sorted[0]);

	begun = bench_communication_begin();
	MPI_Alltoall(is.send, 1, MPI_INT, is.receive, 1, MPI_INT, t->comm);
	bench_communication_end(t, begun, (uint64_t)(is.ranks - 1) * sizeof(is.send[0]));
	at = 0;
	for (int i = 0; i < is.ranks; i++) {
		is.receive_at[i] = at;
		at += is.receive[i];
	}
	r->received_count = (size_t)at;
	if (r->own_count + r->received_count > is.room || r->own_count + r->received_count !=
	    is_sum(is.total, is.first[is.rank], is.first[is.rank + 1])) {
		/* Continuing would write outside of the buffer. */
		rg_error("the numbers of keys that ranks exchanged do not add up");
		rg_let_launcher_read();
		MPI_Abort(MPI_COMM_WORLD, RG_EXIT_FAILED);
	}
	begun = bench_communication_begin();
	MPI_Alltoallv(is.sorted, is.send, is.send_at, MPI_UINT32_T, is.received, is.receive,
		      is.receive_at, MPI_UINT32_T, t->comm);
	bench_communication_end(t, begun, sent);
}

/* Has each tested key that is in this rank's buckets the published rank? */
static void partial_verify(struct bench_turn *t, const struct ranking *r, int iteration)
{
	uint32_t before = (uint32_t)is_sum(is.total, 0, is.first[is.rank]);

	for (int i = 0; i < IS_TESTS; i++) {
		uint32_t key = is.total[is.buckets + i], rank;

		if (key < r->low || key - r->low >= r->range)
			continue;
		is.tested++;
		rank = before + is.rank_of[key - r->low];
		if (rank != is_expected(is.c, i, iteration) && !*t->wrong)
			snprintf(t->wrong, sizeof(t->wrong), "iteration %d: key %u, number %u of "
				 "the sequence, has rank %u, expected %u", iteration, key,
				 is.c->test[i].index, rank, is_expected(is.c, i, iteration));
	}
}

static struct ranking rank_keys(struct bench_turn *t, int iteration)
{
	struct ranking r;

	keys_change(iteration);
	buckets_fill(t);
	buckets_exchange(t, &r);
	r.low = (uint32_t)is.first[is.rank] << is.shift;
	r.range = (size_t)(is.first[is.rank + 1] - is.first[is.rank]) << is.shift;
	memset(is.rank_of, 0, r.range * sizeof(is.rank_of[0]));
	is_count(r.own, r.own_count, r.low, is.mask, is.rank_of);
	is_count(is.received, r.received_count, r.low, is.mask, is.rank_of);
	is_ranks(is.rank_of, r.range);
	partial_verify(t, &r, iteration);
	return r;
}

/* ---- After ---------------------------------------------------------------------------- */

/* A digest of keys that does not depend on their order. */
struct digest { uint64_t count, sum, squares; };

static struct digest digest(const uint32_t *keys, size_t count)
{
	struct digest d = { .count = count };

	for (size_t i = 0; i < count; i++) {
		d.sum += keys[i];
		d.squares += (uint64_t)keys[i] * keys[i];
	}
	return d;
}

/* Does the keys' order hold from each rank to the next?  Ranks without keys do not count. */
static bool ends_meet(const uint32_t *sorted, size_t count, MPI_Comm comm)
{
	struct { uint32_t before, first; } link;
	/* The largest key of this rank and all before it. */
	uint32_t last = count ? sorted[count - 1] : 0;

	link.before = 0;
	MPI_Exscan(&last, &link.before, 1, MPI_UINT32_T, MPI_MAX, comm);
	link.first = count ? sorted[0] : UINT32_MAX;
	return is.rank == 0 || link.before <= link.first;
}

/* Ranks sort all keys, which are the keys that were generated.  Uses the keys up. */
static void full_verify(struct bench_turn *t, const struct ranking *r)
{
	struct digest had = digest(is.keys, is.count), had_all, has, has_all;
	uint64_t tested;
	size_t count = r->own_count + r->received_count;
	const char *what = NULL;

	for (size_t i = 0; i < count; i++)
		is.keys[i] = IS_EMPTY;
	if (!is_place(r->own, r->own_count, r->low, is.mask, is.rank_of, is.keys, count) ||
	    !is_place(is.received, r->received_count, r->low, is.mask, is.rank_of, is.keys, count))
		what = "two keys have the same place, or one has none";
	else if (!is_ascending(is.keys, count))
		what = "a key is smaller than the one before it";
	has = digest(is.keys, count);
	if (!ends_meet(is.keys, count, t->comm) && !what)
		what = "the first key is smaller than the last one of the rank before";
	MPI_Allreduce(&had, &had_all, 3, MPI_UINT64_T, MPI_SUM, t->comm);
	MPI_Allreduce(&has, &has_all, 3, MPI_UINT64_T, MPI_SUM, t->comm);
	if (memcmp(&had_all, &has_all, sizeof(had_all)) && !what)
		what = "sorted keys are not those that were generated";
	MPI_Allreduce(&is.tested, &tested, 1, MPI_UINT64_T, MPI_SUM, t->comm);
	if (tested != IS_TESTS * (IS_ITERATIONS + 1) && !what)
		what = "a key that is to be tested is in no rank's buckets";
	if (what && !*t->wrong)
		snprintf(t->wrong, sizeof(t->wrong), "%s", what);
}

static void is_run(struct bench_turn *t)
{
	struct ranking r;

	is.tested = 0;
	is_generate(is.c, is.keys, (uint64_t)is.rank * is.count, is.count);
	/* Once without a clock, for pages, caches and connections. */
	r = rank_keys(t, 1);
	/*
	 * All rankings receive the same keys: a key that is not delivered must not look as if it
	 * were.
	 */
	for (size_t i = 0; i < r.received_count; i++)
		is.received[i] = r.low;
	bench_turn_begin(t);
	for (int i = 1; i <= IS_ITERATIONS; i++)
		r = rank_keys(t, i);
	bench_turn_end(t);
	full_verify(t, &r);
}

static const struct bench_app app = {
	.remark = NAS_REMARK,
	.check = is_check,
	.problem = is_problem,
	.open = is_open,
	.run = is_run,
	.close = is_close,
};

const struct bench_def bench_def = {
	.name = "is",
	.summary = "Integer sort, NAS-style",
	BENCH_APP_DEF,
};
