/* map_choice.c - see map_choice.h. */
#include <string.h>

#include "rail/memory/map_choice.h"
#include "rail/message/scheme_race.h"

/* A sample is of many messages; pages move once for two. */
static const struct rail_race_plan plan = { .batch = 8, .least = 4, .pass = 2, .visit = 2, .samples = 6, .most = 12 };

enum {
	BATCH_LONG = 64,		/* messages of a batch that no pause ends */
	STREAM_FROM = 128,		/* messages without a pause, after which a batch begins without one */
	PAUSE_NS = 2000,		/* a shorter time without messages is the way to the next one */
	MISSED_MOST = 256,		/* messages of another memory than is wanted: learning waits */
	WAIT_MOST = 1 << 20,		/* messages */
};

/* The time of moves: so much is granted, and a part of that of all messages. */
enum {
	MOVED_NS = 2000000,
	MOVED_PART = 25,
	MOVE_MOST = 4,			/* in costs of a move: an outlier */
};

void rail_map_choice_init(struct rail_map_choice *choice)
{
	memset(choice, 0, sizeof(*choice));
	for (int place = 0; place < RAIL_PLACES; place++)
		for (int c = 0; c < SCHEME_CLASSES; c++) {
			struct rail_map_cell *cell = &choice->cell[place][c];

			cell->race.possible = cell->race.racing = (1u << MAP_SCHEMES) - 1;
			cell->race.assumed = cell->race.scheme = MAP_PLAIN;
			cell->wait = MAP_SEEN;
		}
}

static uint32_t cost(const struct rail_map_cell *cell, enum rail_map_scheme scheme)
{
	return rail_scheme_cost(&cell->race, (enum rail_scheme)scheme);
}

/* ---- Moves --------------------------------------------------------------- */

uint32_t rail_map_move_cost(const struct rail_map_cell *cell)
{
	return cell->moves ? cell->move_ns[(cell->moves - 1) / 2] : 0;
}

static void moved(struct rail_map_cell *cell, uint64_t ns)
{
	const uint64_t most = MOVE_MOST * (uint64_t)rail_map_move_cost(cell);

	cell->moved_ns += cell->moves && ns > most ? most : ns;
}

static void move_add(struct rail_map_cell *cell, uint64_t ns)
{
	unsigned at = cell->moves;

	moved(cell, ns);
	if (at == MAP_MOVES)
		return;
	cell->moves++;
	if (ns > UINT32_MAX)
		ns = UINT32_MAX;
	for (; at && cell->move_ns[at - 1] > ns; at--)
		cell->move_ns[at] = cell->move_ns[at - 1];
	cell->move_ns[at] = (uint32_t)ns;
}

void rail_map_moved_back(struct rail_map_cell *cell, uint64_t took_ns)
{
	moved(cell, took_ns);
}

static bool may_move(const struct rail_map_cell *cell)
{
	return cell->moved_ns <= MOVED_NS + cell->all_ns / MOVED_PART;
}

uint32_t rail_map_due(const struct rail_map_cell *cell)
{
	const uint32_t plain = cost(cell, MAP_PLAIN);
	const uint32_t mapped = cost(cell, rail_map_wanted(cell));
	const uint32_t move = rail_map_move_cost(cell);

	if (!cell->race.settled || !move)
		return 2;
	return plain > mapped ? 2 + move / (plain - mapped) : UINT32_MAX;
}

/* ---- Choices ------------------------------------------------------------- */

enum rail_map_scheme rail_map_mapped(const struct rail_map_cell *cell)
{
	const uint32_t written = cost(cell, MAP_WRITTEN);
	const uint32_t halves = cost(cell, MAP_HALVES);
	const enum rail_map_scheme wanted = rail_map_wanted(cell);

	if (wanted != MAP_PLAIN)
		return wanted;
	return halves && halves < written ? MAP_HALVES : MAP_WRITTEN;
}

/* A visit has begun that moves pages: it waits while moves are dear. */
static void hold(struct rail_map_cell *cell, enum rail_map_scheme before)
{
	struct rail_scheme_cell *race = &cell->race;

	if (race->settled || race->resting || (race->scheme == MAP_PLAIN) == (before == MAP_PLAIN) ||
	    may_move(cell))
		return;
	race->resting = true;
	race->scheme = (uint8_t)rail_race_best(race);
}

/* Buffers come or go too often to be measured: all messages are plain for a while, for longer each time. */
static void put_off(struct rail_map_cell *cell)
{
	cell->seen = cell->missed = 0;
	cell->wait = cell->wait < WAIT_MOST / 2 ? 2 * cell->wait : WAIT_MOST;
	cell->race.scheme = MAP_PLAIN;
	cell->race.resting = false;
	cell->race.passed = 0;
	cell->race.begun_ns = 0;
}

/* ---- Batches ------------------------------------------------------------- */

