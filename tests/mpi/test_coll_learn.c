/*
 * test_coll_learn.c - algorithms of collectives, learned on machines of a few lines of arithmetic:
 * each machine gets its own, ranks choose the same, a few bad samples change nothing, and the first
 * calls cost little.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/coll/coll.h"
#include "mpi/coll/coll_learn.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Nanoseconds, as in coll.h: a message, a byte moved, a byte reduced, a byte copied by its own rank. */
struct machine {
	const char *name;
	double a, b, g, copy;
	double most;			/* of the first calls' time, over that of the best */
};

/*
 * The first two are those that tables were tuned on; `kernel` has a slow copy by the kernel, `memcpy` a
 * slow memory, `cores` ranks that share cores, so that a message waits for its receiver's turn: races of
 * --coll measured alone.
 */
static const struct machine machines[] = {
	{ "2 MiB of L2", 3300, 0.05, 0.05, 0.04, 1.1 },
	{ "1 MiB of L2", 700, 0.11, 0.08, 0.08, 1.1 },
	{ "kernel", 4000, 1.0, 0.05, 0.05, 1.1 },
	{ "memcpy", 400, 0.30, 0.30, 0.45, 1.1 },
	{ "cores", 40000, 0.1, 0.05, 0.05, 1.12 },
};
enum { MACHINES = sizeof(machines) / sizeof(*machines), RANKS_MAX = 16 };

static double log2_up(int n)
{
	double lg = 0;

	for (int p = 1; p < n; p *= 2)
		lg++;
	return lg;
}

/* m, n, a, b, g: see coll.h. */
static double cost(const struct machine *x, enum coll_id id, enum coll_algorithm algorithm, int n,
		   size_t bytes)
{
	const double m = (double)bytes, lg = log2_up(n), part = (n - 1) / (double)n;

	switch (algorithm) {
	case COLL_BINOMIAL:
		return lg * (x->a + m * x->b);
	case COLL_SCATTER_RING:
		return (lg + n - 1) * x->a + 2 * part * m * x->b;
	case COLL_CHAIN:
		return (n - 2 + m / COLL_CHAIN_BYTES) * (x->a + COLL_CHAIN_BYTES * x->b);
	case COLL_BRUCK:
		if (id == COLL_ALLGATHER)
			return lg * x->a + part * m * x->b + m * x->copy;
		return lg * (x->a + n / 2 * m * x->b) + (lg + 2) * n * m * x->copy;
	case COLL_DOUBLING:
		if (id == COLL_ALLGATHER)
			return lg * x->a + part * m * x->b + m / 2 * x->copy;
		return lg * (x->a + m * x->b + m * x->g);
	case COLL_RABENSEIFNER:
		return 2 * lg * x->a + part * m * (2 * x->b + x->g);
	case COLL_RING:
		if (id == COLL_ALLGATHER)
			return (n - 1) * (x->a + m / n * x->b);
		return 2.2 * (n - 1) * x->a + part * m * (2 * x->b + x->g);
	case COLL_PAIRWISE:
		return (n - 1) * (x->a + m * x->b);
	default:		/* linear: all at once, in each other's way where they are large */
		return x->a + (n - 1) * m * (x->b + x->copy / 2);
	}
}

static const struct { enum coll_id id; int ranks; } families[] = {
	{ COLL_ALLREDUCE, 2 }, { COLL_ALLREDUCE, 4 }, { COLL_ALLGATHER, 4 }, { COLL_ALLGATHER, 3 },
	{ COLL_ALLTOALL, 4 }, { COLL_ALLTOALL, 8 }, { COLL_BCAST, 4 }, { COLL_BCAST, 8 },
	{ COLL_ALLREDUCE, 3 }, { COLL_ALLREDUCE, 8 }, { COLL_ALLREDUCE, 16 }, { COLL_ALLGATHER, 8 },
	{ COLL_ALLGATHER, 16 }, { COLL_ALLTOALL, 3 }, { COLL_ALLTOALL, 16 }, { COLL_BCAST, 3 },
	{ COLL_BCAST, 16 },
};
enum { FAMILIES = sizeof(families) / sizeof(*families) };
static const size_t sizes[] = { 3 * KIB, 16 * KIB, 64 * KIB, 200 * KIB, 1 * MIB, 3 * MIB, 12 * MIB };
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

