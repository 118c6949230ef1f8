/*
 * test_map_choice.c - are receive buffers mapped?  Learned on machines of a few lines of arithmetic, some on which
 * mapped memory wins and some on which it loses: each machine gets its own choices, exactly without noise, and
 * within 3 % of the best in 19 of 20 launches with noise; what moves cost is spread over uses, and is bounded.
 */
#include "cmocka_all.h"

#include <string.h>

#include "rail/memory/map_choice.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

/* Nanoseconds, and bytes per ns: of the best plain scheme, of a message by a mapping, of one in halves; of a move. */
struct machine {
	const char *name;
	double plain_fixed, plain_rate, written_fixed, written_rate, halves_fixed, halves_rate;
	double move_fixed, move_rate;
	/* The schemes by class from 32 KiB on, in letters: p(lain), w(ritten), h(alves). */
	const char *chosen;
};

/*
 * The first two are known: on one, one processor writes to a mapping faster than two that ask the kernel up to
 * 256 KiB; on the other, two copy through the kernel at twice the rate of one.  `kernel` has a slow copy by
 * the kernel, `memcpy` a slow memory that one processor fills alone, `far` caches that wait for lines of another core.
 */
static const struct machine machines[] = {
	{ "1 MiB of L2", 900, 9, 400, 11, 5000, 13, 8000, 4, "wwwwhhhh" },
	{ "2 MiB of L2", 800, 26, 600, 12, 1500, 14, 8000, 4, "pppppppp" },
	{ "kernel", 4000, 1, 400, 8, 2500, 1.8, 20000, 1, "wwwwwwww" },
	{ "memcpy", 500, 8, 600, 3.5, 700, 5, 5000, 4, "pppppppp" },
	{ "far", 600, 10, 400, 2, 700, 11.5, 8000, 4, "hhhhhhhh" },
};

enum { MACHINES = sizeof(machines) / sizeof(*machines), FIRST_CLASS = 1 };

static double cost(const struct machine *m, enum rail_map_scheme scheme, uint64_t bytes)
{
	const double b = (double)bytes;

	return scheme == MAP_WRITTEN ? m->written_fixed + b / m->written_rate :
	       scheme == MAP_HALVES ? m->halves_fixed + b / m->halves_rate : m->plain_fixed + b / m->plain_rate;
}

static double least(const struct machine *m, uint64_t bytes)
{
	double best = cost(m, MAP_PLAIN, bytes);

	for (int s = 1; s < MAP_SCHEMES; s++)
		if (cost(m, (enum rail_map_scheme)s, bytes) < best)
			best = cost(m, (enum rail_map_scheme)s, bytes);
	return best;
}

/* From 0 on, below 1. */
static double random_of(uint64_t *dice)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return (double)(*dice >> 11) / (double)(UINT64_C(1) << 53);
}

enum { BUFFERS = 64, WINDOW = 64 };

/* A receiver and its buffers. */
struct world {
	const struct machine *machine;
	struct rail_map_choice choice;
	struct rail_map_cell *cell;
	uint64_t bytes, dice;
	double now_ns, spent_ns, moved_ns;
	unsigned moves;
	double noise;
	bool interrupts, shares;	/* shares: a core, with the sender */
	bool mapped[BUFFERS];
	uint32_t uses[BUFFERS];
};

static struct world *world_make(const struct machine *m, uint64_t bytes, uint64_t seed, double noise)
{
	static struct world w;

	memset(&w, 0, sizeof(w));
	w.machine = m;
	w.bytes = bytes;
	w.dice = seed * 7919 + 1;
	w.noise = noise;
	w.interrupts = noise > 0;
	w.now_ns = 1e6;
	rail_map_choice_init(&w.choice);
	w.cell = rail_map_cell(&w.choice, 0, bytes);
	return &w;
}

static double disturbed(struct world *w, double ns)
{
	double d = 0;

	for (int i = 0; i < 4; i++)
		d += random_of(&w->dice) - 0.5;
	ns *= 1 + w->noise * (1.732 * d + (d < 0 ? -d : d));
	if (w->interrupts && random_of(&w->dice) < 0.03)
		ns += 2e3 + 8e3 * random_of(&w->dice);
	return w->interrupts && random_of(&w->dice) < 0.001 ? ns + 4e6 * random_of(&w->dice) : ns;
}

