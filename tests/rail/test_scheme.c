/*
 * test_scheme.c - who moves a message between processes of one host, learned on machines of a few
 * lines of arithmetic: each machine gets its own choices, from any order of samples, and a few bad
 * samples change none.
 */
#include "cmocka_all.h"

#include <string.h>

#include "rail/message/scheme.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

/*
 * Nanoseconds: a copy by one end; by two ends at once of one message, and of two messages whose
 * buffers may be the same; the way of a CTS to a sender that waits.  Rates in bytes per ns.
 */
struct machine {
	const char *name;
	double fixed, rate;		/* of one copy */
	double half_fixed, half_rate;	/* of each of two halves at once */
	double turn_fixed, turn_rate;	/* of each of two messages at once */
	double answer;
	/* The schemes by class, in letters: r(ead), h(alves), t(urns). */
	const char *alone, *queued;
};

/*
 * The first two are measured; `kernel` has a slow copy by the kernel, such as one that walks pages
 * one at a time, `memcpy` a slow memory that one processor fills alone, `shared` two processes on one
 * core, which never copy at once, `rivals` caches that make two writers of one buffer wait.
 */
static const struct machine machines[] = {
	{ "2 MiB of L2", 700, 16, 1300, 13, 2600, 9, 600, "rrhhhhhhh", "rrhhhhhhh" },
	{ "1 MiB of L2", 500, 9, 520, 8.5, 520, 8.5, 300, "hhhhhhhhh", "ttthhhhhh" },
	{ "kernel", 4000, 1, 4100, 0.95, 4100, 0.9, 300, "hhhhhhhhh", "ttthhhhhh" },
	{ "memcpy", 400, 4, 500, 2.1, 500, 2.1, 300, "rhhhhhhhh", "ttthhhhhh" },
	{ "shared", 400, 10, 800, 5, 800, 5, 3000, "rrrrrrrhh", "rrrrrrrhh" },
	{ "rivals", 500, 9, 600, 8, 2000, 3, 300, "hhhhhhhhh", "hhhhhhhhh" },
};

enum { MACHINES = sizeof(machines) / sizeof(*machines) };

static double cost(const struct machine *m, enum rail_scheme scheme, uint64_t bytes)
{
	double b = (double)bytes;

	switch (scheme) {
	case SCHEME_READ:
		return m->fixed + b / m->rate;
	case SCHEME_HALVES:
		return m->answer + m->half_fixed + b / 2 / m->half_rate;
	case SCHEME_TURNS:
		return (m->turn_fixed + b / m->turn_rate) / 2;
	default:
		return m->answer + m->fixed + b / m->rate;
	}
}

/* From 0 on, below 1. */
static double random_of(uint64_t *dice)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return (double)(*dice >> 11) / (double)(UINT64_C(1) << 53);
}

struct world {
	const struct machine *machine;
	struct rail_schemes schemes;
	double now_ns;
	uint64_t dice;
	double noise;			/* a part, at most */
	bool bad;			/* interrupts, and times off the core */
	unsigned messages;
};

static struct world world_make(const struct machine *machine, uint64_t seed)
{
	struct world w = { .machine = machine, .now_ns = 1e6, .dice = seed };

	rail_scheme_init(&w.schemes);
	return w;
}

static enum rail_scheme message(struct world *w, uint64_t bytes, enum rail_load load)
{
	struct rail_scheme_cell *cell = rail_scheme_cell(&w->schemes, bytes, load);
	enum rail_scheme scheme = cell->scheme;
	bool learns = rail_scheme_learns(&w->schemes, cell);

	if (learns)
		scheme = rail_scheme_take(&w->schemes, cell, (uint64_t)w->now_ns);
	w->now_ns += cost(w->machine, scheme, bytes) * (1 + w->noise * random_of(&w->dice));
	if (w->bad && ++w->messages % 29 == 0)
		w->now_ns += w->messages % (29 * 31) ? 10e3 : 5e6;
	if (learns)
		rail_scheme_done(cell, (uint64_t)w->now_ns);
	w->now_ns += 200;
	return scheme;
}

/* Windows: the first message of each has no other before it. */
static void windows(struct world *w, uint64_t bytes, unsigned window, unsigned count)
{
	while (count--) {
		for (unsigned i = 0; i < window; i++)
			message(w, bytes, i ? LOAD_QUEUED : LOAD_ALONE);
		w->now_ns += 3000;	/* both wait for each other */
	}
}

static void learn(struct world *w)
{
	for (unsigned c = 0; c < SCHEME_CLASSES; c++) {
		uint64_t bytes = SCHEME_FIRST_BYTES << c;

		windows(w, bytes, 32, 30);
		for (int i = 0; i < 100; i++)
			message(w, bytes, LOAD_ALONE);
	}
}

static void chosen(const struct world *w, enum rail_load load, char text[SCHEME_CLASSES + 1])
{
	static const char letters[] = { [SCHEME_READ] = 'r', [SCHEME_HALVES] = 'h', [SCHEME_TURNS] = 't' };

	for (unsigned c = 0; c < SCHEME_CLASSES; c++) {
		const struct rail_scheme_cell *cell = &w->schemes.cell[load][c];

		assert_true(cell->settled);
		text[c] = letters[cell->scheme];
	}
	text[SCHEME_CLASSES] = '\0';
}

