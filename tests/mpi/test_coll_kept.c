/*
 * test_coll_kept.c - races of a job: they go on in the next communicator of a kind, on all ranks alike, and a
 * choice that is kept stays.
 */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/coll/coll.h"
#include "mpi/coll/coll_kept.h"
#include "mpi/coll/coll_learn.h"

enum { RANKS = 4, BYTES = 64 << 10 };

static const struct coll_kind pair = { .ranks = 4, .over = "single" };

static struct coll_call call_make(void)
{
	struct coll_call call = { .id = COLL_ALLTOALL, .ranks = RANKS, .bytes = BYTES };

	call.usual = coll_choose(call.id, call.ranks, call.bytes, call.holds);
	return call;
}

/* All ranks make the call: the usual algorithm costs twice as much as any other, ranks differ a little. */
static void call_run(struct coll_race race[RANKS], const struct coll_call *call)
{
	enum coll_algorithm first = COLL_AUTO, a;
	bool timed, over = false;

	for (int r = 0; r < RANKS; r++)
		if (!race[r].settled)
			assert_true(coll_race_place(&race[r], call) == coll_race_place(&race[0], call));
	for (int r = 0; r < RANKS; r++) {
		a = coll_race_take(&race[r], call, &timed);
		first = r ? first : a;
		assert_int_equal(a, first);
		if (timed)
			over = coll_race_add(&race[r], (a == call->usual ? 2000 : 1000) + (uint64_t)r);
	}
	for (int r = 0; over && r < RANKS; r++) {
		memcpy(race[r].sample_ns, race[RANKS - 1].sample_ns, sizeof(race[r].sample_ns));
		coll_race_decide(&race[r]);
	}
}

static void race_run(struct coll_race race[RANKS], const struct coll_call *call)
{
	for (int r = 0; r < RANKS; r++)
		coll_race_begin(&race[r], call);
	for (int i = 0; i < 300 && !race[0].settled; i++)
		call_run(race, call);
	assert_true(race[0].settled);
}

/* Tables of as many processes. */
static void kept_make(struct coll_kept *of[], int ranks)
{
	for (int r = 0; r < ranks; r++) {
		struct coll_kind kind = pair;

		kind.where = (uint64_t)r;
		of[r] = coll_kept_of(&kind);
		assert_non_null(of[r]);
		assert_ptr_equal(coll_kept_of(&kind), of[r]);
	}
}

static void test_race_goes_on_in_the_next_communicator(void **state)
{
	const struct coll_call call = call_make();
	const int class = coll_learn_class(BYTES);
	struct coll_race race[RANKS], **at;
	struct coll_kept *of[RANKS];
	int communicators = 0;

	kept_make(of, RANKS);
	do {
		memset(race, 0, sizeof(race));
		for (int r = 0; r < RANKS; r++) {
			at = &of[r]->learned.race[call.id][class];
			assert_int_equal(coll_learned_digest(&of[r]->learned), coll_learned_digest(&of[0]->learned));
			if (*at)
				race[r] = **at;
		}
		for (int i = 0; i < 7; i++)
			call_run(race, &call);
		for (int r = 0; r < RANKS; r++)
			coll_keep_race(of[r], call.id, class, &race[r]);
		assert_in_range(++communicators, 1, 100);
	} while (!race[0].settled);
	assert_true(communicators > 5 && race[0].choice);
	coll_kept_free();
}

/* One process knows what the others do not: their digests differ, and it tells. */
static void test_what_one_tells(void **state)
{
	struct coll_told told[1];
	const struct coll_call call = call_make();
	struct coll_race race[RANKS];
	const int class = coll_learn_class(BYTES);
	struct coll_learned from = { .race = { { NULL } } }, none = { .race = { { NULL } } }, *to;
	bool timed;

	race_run(race, &call);
	from.race[COLL_ALLTOALL][class] = &race[0];
	from.race[COLL_ALLTOALL][0] = &(struct coll_race){ .met = 1 };
	assert_int_equal(coll_learned_digest(&none), 0);
	assert_true(coll_learned_digest(&from));
	assert_int_equal(coll_learned_settled(&from), 1);
	coll_learned_tell(&from, told);
	to = coll_learned_of_told(told, 1);
	assert_non_null(to);
	assert_int_equal(coll_race_take(to->race[COLL_ALLTOALL][class], &call, &timed),
			 coll_race_take(&race[0], &call, &timed));
	assert_false(timed);
	assert_memory_equal(to->race[COLL_ALLTOALL][class]->cost_ns, race[0].cost_ns,
			    sizeof(race[0].cost_ns));
	coll_learned_free(to);
}

/* A race that has settled stays; else the one with more meetings; one that ended early says least. */
static void test_kept_choice_stays(void **state)
{
	struct coll_learned unlike = { .end = COLL_LEARN_UNLIKE };
	struct coll_race race = { .met = 5 };
	struct coll_kept *of[1];
	struct coll_race **at;

	kept_make(of, 1);
	at = &of[0]->learned.race[COLL_BCAST][2];
	unlike.race[COLL_BCAST][2] = &race;
	coll_keep(of[0], &unlike);
	assert_true((*at)->abandoned && (*at)->met == 5);
	assert_int_equal(coll_learned_digest(&of[0]->learned), 0);
	race.met = 2;
	coll_keep_race(of[0], COLL_BCAST, 2, &race);
	assert_true(!(*at)->abandoned && (*at)->met == 2);
	coll_keep(of[0], &unlike);
	race.met = 1;
	coll_keep_race(of[0], COLL_BCAST, 2, &race);
	assert_true(!(*at)->abandoned && (*at)->met == 2);
	race = (struct coll_race){ .met = 1, .settled = true, .choice = 1 };
	coll_keep_race(of[0], COLL_BCAST, 2, &race);
	race = (struct coll_race){ .met = 9, .settled = true, .choice = 2 };
	coll_keep_race(of[0], COLL_BCAST, 2, &race);
	assert_true((*at)->settled && (*at)->choice == 1);
	coll_kept_free();
}

static void test_kinds_have_a_limit(void **state)
{
	struct coll_kind kind = pair;

	for (int i = 0; i < COLL_KEPT_MOST; i++) {
		kind.way = (uint64_t)i;
		assert_non_null(coll_kept_of(&kind));
	}
	assert_non_null(coll_kept_at(COLL_KEPT_MOST - 1));
	assert_null(coll_kept_at(COLL_KEPT_MOST));
	kind.ranks++;
	assert_null(coll_kept_of(&kind));
	coll_kept_free();
	assert_non_null(coll_kept_of(&kind));
	coll_kept_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_race_goes_on_in_the_next_communicator),
		cmocka_unit_test(test_what_one_tells),
		cmocka_unit_test(test_kept_choice_stays),
		cmocka_unit_test(test_kinds_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