static void spend(struct world *w, double ns)
{
	w->now_ns += ns;
	w->spent_ns += ns;
}

/* As mapped.c: is the buffer mapped for its next message?  True: its pages move onto the mapping now. */
static bool buffer_use(struct world *w, unsigned buffer)
{
	const double ns = w->machine->move_fixed + (double)w->bytes / w->machine->move_rate;
	const bool wanted = rail_map_wanted(w->cell) != MAP_PLAIN;
	const bool moves = ++w->uses[buffer] >= rail_map_due(w->cell) && wanted && !w->mapped[buffer];

	if (moves || (!wanted && w->mapped[buffer])) {
		spend(w, ns);
		w->moved_ns += ns;
		w->moves++;
		w->mapped[buffer] = moves;
	}
	if (!moves && !w->mapped[buffer] && !wanted && w->moves && w->uses[buffer] > 1)
		rail_map_moved_back(w->cell, 0);
	return moves;
}

/* The time of the message's copy, which begins later where others are under way. */
static double message_begin(struct world *w, unsigned buffer, bool *told, uint8_t *batch)
{
	const double begun_ns = w->now_ns;
	const bool moves = buffer_use(w, buffer);
	const enum rail_map_scheme as = w->mapped[buffer] ? rail_map_mapped(w->cell) : MAP_PLAIN;

	*told = rail_map_learns(w->cell);
	if (*told && moves)
		rail_map_take_move(&w->choice, w->cell, (uint64_t)begun_ns, batch);
	else if (*told)
		*told = rail_map_take(&w->choice, w->cell, as, (uint64_t)w->now_ns, batch);
	return disturbed(w, cost(w->machine, as, w->bytes)) +
	       (w->shares && (as != MAP_PLAIN || random_of(&w->dice) < 0.1) ? 4e6 * random_of(&w->dice) : 0);
}

static void message_end(struct world *w, bool told, uint8_t batch)
{
	if (told)
		rail_map_done(&w->choice, w->cell, batch, (uint64_t)w->now_ns);
}

static void message(struct world *w, unsigned buffer)
{
	bool told;
	uint8_t batch;

	spend(w, message_begin(w, buffer, &told, &batch));
	message_end(w, told, batch);
	w->now_ns += 3000 + 5000 * random_of(&w->dice);	/* the answer */
}

/* All are accepted before the first one ends, into buffers in turn. */
static void window(struct world *w, unsigned buffers)
{
	double ns[WINDOW];
	bool told[WINDOW];
	uint8_t batch[WINDOW];

	for (unsigned i = 0; i < WINDOW; i++)
		ns[i] = message_begin(w, i % buffers, &told[i], &batch[i]);
	for (unsigned i = 0; i < WINDOW; i++) {
		spend(w, ns[i]);
		message_end(w, told[i], batch[i]);
	}
	w->now_ns += 20000;
}

/* Eight are under way all the time, so a sample has no pause to begin with. */
static void stream(struct world *w, unsigned messages)
{
	enum { DEPTH = 8 };
	double ns[DEPTH] = { 0 };
	bool told[DEPTH] = { false };
	uint8_t batch[DEPTH] = { 0 };

	for (unsigned i = 0; i < messages; i++) {
		const unsigned at = i % DEPTH;

		if (i >= DEPTH) {
			spend(w, ns[at]);
			message_end(w, told[at], batch[at]);
		}
		ns[at] = message_begin(w, at, &told[at], &batch[at]);
	}
	rail_map_forget(&w->choice);
}

enum kind { ALONE, WINDOWS, STREAM, KINDS };

static void learn(struct world *w, enum kind kind)
{
	for (unsigned n = 0; n < 100000 && rail_map_learns(w->cell); n++)
		if (kind == ALONE)
			message(w, 0);
		else if (kind == WINDOWS)
			window(w, 1 + n / 500);
		else
			stream(w, 2000);
	assert_false(rail_map_learns(w->cell));
}

static char letter(const struct world *w)
{
	return "pwh"[rail_map_wanted(w->cell)];
}

static void each_machine(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (int kind = 0; kind < KINDS; kind++) {
			char text[SCHEME_CLASSES] = "";

			for (unsigned c = FIRST_CLASS; c < SCHEME_CLASSES; c++) {
				struct world *w = world_make(&machines[m], SCHEME_FIRST_BYTES << c, 1, 0);

				learn(w, (enum kind)kind);
				text[c - FIRST_CLASS] = letter(w);
			}
			if (strcmp(text, machines[m].chosen))
				fail_msg("%s, kind %d: %s instead of %s", machines[m].name, kind, text,
					 machines[m].chosen);
		}
}

