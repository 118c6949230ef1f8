/* scheme.c - the messages of a cell, by batches: samples of its race (scheme_race.h). */
#include <string.h>

#include "rail/message/scheme.h"
#include "rail/message/scheme_race.h"

/*
 * A batch is measured as a whole: one message, or several that queue, whose copies overlap.  A short
 * batch of the latter shows what this end does and hides what the other end still has to do, so it
 * is long, or ends with the queue.  Messages before a batch are passed over, since the scheme before
 * has left the bytes in other caches; the first ones of all meet fresh pages as well.
 */
static const struct rail_race_plan plan[RAIL_LOADS] = {
	[LOAD_ALONE] = { .batch = 1, .least = 1, .first_pass = 3, .pass = 1, .visit = 2,
			 .samples = 12, .most = SCHEME_SAMPLES },
	[LOAD_QUEUED] = { .glance = 2, .batch = 64, .least = 8, .first_pass = 2, .pass = 2, .visit = 1,
			  .samples = 6, .most = 16 },
	/* Messages of mixed sizes, LOAD_MIXED, have this plan, too. */
	[LOAD_CROSSING] = { .glance = 2, .batch = 16, .visit = 1, .samples = 6, .most = 16 },
};

/*
 * Messages that cross come in windows, which begin with the first offer after a pause.  An end may take
 * all offers of a window before the other end's parts of them land, so whole windows are
 * measured, as many as make a batch, without the pauses.  Where no pause is seen for so many
 * messages, they are a stream, and batches begin and end anywhere, but for the first ones of a visit,
 * among which the other scheme's parts end.  The first messages of all meet fresh pages: they are passed
 * over, but a long window that begins with them shows at most how much the assumed scheme costs, which
 * is enough to go on to the others.
 */
enum { FRESH_MESSAGES = 2, STREAM_FROM = 128, STREAM_BATCH = 64 };

/* Sizes are mixed for so many offers after a change within a window; costs are of pieces of so many bytes then. */
enum { MIXED_OFFERS = 128, PIECE_BYTES = 64 << 10 };

/* The first batches of a scheme whose messages queue. */
enum { GLANCES = 2, FIRST_VISITS = 3 };

enum {
	TURNS_CLASSES = 3,		/* turns up to 64 KiB; halves overlap as well above */
	RING_FROM = 2,			/* above 32 KiB, which is a slice; smaller ones go unoffered (eager_choice.h) */
	HALVES_FROM = 1,		/* assumed from this class on, for messages alone */
	QUEUED_HALVES_FROM = 1,
	CROSSING_HALVES_FROM = 5,	/* above 256 KiB; below, both processors are busy anyway */
};

unsigned rail_scheme_class(uint64_t bytes)
{
	unsigned c = 0;

	while (c < SCHEME_CLASSES - 1 && bytes > SCHEME_FIRST_BYTES << c)
		c++;
	return c;
}

/* A read needs neither an answer nor the other end's time: the safe one where messages are small. */
static enum rail_scheme assumed(enum rail_load load, unsigned c)
{
	static const unsigned from[RAIL_LOADS] = {
		HALVES_FROM, QUEUED_HALVES_FROM, CROSSING_HALVES_FROM, SCHEME_CLASSES,
	};

	return c < from[load] ? SCHEME_READ : SCHEME_HALVES;
}

enum rail_scheme rail_scheme_shared(uint64_t bytes, bool crossing, bool to_shared)
{
	return crossing || !to_shared ? SCHEME_READ : assumed(LOAD_ALONE, rail_scheme_class(bytes));
}

