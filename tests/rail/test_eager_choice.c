/*
 * test_eager_choice.c - eager or offered, learned on machines of a few lines of arithmetic: each
 * machine gets its own choices, and a few bad samples change none.
 */
#include "cmocka_all.h"

#include <string.h>

#include "eager_machines.h"

static double cost(const struct machine *m, bool eager, double bytes, const struct rail_row *row)
{
	const bool alone = rail_row_is_alone(row);

	if (eager)
		return m->eager + bytes / m->ring_rate * (alone ? 2 : 1);
	return (alone ? m->offer : m->offer_row) + bytes / m->kernel_rate;
}

/*
 * Where both share a core, the receiver's turn comes up to 4 ms later: for the first offer of a row, which the others
 * have too, and each time that eager messages have filled the ring.
 */
static bool needs_turn(const struct world *w, bool eager, uint64_t bytes)
{
	return w->shares && w->row.place % (eager ? RING_BYTES / bytes : UINT32_MAX) == 0;
}

/* The sender learns of ends in time. */
static void learn_ends(struct world *w, double now_ns)
{
	if (w->told_ns != 0 && w->told_ns <= now_ns) {
		rail_eager_ended(&w->choice, (uint64_t)w->told_ns);
		w->told_ns = 0;
	}
}

static bool message(struct world *w, uint64_t bytes)
{
	struct rail_eager_cell *cell;
	struct rail_eager_step step;
	double begin = w->sent_ns > w->done_ns ? w->sent_ns : w->done_ns;

	rail_row_step(&w->row, bytes, w->heard);
	w->heard = 0;
	cell = rail_eager_cell(&w->choice, bytes, &w->row);
	step = (struct rail_eager_step){ .eager = cell->scheme == EAGER_SENT };

	learn_ends(w, w->sent_ns);
	if (!rail_eager_is_settled(&w->choice, cell))
		step = rail_eager_take(&w->choice, cell, w->row.place, (uint64_t)w->sent_ns);
	w->done_ns = begin + cost(w->machine, step.eager, (double)bytes, &w->row) * rival_slows(w) *
				     (1 + w->noise * random_of(&w->dice));
	if (needs_turn(w, step.eager, bytes))
		w->done_ns += 4e6 * random_of(&w->dice);
	if (w->bad && ++w->messages % w->bad == 0)
		w->done_ns += w->messages % 31 ? 10e3 : 5e6;
	if (step.last)
		w->told_ns = w->done_ns + 100;
	w->sent_ns += 50;
	return step.eager;
}

/* The peer answers, so a row ends. */
static void answer(struct world *w)
{
	w->sent_ns = w->done_ns + 500;
	w->heard = 1;
	learn_ends(w, w->sent_ns);
}

static void alone(struct world *w, uint64_t bytes, int count)
{
	while (count--) {
		message(w, bytes);
		answer(w);
	}
}

static void rows(struct world *w, uint64_t bytes, uint32_t length, int count)
{
	while (count--) {
		for (uint32_t i = 0; i < length; i++)
			message(w, bytes);
		answer(w);
	}
}

static void expect_choices(const struct world *w, const struct machine *m)
{
	for (int load = 0; load < EAGER_CROSSING; load++) {
		char text[EAGER_CLASSES + 1] = "";

		for (int c = 0; c < EAGER_CLASSES; c++) {
			assert_true(w->choice.cell[load][c].settled);
			text[c] = w->choice.cell[load][c].scheme == EAGER_SENT ? 'e' : 'o';
		}
		assert_string_equal(text, load == EAGER_ALONE ? m->alone : m->row);
	}
}

static void learn_all(struct world *w, uint32_t length)
{
	for (int c = 0; c < EAGER_CLASSES; c++) {
		alone(w, 16 * KIB << c, 200);
		rows(w, 16 * KIB << c, length, length < 100 ? (int)(8000 / length) : 60);
	}
}

static void each_machine(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (uint32_t length = 16; length <= 512; length *= 2) {
			struct world w = world_make(&machines[m], 1);

			learn_all(&w, length);
			expect_choices(&w, &machines[m]);
		}
}