static struct coll_call call_of(int family, size_t bytes)
{
	struct coll_call call = {
		.id = families[family].id, .ranks = families[family].ranks, .bytes = bytes,
		.holds = COLL_COMMUTES | COLL_DIVIDES | COLL_SAME_BITS,
	};

	call.usual = coll_choose(call.id, call.ranks, bytes, call.holds);
	return call;
}

/* From 0 on, below 1. */
static double random_of(uint64_t *dice)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return (double)(*dice >> 11) / (double)(UINT64_C(1) << 53);
}

/* The cost of a call to a rank: up to a tenth above the algorithm's, now and then many times as much. */
static double noisy(double ns, uint64_t *dice)
{
	double factor = 1 + 0.1 * random_of(dice);

	if (random_of(dice) < 0.01)
		factor += 10 * random_of(dice);
	return ns * factor;
}

struct job {
	const struct machine *machine;
	struct coll_call call;
	struct coll_race race[RANKS_MAX];	/* of each rank */
	uint64_t dice;				/* 0: no noise */
	double varied;				/* part of calls that take half as much again */
	double shared, slice_ns;		/* part of rank 0's calls, and what they lose at most */
	uint64_t shared_dice;
	double spent, best;			/* of the calls so far; of as many by the best */
};

static struct job *job_make(const struct machine *machine, struct coll_call call, uint64_t seed)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	job->machine = machine;
	job->call = call;
	job->dice = seed;
	for (int r = 0; r < call.ranks; r++)
		coll_race_begin(&job->race[r], &call);
	return job;
}

static double cost_of(const struct job *job, enum coll_algorithm a)
{
	return cost(job->machine, job->call.id, a, job->call.ranks, job->call.bytes);
}

static double best_cost(const struct job *job)
{
	const struct coll_race *race = &job->race[0];
	double best = cost_of(job, race->candidate[0]);

	for (int c = 1; c < race->candidates; c++)
		if (cost_of(job, race->candidate[c]) < best)
			best = cost_of(job, race->candidate[c]);
	return best;
}

static void agree(struct job *job)
{
	for (int r = 1; r < job->call.ranks; r++)
		for (int i = 0; i < job->race[0].samples; i++)
			if (job->race[r].sample_ns[i] > job->race[0].sample_ns[i])
				job->race[0].sample_ns[i] = job->race[r].sample_ns[i];
	for (int r = 0; r < job->call.ranks; r++) {
		memcpy(job->race[r].sample_ns, job->race[0].sample_ns,
		       sizeof(job->race[0].sample_ns));
		coll_race_decide(&job->race[r]);
	}
}

/* The cost of a call to a rank: with noise, if any, and its part of a processor that others use, too. */
static double cost_to(struct job *job, int rank, enum coll_algorithm a)
{
	double ns = cost_of(job, a);

	if (job->dice) {
		ns = noisy(ns, &job->dice);
		ns *= random_of(&job->dice) < job->varied ? 1.5 : 1;
	}
	if (rank == 0 && random_of(&job->shared_dice) < job->shared)
		ns += job->slice_ns * random_of(&job->shared_dice);
	return ns;
}