enum { LAUNCHES = 200 };

static void launches_of(const struct machine *m, uint64_t bytes, enum kind kind)
{
	int good = 0;

	for (int i = 0; i < LAUNCHES; i++) {
		struct world *w = world_make(m, bytes, (uint64_t)i, 0.06);

		learn(w, kind);
		good += cost(m, rail_map_wanted(w->cell), bytes) <= 1.03 * least(m, bytes);
	}
	if (good < LAUNCHES * 19 / 20)
		fail_msg("%s, %llu KiB, kind %d: %d of %d within 3 %%", m->name, (unsigned long long)bytes >> 10,
			 (int)kind, good, LAUNCHES);
}

/* Noise, interrupts and times off the core. */
static void steady(void **state)
{
	static const uint64_t sizes[] = { 32 * KIB, 64 * KIB, 256 * KIB, MIB };

	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (int kind = ALONE; kind <= WINDOWS; kind++)
			for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
				launches_of(&machines[m], sizes[i], (enum kind)kind);
}

/* Both processes have one core: a sender that has to act comes up to 4 ms later, so buffers stay plain. */
static void shared_core(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (unsigned c = FIRST_CLASS; c < SCHEME_CLASSES; c += 3)
			for (uint64_t seed = 0; seed < 20; seed++) {
				struct world *w = world_make(&machines[m], SCHEME_FIRST_BYTES << c, seed, 0);

				w->shares = true;
				for (int n = 0; n < 2000; n++)
					message(w, 0);
				/* A sender's turn costs 2 ms on average, of every tenth copy of the receiver as well. */
				if (cost(w->machine, MAP_PLAIN, w->bytes) < least(w->machine, w->bytes) + 1e6)
					assert_int_equal(letter(w), 'p');
			}
}

/* A class that is plain moves no page any more, and those that were mapped are back. */
static void plain_moves_nothing(void **state)
{
	struct world *w = world_make(&machines[3], 256 * KIB, 1, 0);
	unsigned moves;

	(void)state;
	learn(w, WINDOWS);
	window(w, BUFFERS);
	moves = w->moves;
	for (int n = 0; n < 100; n++)
		window(w, BUFFERS);
	assert_int_equal(w->moves, moves);
	for (int i = 0; i < BUFFERS; i++)
		assert_false(w->mapped[i]);
}

/* The first messages of a class are plain, and all of them if time does not pass. */
static void without_reason(void **state)
{
	static const struct machine tie = { "tie", 500, 10, 500, 10, 500, 10, 1000, 10, "" };
	struct world *w = world_make(&machines[2], MIB, 1, 0);

	(void)state;
	for (int n = 0; n < MAP_SEEN; n++) {
		assert_int_equal(rail_map_wanted(w->cell), MAP_PLAIN);
		message(w, 0);
	}
	assert_int_equal(w->moves, 0);
	w = world_make(&tie, MIB, 1, 0);
	learn(w, ALONE);
	assert_int_equal(letter(w), 'p');
	w = world_make(&tie, MIB, 1, 0);
	for (int n = 0; n < 2000 && rail_map_learns(w->cell); n++) {
		uint8_t batch;

		if (rail_map_take(&w->choice, w->cell, rail_map_wanted(w->cell), 5, &batch))
			rail_map_done(&w->choice, w->cell, batch, 5);
	}
	assert_int_equal(letter(w), 'p');
}

/* What a move costs is spread over the uses of a buffer: one that is used seldom is not mapped. */
static void moves_are_spread(void **state)
{
	struct rail_map_choice choice;
	struct rail_map_cell *cell = &choice.cell[0][4];
	const uint32_t ns[MAP_SCHEMES] = { 10000, 9000, 9500 };

	(void)state;
	rail_map_choice_init(&choice);
	assert_int_equal(rail_map_due(cell), 2);
	rail_map_give(cell, MAP_WRITTEN, ns, 0);
	assert_int_equal(rail_map_due(cell), 2);
	rail_map_give(cell, MAP_WRITTEN, ns, 50000);
	assert_int_equal(rail_map_due(cell), 52);
	rail_map_give(cell, MAP_PLAIN, ns, 50000);
	assert_int_equal(rail_map_due(cell), UINT32_MAX);
}