/* Rows, or one without an end, in which each message is done before the next. */
static void looks_of(const struct machine *m, int class, uint32_t length)
{
	struct world w = world_make(m, 1);
	const struct rail_eager_cell *cell = &w.choice.cell[EAGER_IN_ROW][class];

	for (uint32_t i = 0; i < 1000; i++) {
		const bool eager = message(&w, 16 * KIB << class);

		if (length && i % length == length - 1)
			answer(&w);
		else if (!length)
			w.sent_ns = w.done_ns + 200;
		if (i >= 900)
			assert_int_equal(eager, m->row[class] == 'e');
	}
	assert_false(cell->settled);
}

/* Before learning the messages of rows go by the faster scheme, once both have been looked at. */
static void looks(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (int c = 0; c < EAGER_CLASSES; c++) {
			looks_of(&machines[m], c, 0);
			for (uint32_t length = 16; length <= 128; length *= 2)
				looks_of(&machines[m], c, length);
		}
}

/* Interrupts, times off the core, and ends that the sender learns of late. */
static void bad_samples(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (uint64_t seed = 1; seed <= 20; seed++) {
			struct world w = world_make(&machines[m], seed);

			w.noise = 0.05;
			w.bad = 97;
			learn_all(&w, 64);
			expect_choices(&w, &machines[m]);
		}
}

/* Two processes that share a core: in rows the scheme that needs fewer turns of the receiver. */
static void shared_core(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (int c = 0; c < EAGER_CLASSES; c++) {
			int good = 0;

			for (uint64_t seed = 0; seed < 100; seed++) {
				struct world w = world_make(&machines[m], 7919 * seed + 1);

				w.shares = true;
				alone(&w, 16 * KIB << c, 400);
				rows(&w, 16 * KIB << c, 64, 150);
				assert_true(w.choice.cell[EAGER_ALONE][c].settled);
				assert_true(w.choice.cell[EAGER_IN_ROW][c].settled);
				good += w.choice.cell[EAGER_IN_ROW][c].scheme == EAGER_OFFERED;
			}
			if (good < 95)
				fail_msg("%s, %d KiB: %d of 100", machines[m].name, 16 << c, good);
		}
}

enum { LAUNCHES = 200 };

/* What the choice costs, in costs of the best, on average over launches in which another pair slows this one. */
static double beside_rivals(const struct machine *m, uint64_t bytes, int load)
{
	const struct rail_row row = { .streams = load == EAGER_IN_ROW };
	double sum = 0;

	for (uint64_t seed = 0; seed < LAUNCHES; seed++) {
		struct world w = world_beside_rival(m, seed);
		const struct rail_eager_cell *cell = &w.choice.cell[load][rail_eager_class(bytes)];
		double ns[EAGER_SCHEMES];

		if (load == EAGER_ALONE)
			alone(&w, bytes, 200);
		else
			rows(&w, bytes, 64, 125);
		assert_true(cell->settled);
		for (int s = 0; s < EAGER_SCHEMES; s++)
			ns[s] = cost(m, s == EAGER_SENT, (double)bytes, &row);
		sum += ns[cell->scheme] / (ns[0] < ns[1] ? ns[0] : ns[1]);
	}
	return sum / LAUNCHES;
}

static void beside_another_pair(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (uint64_t bytes = 16 * KIB; bytes <= EAGER_CHOICE_BYTES; bytes *= 2)
			for (int load = 0; load <= EAGER_IN_ROW; load++) {
				const double chosen = beside_rivals(&machines[m], bytes, load);

				if (chosen > 1.06)
					fail_msg("%s, %llu KiB, load %d: on average %.3f of the best", machines[m].name,
						 (unsigned long long)bytes >> 10, load, chosen);
			}
}