/* A collective call: all ranks take the same algorithm, and are at the same point. */
static void job_call(struct job *job)
{
	const uint64_t place = job->race[0].settled ? 0 : coll_race_place(&job->race[0], &job->call);
	enum coll_algorithm first = COLL_AUTO, a;
	bool timed, over = false;

	for (int r = 0; r < job->call.ranks; r++) {
		if (place && r)
			assert_true(coll_race_place(&job->race[r], &job->call) == place);
		a = coll_race_take(&job->race[r], &job->call, &timed);
		first = r ? first : a;
		assert_int_equal(a, first);
		if (!timed)
			continue;
		over = coll_race_add(&job->race[r], (uint64_t)cost_to(job, r, a));
		assert_true(over == (job->race[0].samples == job->race[r].samples && over));
	}
	job->spent += cost_of(job, first);
	job->best += best_cost(job);
	if (over)
		agree(job);
}

/* The cost of what is chosen in the end, over the best one's. */
static double job_run(struct job *job)
{
	int calls = 0;

	while (!job->race[0].settled) {
		job_call(job);
		assert_in_range(++calls, 0, 300);
	}
	job_call(job);
	for (int r = 0; r < job->call.ranks; r++)
		assert_true(job->race[r].settled &&
			    job->race[r].choice == job->race[0].choice);
	return cost_of(job, job->race[0].candidate[job->race[0].choice]) / best_cost(job);
}

typedef void each_fn(const struct machine *machine, struct coll_call call);

static void each(each_fn *fn)
{
	struct coll_call call;

	for (int m = 0; m < MACHINES; m++)
		for (int f = 0; f < FAMILIES; f++)
			for (int s = 0; s < SIZES; s++) {
				call = call_of(f, sizes[s]);
				if (coll_learn_may(&call))
					fn(&machines[m], call);
			}
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void exact(const struct machine *machine, struct coll_call call)
{
	struct job *job = job_make(machine, call, 0);

	assert_true(job_run(job) <= 1 + COLL_LEARN_MARGIN / 100.0);
	free(job);
}

static void test_exact_without_noise(void **state)
{
	each(exact);
}

static void steady(const struct machine *machine, struct coll_call call)
{
	int near = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct job *job = job_make(machine, call, seed * 77);

		near += job_run(job) <= 1.03;
		free(job);
	}
	if (near < 190)
		print_message("%s, %s, %d ranks, %zu bytes: %d of 200\n", machine->name,
			      coll_name(call.id), call.ranks, call.bytes, near);
	assert_in_range(near, 190, 200);
}

static void test_steady_with_noise(void **state)
{
	each(steady);
}

/* Five calls are by the usual algorithm, whatever it costs. */
static void bounded(const struct machine *machine, struct coll_call call)
{
	struct job *job = job_make(machine, call, 0);
	const double most = cost_of(job, call.usual) > 3 * best_cost(job) ? 1.2 : machine->most;

	for (int i = 0; i < 100; i++)
		job_call(job);
	if (job->spent > most * job->best)
		print_message("%s, %s, %d ranks, %zu bytes: %.3f\n", machine->name,
			      coll_name(call.id), call.ranks, call.bytes, job->spent / job->best);
	assert_true(job->spent <= most * job->best);
	free(job);
}

static void test_first_calls_cost_little(void **state)
{
	each(bounded);
}

/* One rank loses its processor in some calls, or in most: what is not known to be better is not chosen. */
static void shared(const struct machine *machine, struct coll_call call)
{
	static const double parts[] = { 0.3, 0.8 };

	for (int p = 0; p < 2; p++) {
		int wrong = 0;

		for (uint64_t seed = 1; seed <= 40; seed++) {
			struct job *job = job_make(machine, call, seed * 77);

			job->shared = parts[p];
			job->slice_ns = 20 * best_cost(job);
			job->shared_dice = seed * 7919;
			wrong += job_run(job) > 1.03 && job->race[0].choice;
			free(job);
		}
		if (wrong > 2)
			print_message("%s, %s, %d ranks, %zu bytes, %.1f: %d\n", machine->name,
				      coll_name(call.id), call.ranks, call.bytes, parts[p], wrong);
		assert_in_range(wrong, 0, 2);
	}
}

static void test_shared_processor(void **state)
{
	each(shared);
}