/* The same after measurement: the moves so far cost no more than what they could have saved, or gain. */
static void seldom_used(void **state)
{
	struct world *w = world_make(&machines[0], 128 * KIB, 1, 0);
	const double gain = cost(w->machine, MAP_PLAIN, w->bytes) - least(w->machine, w->bytes);
	const double move = w->machine->move_fixed + (double)w->bytes / w->machine->move_rate;

	(void)state;
	learn(w, ALONE);
	assert_int_equal(letter(w), 'w');
	assert_true(rail_map_due(w->cell) >= move / gain);
	assert_true(rail_map_due(w->cell) <= 2 * (move + w->machine->plain_fixed + cost(w->machine, MAP_PLAIN, w->bytes)) / gain + 3);
}

/* Buffers that are used twice and then no more move few pages; the class learns later, when buffers stay. */
static void buffers_come_and_go(void **state)
{
	struct world *w = world_make(&machines[2], 64 * KIB, 1, 0);
	const double message_ns = cost(w->machine, MAP_PLAIN, w->bytes);

	(void)state;
	for (unsigned n = 0; n < 20000; n++) {
		const unsigned buffer = n / 2 % BUFFERS;

		if (n % 2 == 0) {
			w->mapped[buffer] = false;
			w->uses[buffer] = 0;
		}
		message(w, buffer);
	}
	assert_true(rail_map_learns(w->cell));
	assert_true(w->spent_ns < 1.25 * 20000 * message_ns);
	learn(w, ALONE);
	assert_int_equal(letter(w), 'w');
}

/* Learning is cheap: a few thousand messages cost little more than the best of them all would. */
static void learning_is_cheap(void **state)
{
	(void)state;
	for (int m = 0; m < MACHINES; m++)
		for (unsigned c = FIRST_CLASS; c < SCHEME_CLASSES; c++) {
			struct world *w = world_make(&machines[m], SCHEME_FIRST_BYTES << c, 1, 0);

			for (int n = 0; n < 5000; n++)
				message(w, 0);
			w->spent_ns -= MAP_SEEN * cost(w->machine, MAP_PLAIN, w->bytes);
			if (w->spent_ns > 1.1 * (5000 - MAP_SEEN) * least(w->machine, w->bytes) + 2e6)
				fail_msg("%s, %llu KiB: %.3f of the best", w->machine->name,
					 (unsigned long long)w->bytes >> 10,
					 w->spent_ns / (5000 - MAP_SEEN) / least(w->machine, w->bytes));
		}
}

/* An offer that both ends cannot share is written by the sender alone. */
static void without_halves(void **state)
{
	struct world *w = world_make(&machines[4], MIB, 1, 0);

	(void)state;
	for (int n = 0; n < 5000 && rail_map_learns(w->cell); n++) {
		enum rail_map_scheme as = rail_map_wanted(w->cell);
		uint8_t batch;
		bool told;

		as = as == MAP_HALVES ? MAP_WRITTEN : as;
		told = rail_map_take(&w->choice, w->cell, as, (uint64_t)w->now_ns, &batch);
		spend(w, cost(w->machine, as, w->bytes));
		message_end(w, told, batch);
		w->now_ns += 3000;
	}
	assert_int_equal(letter(w), 'p');
	assert_int_equal(w->cell->race.samples[MAP_HALVES], 0);
}

/* Messages of a peer that has failed never end: the next ones are measured as before. */
static void forgotten(void **state)
{
	struct world *w = world_make(&machines[2], MIB, 1, 0);

	(void)state;
	for (int i = 0; i < 200; i++) {
		uint8_t batch;
		bool told;

		message_begin(w, 0, &told, &batch);
	}
	rail_map_forget(&w->choice);
	learn(w, ALONE);
	assert_int_equal(letter(w), 'w');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_machine),
		cmocka_unit_test(steady),
		cmocka_unit_test(shared_core),
		cmocka_unit_test(plain_moves_nothing),
		cmocka_unit_test(without_reason),
		cmocka_unit_test(moves_are_spread),
		cmocka_unit_test(seldom_used),
		cmocka_unit_test(buffers_come_and_go),
		cmocka_unit_test(learning_is_cheap),
		cmocka_unit_test(without_halves),
		cmocka_unit_test(forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