static void batch_end(struct rail_map_cell *cell)
{
	struct rail_scheme_cell *race = &cell->race;
	const enum rail_map_scheme before = rail_map_wanted(cell);
	const uint64_t took = race->ended_ns - race->begun_ns - cell->paused_ns;

	race->begun_ns = 0;
	cell->all_ns += took;
	cell->missed = 0;
	if (rail_race_takes_samples(race))
		rail_race_sample(race, took / race->done);
	for (uint32_t i = 0; i < race->done; i++)
		rail_race_message(race, took / race->done, 1);
	if (race->resting)
		rail_race_rest(race);
	if (race->resting && rail_race_may_visit(race))
		rail_race_visit(race);
	else if (!race->resting && (race->samples[before] % plan.visit == 0 || rail_race_is_dear(race)))
		rail_race_visit_end(race, &plan);
	hold(cell, before);
}

/* Another message than of `cell`, or of its scheme, comes. */
static void batch_break(struct rail_map_cell *cell)
{
	if (cell->race.begun_ns && !cell->under_way && cell->race.done >= plan.least)
		batch_end(cell);
	cell->race.begun_ns = 0;
}

static void batch_begin(struct rail_map_cell *cell, bool streams, uint64_t now_ns)
{
	cell->batch = (uint8_t)(cell->batch % (MAP_NO_BATCH - 1) + 1);
	cell->race.begun_ns = now_ns;
	cell->race.done = cell->under_way = 0;
	cell->paused_ns = 0;
	cell->streams = streams;
}

/* Does the message belong to a batch?  busy: others are under way. */
static bool batch_take(struct rail_map_choice *choice, struct rail_map_cell *cell, bool busy, uint64_t now_ns)
{
	struct rail_scheme_cell *race = &cell->race;

	if (race->passed < plan.pass) {
		race->passed++;
		return false;
	}
	if (!race->begun_ns && busy && choice->unbroken < STREAM_FROM)
		return false;
	if (!race->begun_ns)
		batch_begin(cell, busy, now_ns);
	else if (!cell->under_way && now_ns - race->ended_ns > PAUSE_NS)
		cell->paused_ns += now_ns - race->ended_ns;
	cell->under_way++;
	return true;
}

/* ---- Messages ------------------------------------------------------------ */

/* True: others were under way. */
static bool message_begin(struct rail_map_choice *choice, struct rail_map_cell *cell)
{
	const bool busy = choice->under_way;

	choice->unbroken = busy ? choice->unbroken + (choice->unbroken < STREAM_FROM) : 0;
	choice->under_way++;
	if (choice->last && choice->last != cell)
		batch_break(choice->last);
	choice->last = cell;
	return busy;
}

bool rail_map_take(struct rail_map_choice *choice, struct rail_map_cell *cell, enum rail_map_scheme as,
		   uint64_t now_ns, uint8_t *batch)
{
	bool busy;

	if (cell->seen < cell->wait) {
		cell->seen++;
		return false;
	}
	busy = message_begin(choice, cell);
	*batch = MAP_NO_BATCH;
	if (as != rail_map_wanted(cell)) {
		batch_break(cell);
		if (as == MAP_WRITTEN && rail_map_wanted(cell) == MAP_HALVES)
			rail_scheme_exclude(&cell->race, 1u << MAP_HALVES);
		if (++cell->missed == MISSED_MOST)
			put_off(cell);
	} else if (batch_take(choice, cell, busy, now_ns)) {
		*batch = cell->batch;
	}
	return true;
}

void rail_map_take_move(struct rail_map_choice *choice, struct rail_map_cell *cell, uint64_t begun_ns, uint8_t *batch)
{
	message_begin(choice, cell);
	batch_break(cell);
	choice->move_begun_ns = begun_ns;
	*batch = MAP_OWN_MOVE;
	if (++cell->missed == MISSED_MOST)
		put_off(cell);
}

void rail_map_done(struct rail_map_choice *choice, struct rail_map_cell *cell, uint8_t batch, uint64_t now_ns)
{
	struct rail_scheme_cell *race = &cell->race;

	choice->under_way -= choice->under_way > 0;
	if (batch == MAP_OWN_MOVE)
		move_add(cell, now_ns - choice->move_begun_ns);
	if (batch != cell->batch || !race->begun_ns)
		return;
	cell->under_way--;
	race->ended_ns = now_ns;
	if (cell->streams) {
		cell->streams = false;
		race->begun_ns = now_ns;
		return;
	}
	race->done++;
	if (race->done >= BATCH_LONG || (race->done >= plan.batch && !cell->under_way))
		batch_end(cell);
}

void rail_map_forget(struct rail_map_choice *choice)
{
	choice->under_way = choice->unbroken = 0;
	for (int place = 0; place < RAIL_PLACES; place++)
		for (int c = 0; c < SCHEME_CLASSES; c++)
			choice->cell[place][c].race.begun_ns = 0;
}

void rail_map_give(struct rail_map_cell *cell, enum rail_map_scheme scheme, const uint32_t cost_ns[MAP_SCHEMES],
		   uint32_t move_ns)
{
	uint32_t all_ns[RAIL_SCHEMES] = { 0 };

	memcpy(all_ns, cost_ns, MAP_SCHEMES * sizeof(*cost_ns));
	rail_scheme_give(&cell->race, (enum rail_scheme)scheme, all_ns);
	cell->moves = move_ns > 0;
	cell->move_ns[0] = move_ns;
}