/* The transport's own schemes vary: what is far below the usual algorithm all the same is chosen. */
static void varied(const struct machine *machine, struct coll_call call)
{
	int wrong = 0;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct job *job = job_make(machine, call, seed * 77);

		job->varied = 0.3;
		if (cost_of(job, call.usual) > 2 * best_cost(job))
			wrong += job_run(job) > 1.03 && !job->race[0].choice;
		free(job);
	}
	if (wrong > 2)
		print_message("%s, %s, %d ranks, %zu bytes: %d\n", machine->name,
			      coll_name(call.id), call.ranks, call.bytes, wrong);
	assert_in_range(wrong, 0, 2);
}

static void test_varied_calls(void **state)
{
	each(varied);
}

/* ---- Meetings ------------------------------------------------------------------------------- */

/* As coll_take_large: a call that a rank does not make counts on none, and is by the table. */
static void meet(struct job *job, int missing)
{
	const int first = missing == 0;
	uint64_t place;

	if (job->race[first].settled || missing < 0) {
		if (missing < 0)
			job_call(job);
		return;
	}
	place = coll_race_place(&job->race[first], &job->call);
	for (int r = 0; r < job->call.ranks; r++)
		if (r != missing)
			assert_true(coll_race_place(&job->race[r], &job->call) == place);
}

static void refused(const struct machine *machine, struct coll_call call)
{
	struct job *job = job_make(machine, call, 77);
	uint64_t dice = call.bytes;

	for (int i = 0; i < 1000; i++)
		meet(job, random_of(&dice) < 0.3 ? (int)(random_of(&dice) * call.ranks) : -1);
	assert_true(job->race[0].settled);
	free(job);
}

static void test_refused_calls_count_on_no_rank(void **state)
{
	each(refused);
}

/* A rank whose call had another size, or was another one, differs. */
static void test_places_differ(void **state)
{
	struct coll_call call = call_of(1, 64 * KIB), other = call;
	struct coll_race race[2];
	bool timed;

	other.bytes = 60 * KIB;
	for (int r = 0; r < 2; r++)
		coll_race_begin(&race[r], &call);
	for (int i = 0; i < 200; i++) {
		assert_true(coll_race_place(&race[0], &call) == coll_race_place(&race[1], &call));
		assert_true(coll_race_place(&race[0], &call) != coll_race_place(&race[1], &other));
		for (int r = 0; r < 2; r++) {
			coll_race_place(&race[r], &call);
			coll_race_take(&race[r], &call, &timed);
			if (timed && coll_race_add(&race[r], 1000))
				coll_race_decide(&race[r]);
		}
		if (race[0].settled)
			break;
	}
	assert_true(race[0].settled);
}

/* Sizes that never come again: meetings come to an end, and the table's choice stays. */
static void test_meetings_end(void **state)
{
	struct coll_call call = call_of(1, 40 * KIB);
	struct coll_race race;
	bool timed;
	int calls = 0;

	coll_race_begin(&race, &call);
	for (; !race.settled && calls < 2 * COLL_LEARN_MEETINGS; calls++) {
		call.bytes = 40 * KIB + (size_t)calls % 1000;
		coll_race_place(&race, &call);
		coll_race_take(&race, &call, &timed);
		if (timed && coll_race_add(&race, 1000))
			coll_race_decide(&race);
	}
	assert_in_range(calls, 1, COLL_LEARN_MEETINGS);
	assert_int_equal(coll_race_take(&race, &call, &timed), call.usual);
}

/* Constants that are right on one machine are wrong on another. */
static void test_machines_differ(void **state)
{
	for (int m = 0; m < MACHINES; m++) {
		int unlike = 0;

		for (int f = 0; f < FAMILIES; f++)
			for (int s = 0; s < SIZES; s++) {
				struct coll_call call = call_of(f, sizes[s]);
				struct job *job = job_make(&machines[m], call, 0);

				if (coll_learn_may(&call))
					job_run(job);
				unlike += job->race[0].choice != 0;
				free(job);
			}
		print_message("%s: %d choices are not the table's\n", machines[m].name, unlike);
		assert_true(unlike > 0);
	}
}