/* Rows of unlike sizes have the scheme that is best for all of them together. */
static void rows_of_unlike_sizes(void **state)
{
	const struct rail_row in_row = { .streams = true };

	(void)state;
	for (int m = 0; m < MACHINES; m++) {
		struct world w = world_make(&machines[m], 1);
		const struct rail_eager_cell *cell = &w.choice.cell[EAGER_ROW_MIXED][EAGER_CLASSES - 1];
		double ns[EAGER_SCHEMES] = { 0 };

		for (int n = 0; n < 400 && !cell->settled; n++) {
			for (int i = 0; i < 48; i++)
				message(&w, 16 * KIB << i % 3);
			answer(&w);
		}
		assert_true(cell->settled);
		for (int i = 0; i < 3; i++)
			for (int s = 0; s < EAGER_SCHEMES; s++)
				ns[s] += cost(&machines[m], s == EAGER_SENT, (double)(16 * KIB << i), &in_row);
		assert_true(ns[cell->scheme] <= 1.03 * ns[!cell->scheme]);
		assert_false(w.choice.cell[EAGER_IN_ROW][1].settled);
		/* Rows of one size have their own cell again. */
		rows(&w, 32 * KIB, 64, 80);
		assert_true(w.choice.cell[EAGER_IN_ROW][1].settled);
	}
}

/* Nothing is chosen by a tie, by messages that the peer has not taken, or by rows that are short. */
static void without_reason(void **state)
{
	static const struct machine tie = { "tie", 500, 500, 10, 500, 10, "", "", "" };
	struct world w = world_make(&tie, 1);

	(void)state;
	rows(&w, 16 * KIB, 64, 80);
	assert_true(w.choice.cell[EAGER_IN_ROW][0].settled);
	assert_int_equal(w.choice.cell[EAGER_IN_ROW][0].scheme, EAGER_OFFERED);

	w = world_make(&machines[2], 1);
	rows(&w, 16 * KIB, 7, 1000);
	assert_false(w.choice.cell[EAGER_IN_ROW][0].settled);
	assert_int_equal(w.choice.cell[EAGER_IN_ROW][0].samples[EAGER_SENT], 0);
	for (int i = 0; i < 1000; i++)
		message(&w, 16 * KIB);
	assert_int_equal(w.choice.cell[EAGER_ALONE][0].samples[EAGER_OFFERED], 0);
	assert_int_equal(w.choice.cell[EAGER_ALONE][0].scheme, EAGER_SENT);
}

/* New memory need not be registered: the first messages are sent, at any place, those of 64 KiB offered. */
static void first_messages(void **state)
{
	(void)state;
	for (uint8_t place = 0; place < RAIL_PLACES; place++)
		for (int c = 0; c < EAGER_CLASSES; c++) {
			struct world w = world_make(&machines[0], 1);

			w.row.peer_place = place;
			for (int i = 0; i < 32; i++) {
				assert_int_equal(message(&w, 16 * KIB << c), c < 2);
				answer(&w);
			}
			for (int i = 0; i < 40; i++) {
				assert_false(message(&w, 16 * KIB << c));
				answer(&w);
			}
			for (int i = 0; i < 64; i++)
				assert_int_equal(message(&w, 16 * KIB << c), c < 2 && i >= 2);
		}
}

/* An end does as the leader's last message of the class does, for some of its own. */
static void obeys(void **state)
{
	struct rail_row row = { .place = 0 };
	bool eager = false;

	(void)state;
	assert_false(rail_eager_obey(&row, 16 * KIB, &eager));
	rail_row_told(&row, 9 * KIB, EAGER_SENT);
	rail_row_told(&row, 20 * KIB, EAGER_OFFERED);
	assert_false(rail_eager_obey(&row, 64 * KIB, &eager));
	assert_true(rail_eager_obey(&row, 16 * KIB, &eager));
	assert_true(eager);
	assert_true(rail_eager_obey(&row, 32 * KIB, &eager));
	assert_false(eager);
	for (int i = 1; i < EAGER_LED; i++)
		assert_true(rail_eager_obey(&row, 16 * KIB, &eager));
	assert_false(rail_eager_obey(&row, 16 * KIB, &eager));
}