void rail_scheme_init(struct rail_schemes *schemes)
{
	memset(schemes, 0, sizeof(*schemes));
	for (int row = 0; row < RAIL_PLACES * RAIL_LOADS; row++)
		for (unsigned c = 0; c < SCHEME_CLASSES; c++) {
			struct rail_scheme_cell *cell = &schemes->cell[row][c];
			const enum rail_load load = row % RAIL_LOADS;

			cell->assumed = cell->scheme = (uint8_t)assumed(load, c);
			cell->possible = 1u << SCHEME_READ | 1u << SCHEME_HALVES;
			if (load != LOAD_ALONE && c < TURNS_CLASSES)
				cell->possible |= 1u << SCHEME_TURNS;
			if (c >= RING_FROM)
				cell->possible |= SCHEMES_RING;
			cell->later = cell->possible & SCHEMES_LATER;
			cell->racing = cell->possible & (uint8_t)~cell->later;
			cell->fresh = true;
		}
}

void rail_scheme_exclude(struct rail_scheme_cell *cell, unsigned schemes)
{
	if (cell->settled)
		return;
	cell->possible &= (uint8_t)~schemes;
	cell->racing &= (uint8_t)~schemes;
	cell->later &= (uint8_t)~schemes;
	if (!(schemes >> cell->scheme & 1))
		return;
	cell->scheme = cell->assumed;
	cell->begun_ns = 0;
}

static enum rail_load load_of(const struct rail_schemes *schemes, const struct rail_scheme_cell *cell)
{
	return (enum rail_load)((cell - schemes->cell[0]) / SCHEME_CLASSES % RAIL_LOADS);
}

static bool crosses(enum rail_load load)
{
	return load == LOAD_CROSSING || load == LOAD_MIXED;
}

/* ---- Batches ------------------------------------------------------------- */

static bool is_glance(const struct rail_scheme_cell *cell, const struct rail_race_plan *p)
{
	return p->glance && cell->glances[cell->scheme] < GLANCES;
}

static unsigned batch_messages(const struct rail_scheme_cell *cell, const struct rail_race_plan *p)
{
	return is_glance(cell, p) ? p->glance : p->batch;
}

/* A message of the present scheme costs so much. */
static void batch_cost(struct rail_scheme_cell *cell, const struct rail_race_plan *p, bool glance,
		       uint64_t ns)
{
	const uint8_t s = cell->scheme;

	cell->fresh = false;
	if (glance)
		rail_race_glance(cell, ns);
	else
		rail_race_sample(cell, ns);
	if (cell->resting) {
		rail_race_rest(cell);
		return;
	}
	/* Disturbances last, so the first samples are of visits of their own. */
	if (glance ? cell->glances[s] == GLANCES : cell->samples[s] <= FIRST_VISITS ||
						   cell->samples[s] % p->visit == 0)
		rail_race_visit_end(cell, p);
}

static void batch_end(struct rail_scheme_cell *cell, const struct rail_race_plan *p, uint64_t end_ns)
{
	const uint64_t ns = (end_ns - cell->begun_ns) / cell->done;

	cell->begun_ns = 0;
	batch_cost(cell, p, is_glance(cell, p), ns);
}

/* The window or the part of a stream ends. */
static void crossing_end(struct rail_scheme_cell *cell, uint64_t end_ns)
{
	const struct rail_race_plan *p = &plan[LOAD_CROSSING];
	const bool fresh = cell->fresh && cell->messages[cell->assumed] - cell->taken_pieces < FRESH_MESSAGES;
	bool glance;

	if (fresh && cell->taken < p->batch) {
		cell->begun_ns = 0;
		return;
	}
	cell->counted_ns += end_ns - cell->begun_ns;
	cell->counted += cell->taken;
	cell->counted_pieces += cell->taken_pieces;
	cell->begun_ns = 0;
	glance = fresh || (is_glance(cell, p) && cell->counted < p->batch);
	if (cell->counted < (glance ? p->glance : p->batch))
		return;
	end_ns = cell->counted_ns / cell->counted_pieces;
	cell->counted = cell->counted_pieces = 0;
	cell->counted_ns = 0;
	batch_cost(cell, p, glance, end_ns);
	if (fresh)
		rail_race_visit_end(cell, p);
}

/*
 * All messages of a window have ended, those of either direction: the first offers of the next one tell
 * what follows from it.
 */