/* On a clock that does not advance, and between equals, nothing changes. */
static void test_ties_keep_the_table(void **state)
{
	struct coll_call call = call_of(1, 64 * KIB);
	struct coll_race race;
	bool timed;

	for (uint64_t ns = 0; ns < 2; ns++) {
		coll_race_begin(&race, &call);
		while (!race.settled) {
			coll_race_take(&race, &call, &timed);
			if (timed && coll_race_add(&race, ns * 1000))
				coll_race_decide(&race);
		}
		assert_int_equal(coll_race_take(&race, &call, &timed), call.usual);
		assert_false(timed);
	}
}

static void test_who_takes_part(void **state)
{
	static const struct { enum coll_id id; int ranks; size_t bytes; unsigned holds; bool may; } c[] = {
		{ COLL_ALLREDUCE, 2, 64 * KIB, COLL_COMMUTES | COLL_DIVIDES | COLL_SAME_BITS, true },
		{ COLL_ALLREDUCE, 2, 64 * KIB, COLL_COMMUTES | COLL_DIVIDES, false },
		{ COLL_ALLREDUCE, 3, 64 * KIB, COLL_COMMUTES | COLL_SAME_BITS, false },
		/* The table has the ring here, which combines in another order. */
		{ COLL_ALLREDUCE, 4, 8 * MIB, COLL_COMMUTES | COLL_DIVIDES | COLL_SAME_BITS, false },
		{ COLL_ALLREDUCE, 2, 8 * MIB, COLL_COMMUTES | COLL_DIVIDES | COLL_SAME_BITS, true },
		{ COLL_BCAST, 2, 64 * KIB, 0, false },	/* the same two messages */
		{ COLL_BCAST, 3, 64 * KIB, 0, true },
		{ COLL_ALLTOALLV, 4, 64 * KIB, 0, false },
		{ COLL_GATHER, 4, 64 * KIB, 0, false },
		{ COLL_ALLTOALL, 4, 64 * KIB, COLL_RAILS, true },
	};

	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct coll_call call = { .id = c[i].id, .ranks = c[i].ranks, .bytes = c[i].bytes,
					  .holds = c[i].holds };

		call.usual = coll_choose(call.id, call.ranks, call.bytes, call.holds);
		assert_int_equal(coll_learn_may(&call), c[i].may);
	}
	assert_int_equal(coll_learn_class(COLL_LEARN_ABOVE), -1);
	assert_int_equal(coll_learn_class(COLL_LEARN_ABOVE + 1), 0);
	assert_int_equal(coll_learn_class(2 * KIB), 0);
	assert_int_equal(coll_learn_class(2 * KIB + 1), 1);
	assert_int_equal(coll_learn_class(16 * MIB), COLL_LEARN_CLASSES - 1);
	assert_int_equal(coll_learn_class(16 * MIB + 1), -1);
}

/* Calls of other sizes go on by the table; one that comes again and again has the race. */
static void test_sizes_of_a_class(void **state)
{
	struct coll_call call = call_of(0, 40 * KIB), other = call_of(0, 50 * KIB);
	struct coll_race race;
	bool timed;

	coll_race_begin(&race, &call);
	for (int i = 0; i < 100; i++) {
		coll_race_take(&race, &call, &timed);
		if (timed)
			assert_false(coll_race_add(&race, 1000) && i < 4);
		if (race.samples == 4)
			break;
		assert_int_equal(coll_race_take(&race, &other, &timed), other.usual);
		assert_false(timed);
		assert_true(race.bytes == call.bytes);
	}
	for (int i = 0; i < 100 && race.bytes == call.bytes; i++)
		coll_race_take(&race, &other, &timed);
	assert_true(race.bytes == other.bytes && !race.settled && race.samples == 0);
}