/* Samples of eager messages never end: offers stay. */
static void without_end(void **state)
{
	struct world w = world_make(&machines[2], 1);
	struct rail_eager_cell *cell = &w.choice.cell[EAGER_ALONE][0];

	(void)state;
	for (int i = 0; i < 400 && !cell->settled; i++) {
		message(&w, 16 * KIB);
		if (cell->scheme == EAGER_SENT)
			w.told_ns = 0;
		answer(&w);
	}
	assert_true(cell->settled);
	assert_int_equal(cell->scheme, EAGER_OFFERED);
}

/* The same after some samples of both: these decide. */
static void ends_cease(void **state)
{
	struct world w = world_make(&machines[2], 1);
	struct rail_eager_cell *cell = &w.choice.cell[EAGER_ALONE][0];

	(void)state;
	for (int i = 0; i < 400 && !cell->settled; i++) {
		message(&w, 16 * KIB);
		if (cell->scheme == EAGER_SENT && cell->samples[EAGER_SENT] > 3)
			w.told_ns = 0;
		answer(&w);
	}
	assert_true(cell->settled);
	assert_int_equal(cell->scheme, EAGER_SENT);
}

/* Both ends send two messages and wait for those of the other; ends are told during the next exchange. */
static void exchanges(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (int c = 0; c < EAGER_CLASSES; c++) {
			struct world w = world_make(&machines[m], 1);
			const struct rail_eager_cell *cell = &w.choice.cell[EAGER_ALONE][c];

			for (int i = 0; i < 200; i++) {
				message(&w, 16 * KIB << c);
				message(&w, 16 * KIB << c);
				w.sent_ns = w.done_ns;
				w.heard = 2;
			}
			assert_true(cell->settled);
			assert_int_equal(cell->scheme == EAGER_SENT, machines[m].alone[c] == 'e');
			assert_true(cell->samples[EAGER_SENT] > 3 && cell->samples[EAGER_OFFERED] > 3);
		}
}

/* Messages to another peer come between: a sample waits for its end, but not for long. */
static void other_peers(void **state)
{
	struct world w = world_make(&machines[2], 1);
	struct rail_eager_cell *cell = &w.choice.cell[EAGER_ALONE][0];
	bool waits = false;

	(void)state;
	for (int i = 0; i < 400 && !cell->settled; i++) {
		message(&w, 16 * KIB);
		waits |= w.told_ns != 0 && rail_eager_waits(&w.choice);
		answer(&w);
	}
	assert_true(waits && cell->settled);
	assert_int_equal(cell->scheme, EAGER_SENT);
	assert_false(rail_eager_waits(&w.choice));
}

/* Samples of offers never end either, such as of rows to several peers that alternate. */
static void offers_without_end(void **state)
{
	struct world w = world_make(&machines[2], 1);
	struct rail_eager_cell *cell = &w.choice.cell[EAGER_ALONE][0];

	(void)state;
	for (int i = 0; i < 400 && !cell->settled; i++) {
		message(&w, 16 * KIB);
		rail_eager_forget(&w.choice);
		w.told_ns = 0;
		answer(&w);
	}
	assert_true(cell->settled);
	assert_int_equal(cell->scheme, EAGER_OFFERED);
}

/* A change of sizes within a row mixes it for a while; single messages of unlike sizes do not. */
static void kinds_of_sizes(void **state)
{
	struct rail_eager_choice choice;
	struct rail_row row = { 0 };

	(void)state;
	rail_eager_choice_init(&choice);
	for (int i = 0; i < 100; i++) {
		rail_row_step(&row, 16 * KIB << i % 3, 1);
		assert_ptr_equal(rail_eager_cell(&choice, 16 * KIB, &row), &choice.cell[EAGER_ALONE][0]);
	}
	for (int i = 0; i < 64; i++)
		rail_row_step(&row, 64 * KIB, i == 0);
	assert_ptr_equal(rail_eager_cell(&choice, 16 * KIB, &row), &choice.cell[EAGER_IN_ROW][0]);
	rail_row_step(&row, 16 * KIB, 0);
	assert_ptr_equal(rail_eager_cell(&choice, 16 * KIB, &row), &choice.cell[EAGER_ROW_MIXED][EAGER_CLASSES - 1]);
	row.crosses = 1;
	assert_ptr_equal(rail_eager_cell(&choice, 16 * KIB, &row), &choice.cell[EAGER_CROSSING_MIXED][EAGER_CLASSES - 1]);
	for (int i = 0; i < EAGER_ROW_MIXED_FOR; i++)
		rail_row_step(&row, 16 * KIB, 0);
	assert_int_equal(row.mixed, 0);
}