static void expect_choices(const struct world *w)
{
	char text[SCHEME_CLASSES + 1];

	chosen(w, LOAD_ALONE, text);
	assert_string_equal(text, w->machine->alone);
	chosen(w, LOAD_QUEUED, text);
	assert_string_equal(text, w->machine->queued);
}

static void each_machine(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++) {
		struct world w = world_make(&machines[m], 1);

		learn(&w);
		expect_choices(&w);
	}
}

/* Every 29th message meets an interrupt, every 31st of these a process off its core. */
static void bad_samples(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++) {
		struct world w = world_make(&machines[m], 2);

		w.bad = true;
		learn(&w);
		expect_choices(&w);
	}
}

/* The choice costs at most the margin and the noise more than the best. */
static void noise(void **state)
{
	static const enum rail_scheme of[] = { SCHEME_READ, SCHEME_HALVES, SCHEME_TURNS };

	(void)state;
	for (int run = 0; run < 20 * MACHINES; run++) {
		const struct machine *m = &machines[run % MACHINES];
		struct world w = world_make(m, (uint64_t)run + 3);

		w.noise = 0.2;
		learn(&w);
		for (unsigned c = 0; c < SCHEME_CLASSES; c++) {
			const struct rail_scheme_cell *cell = &w.schemes.cell[LOAD_ALONE][c];
			uint64_t bytes = SCHEME_FIRST_BYTES << c;

			for (int s = 0; s < 2; s++)
				assert_true(cost(m, cell->scheme, bytes) <=
					    1.2 * cost(m, of[s], bytes));
		}
	}
}

/* The first 100 messages of a class cost at most a tenth more than by the best scheme. */
static void learning_is_cheap(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (unsigned c = 0; c < SCHEME_CLASSES; c++) {
			struct world w = world_make(&machines[m], 4);
			uint64_t bytes = SCHEME_FIRST_BYTES << c;
			double spent = 0, best;
			struct rail_scheme_cell *cell = rail_scheme_cell(&w.schemes, bytes, LOAD_ALONE);

			for (int i = 0; i < 100; i++)
				spent += cost(&machines[m], message(&w, bytes, LOAD_ALONE), bytes);
			best = 100 * cost(&machines[m], cell->scheme, bytes);
			assert_true(cell->settled);
			assert_true(spent <= 1.1 * best);
		}
}

/* No time passes: what was assumed stays. */
static void virtual_clock(void **state)
{
	struct rail_schemes schemes;

	(void)state;
	rail_scheme_init(&schemes);
	for (int load = 0; load < RAIL_LOADS; load++)
		for (unsigned c = 0; c < SCHEME_CLASSES; c++) {
			struct rail_scheme_cell *cell = &schemes.cell[load][c];

			for (int i = 0; i < 1000; i++) {
				rail_scheme_take(&schemes, cell, 1);
				rail_scheme_done(cell, 1);
			}
			assert_true(cell->settled);
			assert_int_equal(cell->scheme, cell->assumed);
		}
}

/* The first message of a window is no message alone. */
static void windows_tell_nothing_of_messages_alone(void **state)
{
	struct world w = world_make(&machines[0], 5);

	(void)state;
	windows(&w, 64 * KIB, 16, 100);
	assert_true(rail_scheme_cell(&w.schemes, 64 * KIB, LOAD_QUEUED)->settled);
	assert_int_equal(rail_scheme_cost(rail_scheme_cell(&w.schemes, 64 * KIB, LOAD_ALONE),
					  SCHEME_READ), 0);
}

/* A settled cell keeps its scheme whatever comes. */
static void settled_stays(void **state)
{
	struct world w = world_make(&machines[0], 6);
	struct rail_scheme_cell *cell = rail_scheme_cell(&w.schemes, MIB, LOAD_ALONE);

	(void)state;
	learn(&w);
	assert_int_equal(cell->scheme, SCHEME_HALVES);
	w.machine = &machines[4];
	learn(&w);
	assert_int_equal(cell->scheme, SCHEME_HALVES);
}

static void failed_peers_are_forgotten(void **state)
{
	struct world w = world_make(&machines[0], 7);
	struct rail_scheme_cell *cell = rail_scheme_cell(&w.schemes, MIB, LOAD_ALONE);

	(void)state;
	for (int i = 0; i < 2; i++)
		rail_scheme_take(&w.schemes, cell, 1000);
	rail_scheme_forget(&w.schemes);
	learn(&w);
	expect_choices(&w);
}

static void classes(void **state)
{
	(void)state;
	assert_int_equal(rail_scheme_class(1), 0);
	assert_int_equal(rail_scheme_class(16 * KIB), 0);
	assert_int_equal(rail_scheme_class(16 * KIB + 1), 1);
	assert_int_equal(rail_scheme_class(2 * MIB), 7);
	assert_int_equal(rail_scheme_class(2 * MIB + 1), 8);
	assert_int_equal(rail_scheme_class(UINT64_MAX), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_machine),
		cmocka_unit_test(bad_samples),
		cmocka_unit_test(noise),
		cmocka_unit_test(learning_is_cheap),
		cmocka_unit_test(virtual_clock),
		cmocka_unit_test(windows_tell_nothing_of_messages_alone),
		cmocka_unit_test(settled_stays),
		cmocka_unit_test(failed_peers_are_forgotten),
		cmocka_unit_test(classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