/* A choice holds for its class; where its conditions do not hold, what stands in for it does. */
static void test_choice_needs_its_conditions(void **state)
{
	struct coll_call call = call_of(0, 64 * KIB), few;
	struct coll_race race;
	bool timed;

	coll_race_begin(&race, &call);
	race.settled = true;
	for (race.choice = 0; race.candidate[race.choice] != COLL_RABENSEIFNER; race.choice++)
		;
	assert_int_equal(coll_race_take(&race, &call, &timed), COLL_RABENSEIFNER);
	few = call;
	few.holds &= ~(unsigned)COLL_DIVIDES;
	assert_int_equal(coll_race_take(&race, &few, &timed), COLL_DOUBLING);
	coll_race_abandon(&race);
	assert_int_equal(coll_race_take(&race, &call, &timed), race.candidate[0]);
}

static void row_count(void *user, const struct coll_learned_row *row)
{
	int *rows = user;

	++*rows;
	assert_string_equal(row->collective, "alltoall");
	assert_string_equal(row->choice, "linear");
	assert_string_equal(row->candidate[0], "linear");
	assert_int_equal(row->candidates, 2);
	assert_true(row->settled && row->most_bytes == 64 * KIB);
	assert_true(row->cost_ns[0] > 0);
}

static void test_copy_has_what_goes_on(void **state)
{
	struct job *job = job_make(&machines[0], call_of(4, 64 * KIB), 0);
	struct coll_learned from = { .race = { { NULL } } }, *copy;
	struct coll_race over = { .met = 3, .abandoned = true };
	int rows = 0;

	job_run(job);
	from.race[COLL_ALLTOALL][coll_learn_class(64 * KIB)] = &job->race[0];
	from.race[COLL_ALLTOALL][0] = &job->race[5];	/* no meeting yet */
	from.race[COLL_ALLTOALL][1] = &over;
	copy = coll_learned_copy(&from);
	assert_non_null(copy);
	assert_null(copy->race[COLL_ALLTOALL][0]);
	assert_null(copy->race[COLL_ALLTOALL][1]);
	coll_learned_each(copy, row_count, &rows);
	assert_int_equal(rows, 1);
	coll_learned_each(NULL, row_count, &rows);
	coll_learned_free(copy);
	coll_learned_free(NULL);
	free(job);
}

/* Two ranks have a choice where messages are long: Bruck's are in memory that peers map. */
static void long_messages_of_two(void **state)
{
	struct coll_call call = { .id = COLL_ALLGATHER, .ranks = 2, .bytes = (size_t)256 << 10 };
	struct coll_race race;
	bool bruck = false;

	(void)state;
	call.usual = coll_choose(call.id, call.ranks, call.bytes, 0);
	assert_true(coll_learn_may(&call));
	coll_race_begin(&race, &call);
	for (int c = 0; c < race.candidates; c++)
		bruck |= race.candidate[c] == COLL_BRUCK;
	assert_true(bruck);
	call.bytes /= 2;
	assert_false(coll_learn_may(&call));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_without_noise),
		cmocka_unit_test(test_steady_with_noise),
		cmocka_unit_test(test_first_calls_cost_little),
		cmocka_unit_test(test_shared_processor),
		cmocka_unit_test(test_varied_calls),
		cmocka_unit_test(test_refused_calls_count_on_no_rank),
		cmocka_unit_test(test_places_differ),
		cmocka_unit_test(test_meetings_end),
		cmocka_unit_test(test_machines_differ),
		cmocka_unit_test(test_ties_keep_the_table),
		cmocka_unit_test(test_who_takes_part),
		cmocka_unit_test(test_sizes_of_a_class),
		cmocka_unit_test(test_choice_needs_its_conditions),
		cmocka_unit_test(test_copy_has_what_goes_on),
		cmocka_unit_test(long_messages_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