/* Pings are alone, windows are not; of both directions they cross. */
static void kinds_of_rows(void **state)
{
	struct rail_row row = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		rail_row_step(&row, 16 * KIB, 1);
		assert_true(rail_row_is_alone(&row));
		assert_false(rail_row_is_crossed(&row));
	}
	for (int i = 0; i < 128; i++) {
		rail_row_step(&row, 16 * KIB, i % 64 == 0);
		assert_false(rail_row_is_crossed(&row));
	}
	for (int i = 0; i < 64; i++) {
		rail_row_step(&row, 16 * KIB, i == 0);
		assert_false(rail_row_is_alone(&row));
	}
	for (int i = 0; i < 256; i++) {
		rail_row_step(&row, 16 * KIB, i % 16 == 3 ? 12 : i % 64 == 0 ? 16 : 0);
		assert_false(rail_row_is_alone(&row));
		assert_true(i < 32 || rail_row_is_crossed(&row));
	}
	/* Long windows cross as well, though their last messages hear nothing; those of one end end that. */
	for (int i = 0; i < 1024; i++) {
		rail_row_step(&row, 16 * KIB, i % 256 == 0 ? 256 : 0);
		assert_true(rail_row_is_crossed(&row));
	}
	for (int i = 0; i < 512; i++)
		rail_row_step(&row, 16 * KIB, i % 64 == 0);
	assert_false(rail_row_is_crossed(&row));
	for (int i = 0; i < 100; i++)
		rail_row_step(&row, 16 * KIB, 1);
	assert_true(rail_row_is_alone(&row));
}

/* A sender that never hears of its peer has one row for ever. */
static void endless_row(void **state)
{
	struct world w = world_make(&machines[0], 1);

	(void)state;
	for (uint32_t i = 0; i < 16000; i++) {
		message(&w, 16 * KIB);
		if (i % 16 == 0)	/* the ring is full: the sender waits */
			w.sent_ns = w.done_ns > 16 * 2000 ? w.done_ns - 16 * 1500 : w.sent_ns;
	}
	assert_true(w.choice.cell[EAGER_IN_ROW][0].settled);
	assert_int_equal(w.choice.cell[EAGER_IN_ROW][0].scheme, EAGER_SENT);
}

/* A failed peer's sample ends never; the next ones are whole. */
static void forgotten(void **state)
{
	struct world w = world_make(&machines[2], 1);

	(void)state;
	for (int i = 0; i < 60; i++) {
		alone(&w, 16 * KIB, 7);
		message(&w, 16 * KIB);
		rail_eager_forget(&w.choice);
		w.told_ns = 0;
		answer(&w);
	}
	assert_true(w.choice.cell[EAGER_ALONE][0].settled);
	assert_int_equal(w.choice.cell[EAGER_ALONE][0].scheme, EAGER_SENT);
	assert_in_range(rail_eager_cost(&w.choice.cell[EAGER_ALONE][0], EAGER_SENT), 3900, 4200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_machine),
		cmocka_unit_test(looks),
		cmocka_unit_test(bad_samples),
		cmocka_unit_test(shared_core),
		cmocka_unit_test(beside_another_pair),
		cmocka_unit_test(rows_of_unlike_sizes),
		cmocka_unit_test(without_reason),
		cmocka_unit_test(first_messages),
		cmocka_unit_test(obeys),
		cmocka_unit_test(without_end),
		cmocka_unit_test(ends_cease),
		cmocka_unit_test(exchanges),
		cmocka_unit_test(other_peers),
		cmocka_unit_test(offers_without_end),
		cmocka_unit_test(kinds_of_sizes),
		cmocka_unit_test(kinds_of_rows),
		cmocka_unit_test(endless_row),
		cmocka_unit_test(forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