static void crossing_complete(const struct rail_schemes *schemes, struct rail_scheme_cell *cell)
{
	if (!schemes->window && cell->begun_ns && cell->windows && !cell->under_way)
		crossing_end(cell, cell->ended_ns);
}

/* A pause, or messages of another cell: parts of messages that are still to come make a window unknown. */
static void crossing_break(struct rail_scheme_cell *cell)
{
	if (cell->begun_ns && cell->windows && !cell->under_way)
		crossing_end(cell, cell->ended_ns);
	cell->begun_ns = 0;
	cell->unbroken = 0;
}

/* Another message than of `cell` comes: the end of its last message so far is the batch's. */
static void batch_break(struct rail_scheme_cell *cell, enum rail_load load)
{
	const struct rail_race_plan *p = &plan[load];
	const unsigned least = is_glance(cell, p) ? p->glance : p->least;

	if (load == LOAD_QUEUED)
		cell->passed = 0;
	if (cell->begun_ns && cell->done >= least)
		batch_end(cell, p, cell->ended_ns);
	cell->begun_ns = 0;
}

/*
 * A visit ends before its time; its messages are a sample: alone those whose duration is known, queued
 * all that have ended.
 */
static void visit_cut(struct rail_scheme_cell *cell, enum rail_load load)
{
	const uint32_t messages = load == LOAD_ALONE ? cell->visit_messages : cell->visit_done;

	if (messages)
		rail_race_sample(cell, cell->visit_ns / messages);
	rail_race_visit_end(cell, &plan[load]);
}

/* ---- Messages ------------------------------------------------------------ */

/*
 * The next message (NULL: one of no cell) tells of the one before: a message that others follow at once
 * was not alone: its sender was busy with these.
 */
static void last_end(struct rail_schemes *schemes, const struct rail_scheme_cell *next,
		     uint64_t now_ns)
{
	struct rail_scheme_cell *last = schemes->last;
	uint64_t took_ns, alone_ns;
	enum rail_load load;

	if (!last || last->settled)
		return;
	load = load_of(schemes, last);
	if (crosses(load)) {
		crossing_break(last);
		return;
	}
	took_ns = last->took_ns;
	alone_ns = last->alone_ns;
	last->took_ns = last->alone_ns = 0;
	if (load == LOAD_ALONE && (!next || load_of(schemes, next) != LOAD_ALONE)) {
		last->begun_ns = 0;
		return;
	}
	if (alone_ns)
		rail_race_message(last, alone_ns);
	else if (load == LOAD_QUEUED && last == next && took_ns)
		rail_race_message(last, now_ns - took_ns);
	if (load == LOAD_ALONE || last != next)
		batch_break(last, load);
	else if (last->begun_ns && last->done >= batch_messages(last, &plan[load]))
		batch_end(last, &plan[load], now_ns);
	if (!last->settled && rail_race_is_dear(last))
		visit_cut(last, load);
}

/* Begin a batch, when enough messages are passed. */
static void batch_take(struct rail_scheme_cell *cell, const struct rail_race_plan *p, uint64_t now_ns)
{
	const uint8_t pass = cell->fresh ? p->first_pass : p->pass;

	if (cell->resting && rail_race_may_visit(cell))
		rail_race_visit(cell);
	if (!rail_race_takes_samples(cell))
		return;
	if (cell->passed < pass) {
		cell->passed++;
	} else if (!cell->begun_ns) {
		cell->begun_ns = now_ns;
		cell->batch++;
		cell->done = 0;
	}
}

/* The nearest class of messages alone whose schemes have been tried, among those that can have the same ones. */
static const struct rail_scheme_cell *tried_nearby(const struct rail_scheme_cell *row, int class)
{
	const uint8_t possible = row[class].possible;
	bool tried;

	for (int away = 0; away < SCHEME_CLASSES; away++)
		for (int c = class + away; ; c = class - away) {
			if (c >= 0 && c < SCHEME_CLASSES && row[c].possible == possible) {
				rail_scheme_best(&row[c], &tried);
				if (tried)
					return &row[c];
			}
			if (c <= class)
				break;
		}
	return NULL;
}

/*
 * A cell without a batch assumes what messages alone of its size, or of one nearby, have found: copies of
 * messages that queue are those of messages alone, and bursts of unlike or few messages never have a batch.
 */
static void assume_as_alone(struct rail_schemes *schemes, struct rail_scheme_cell *cell)
{
	const int at = (int)(cell - schemes->cell[0]), row = at / SCHEME_CLASSES;
	const struct rail_scheme_cell *alone = tried_nearby(schemes->cell[row - row % RAIL_LOADS], at % SCHEME_CLASSES);
	enum rail_scheme best;
	bool tried;

	if (!alone)
		return;
	best = rail_scheme_best(alone, &tried);
	if (best == cell->scheme || !(cell->possible >> best & 1))
		return;
	cell->scheme = (uint8_t)best;
	cell->begun_ns = 0;
}

enum rail_scheme rail_scheme_take(struct rail_schemes *schemes, struct rail_scheme_cell *cell,
				  uint64_t now_ns)
{
	const enum rail_load load = load_of(schemes, cell);

	last_end(schemes, cell, now_ns);
	if (cell->fresh)
		assume_as_alone(schemes, cell);
	schemes->last = cell->settled ? NULL : cell;
	schemes->under_way++;
	if (cell->settled)
		return cell->scheme;
	/* Another peer's message is under way: this one is not alone on the processor. */
	if (load == LOAD_ALONE && schemes->under_way > 1) {
		cell->begun_ns = 0;
		return cell->scheme;
	}
	cell->took_ns = now_ns;
	batch_take(cell, &plan[load], now_ns);
	return cell->scheme;
}

/* ---- Messages that cross -------------------------------------------------- */

void rail_scheme_obey(struct rail_schemes *schemes, uint64_t now_ns)
{
	last_end(schemes, NULL, now_ns);
	schemes->last = NULL;
}

/* Does a batch go on, or begin, with this message? */
static bool crossing_batch(struct rail_scheme_cell *cell, bool first, uint64_t now_ns)
{
	if (cell->begun_ns && cell->windows && cell->taken >= STREAM_FROM)
		cell->begun_ns = 0;
	if (cell->begun_ns && !cell->windows && cell->taken >= STREAM_BATCH) {
		crossing_end(cell, now_ns);
		return false;
	}
	cell->passed = (uint8_t)(cell->passed + (cell->passed < STREAM_BATCH));
	if (!cell->begun_ns && !first && (cell->unbroken < STREAM_FROM || cell->passed < STREAM_BATCH))
		return false;
	if (!cell->begun_ns) {
		cell->begun_ns = now_ns;
		cell->windows = first;
		cell->taken = cell->taken_pieces = 0;
	}
	return true;
}

static uint32_t pieces_of(const struct rail_schemes *schemes, const struct rail_scheme_cell *cell, uint64_t bytes)
{
	return load_of(schemes, cell) != LOAD_MIXED || bytes < PIECE_BYTES ? 1 : (uint32_t)(bytes / PIECE_BYTES);
}

bool rail_scheme_take_crossing(struct rail_schemes *schemes, struct rail_scheme_cell *cell, uint64_t bytes,
			       enum rail_scheme told, bool first, uint64_t now_ns)
{
	const uint32_t pieces = pieces_of(schemes, cell, bytes);

	first |= schemes->last != cell;
	if (first)
		last_end(schemes, cell, now_ns);
	schemes->last = cell->settled ? NULL : cell;
	schemes->window = NULL;
	if (cell->settled)
		return false;
	rail_race_count(cell, told, pieces);
	cell->unbroken = (uint8_t)(cell->unbroken + (cell->unbroken < STREAM_FROM));
	if (cell->resting && rail_race_may_visit(cell))
		rail_race_visit(cell);
	/* The other end is still at offers from before a change. */
	if (told != cell->scheme) {
		cell->begun_ns = cell->counted_ns = 0;
		cell->counted = cell->counted_pieces = 0;
		return false;
	}
	if (!rail_race_takes_samples(cell) || !crossing_batch(cell, first && !cell->under_way, now_ns))
		return false;
	cell->taken++;
	cell->taken_pieces += pieces;
	cell->under_way++;
	schemes->under_way++;
	schemes->window = cell;
	return true;
}

/* A message follows another one of the same window. */
static void mixed_step(struct rail_crossing *crossing, unsigned c, bool follows)
{
	if (follows && c != crossing->offered)
		crossing->mixed = MIXED_OFFERS;
	else if (crossing->mixed)
		crossing->mixed--;
	crossing->offered = (uint8_t)c;
}

enum rail_scheme rail_crossing_offer(const struct rail_schemes *schemes,
				     struct rail_crossing *crossing, uint64_t bytes, uint32_t offers)
{
	const unsigned c = rail_scheme_class(bytes);
	enum rail_scheme scheme;

	mixed_step(crossing, c, offers > 0);
	scheme = crossing->mixed ? schemes->cell[rail_load_at(crossing->place, LOAD_MIXED)][SCHEME_CLASSES - 1].scheme :
				   schemes->cell[rail_load_at(crossing->place, LOAD_CROSSING)][c].scheme;
	if (!offers)
		rail_crossing_answered(crossing, bytes, scheme);
	return scheme;
}

void rail_crossing_sent(struct rail_schemes *schemes, uint32_t offers, uint64_t now_ns)
{
	struct rail_scheme_cell *cell = schemes->window;

	cell->ended_ns = now_ns;
	if (offers)
		return;
	schemes->window = NULL;
	crossing_complete(schemes, cell);
}

void rail_scheme_done(struct rail_schemes *schemes, struct rail_scheme_cell *cell, uint8_t batch,
		      uint64_t now_ns)
{
	if (schemes->under_way)
		schemes->under_way--;
	if (cell->under_way)
		cell->under_way--;
	/* Messages from before the visit or the batch land during it. */
	cell->visit_done += (int8_t)(batch - cell->visit_batch) >= 0;
	if (batch != cell->batch)
		return;
	cell->done++;
	cell->ended_ns = now_ns;
	if (crosses(load_of(schemes, cell)))
		crossing_complete(schemes, cell);
	if (cell->settled || !cell->took_ns || load_of(schemes, cell) != LOAD_ALONE)
		return;
	cell->alone_ns = now_ns - cell->took_ns;
	cell->took_ns = 0;
}

static void cell_forget(struct rail_scheme_cell *cell)
{
	cell->begun_ns = cell->took_ns = cell->alone_ns = 0;
	cell->under_way = 0;
}

void rail_scheme_forget(struct rail_schemes *schemes)
{
	schemes->under_way = 0;
	schemes->window = NULL;
	for (int row = 0; row < RAIL_PLACES * RAIL_LOADS; row++)
		for (int c = 0; c < SCHEME_CLASSES; c++)
			cell_forget(&schemes->cell[row][c]);
}

uint32_t rail_scheme_cost(const struct rail_scheme_cell *cell, enum rail_scheme scheme)
{
	return cell->given ? cell->given_ns[scheme] : rail_race_cost(cell, scheme);
}

enum rail_scheme rail_scheme_best(const struct rail_scheme_cell *cell, bool *tried)
{
	*tried = cell->settled || rail_race_has_all(cell);
	if (cell->settled)
		return (enum rail_scheme)cell->scheme;
	return (enum rail_scheme)(*tried ? rail_race_best(cell) : cell->fresh ? cell->scheme : cell->assumed);
}

bool rail_scheme_give(struct rail_scheme_cell *cell, enum rail_scheme scheme,
		      const uint32_t cost_ns[RAIL_SCHEMES])
{
	if (!(cell->possible >> scheme & 1))
		return false;
	memcpy(cell->given_ns, cost_ns, sizeof(cell->given_ns));
	cell->scheme = (uint8_t)scheme;
	cell->settled = cell->given = true;
	return true;
}
