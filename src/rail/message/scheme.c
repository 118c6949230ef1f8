/* scheme.c - the messages of a cell, by batches: samples of its race (scheme_race.h). */
#include <string.h>

#include "rail/message/scheme.h"
#include "rail/message/scheme_look.h"
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
	[LOAD_QUEUED] = { .batch = 64, .least = 8, .first_pass = 2, .pass = 2, .visit = 1,
			  .samples = 6, .most = 16 },
	/* Crossing messages of mixed sizes have this plan, too. */
	[LOAD_CROSSING] = { .glance = 2, .batch = 16, .visit = 1, .samples = 6, .most = 16 },
	/* A burst is a batch, if it is not short. */
	[LOAD_QUEUED_MIXED] = { .batch = 16, .least = 6, .first_pass = 2, .pass = 2, .visit = 1,
				.samples = 6, .most = 16 },
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

/* So many bursts in a row: the next message is the first one of another. */
enum { BURSTS = 2 };

/*
 * The other end's parts of a scheme before would be counted as those of the next one: a scheme is changed between
 * bursts, or in a long one.
 */
enum { LONG_BURST = 64 };

/* The first batches of a scheme whose messages queue. */
enum { GLANCES = 2, FIRST_VISITS = 3 };

enum {
	TURNS_CLASSES = 3,		/* turns up to 64 KiB; halves overlap as well above */
	RING_FROM = 2,			/* above 32 KiB, which is a slice; smaller ones go unoffered (eager_choice.h) */
	HALVES_FROM = 1,		/* assumed from this class on, for messages alone */
	QUEUED_HALVES_FROM = 1,
	CROSSING_HALVES_FROM = 5,	/* above 256 KiB; below, both processors are busy anyway */
};

/* A read needs neither an answer nor the other end's time: the safe one where messages are small. */
static enum rail_scheme assumed(enum rail_load load, unsigned c)
{
	static const unsigned from[RAIL_LOADS] = {
		HALVES_FROM, QUEUED_HALVES_FROM, CROSSING_HALVES_FROM, SCHEME_CLASSES, QUEUED_HALVES_FROM,
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
	rail_look_forget(cell);
	if (!(schemes >> cell->scheme & 1))
		return;
	cell->scheme = cell->assumed;
	cell->begun_ns = 0;
}

static bool queues(enum rail_load load)
{
	return load == LOAD_QUEUED || load == LOAD_QUEUED_MIXED;
}

/* What a cost is of: messages of mixed sizes are several pieces. */
static uint32_t pieces_of(enum rail_load load, uint64_t bytes)
{
	return !rail_load_is_mixed(load) || bytes < PIECE_BYTES ? 1 : (uint32_t)(bytes / PIECE_BYTES);
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
		rail_race_glance(cell, s, ns);
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
	const uint64_t ns = (end_ns - cell->begun_ns) / cell->done_pieces;

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
	rail_race_uncount(cell);
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

/* Short bursts are a batch together, without the pauses between them. */
static void burst_count(struct rail_scheme_cell *cell, const struct rail_race_plan *p)
{
	uint64_t ns;

	cell->counted += cell->done;
	cell->counted_pieces += cell->done_pieces;
	cell->counted_ns += cell->ended_ns - cell->begun_ns;
	if (cell->counted < p->least)
		return;
	ns = cell->counted_ns / cell->counted_pieces;
	rail_race_uncount(cell);
	cell->begun_ns = 0;
	batch_cost(cell, p, false, ns);
}

/* Another message than of `cell` comes: the end of its last message so far is the batch's. */
static void batch_break(struct rail_scheme_cell *cell, enum rail_load load)
{
	const struct rail_race_plan *p = &plan[load];

	if (cell->begun_ns && cell->done && queues(load))
		burst_count(cell, p);
	else if (cell->begun_ns && cell->done >= p->least)
		batch_end(cell, p, cell->ended_ns);
	cell->begun_ns = 0;
}

/* ---- Looks ----------------------------------------------------------------- */

/* Is the present scheme to be looked at?  A look that is closed may still wait for its last messages. */
static bool wants_look(const struct rail_scheme_cell *cell, enum rail_load load)
{
	return queues(load) && !cell->resting && cell->glances[cell->scheme] < GLANCES &&
	       (rail_look_is_open(cell) || !(cell->looking >> cell->scheme & 1));
}

/* The next message (now_ns: it is taken; 0: the burst is over) ends a look, if that has enough. */
static void look_end(struct rail_scheme_cell *cell, const struct rail_race_plan *p, bool early, uint64_t now_ns)
{
	if (now_ns && !early && !rail_look_is_full(cell))
		return;
	cell->fresh = false;
	rail_look_close(cell, now_ns);
	rail_race_visit_end(cell, p);
}

/* Messages that queue show their cost when the next one is taken, if this end does its part of each before. */
static bool shows_cost(const struct rail_scheme_cell *cell, enum rail_load load)
{
	return load == LOAD_ALONE || cell->scheme == SCHEME_READ || cell->scheme == SCHEME_HALVES;
}

/*
 * A visit ends before its time; its messages are a sample: alone their durations, queued the times that this end has
 * taken for them, which alone are too long.
 */
static void visit_cut(struct rail_scheme_cell *cell, enum rail_load load)
{
	rail_race_sample(cell, cell->visit_ns / cell->visit_pieces);
	rail_race_visit_end(cell, &plan[load]);
}

/* ---- Messages ------------------------------------------------------------ */

/*
 * The next message (NULL: one of no cell) tells of the one before: a message that others follow at once
 * was not alone: its sender was busy with these.
 */
static void last_end(struct rail_schemes *schemes, const struct rail_scheme_cell *next, bool first,
		     uint64_t now_ns)
{
	struct rail_scheme_cell *last = schemes->last;
	uint64_t took_ns, alone_ns;
	enum rail_load load;
	bool looks;

	if (!last || last->settled)
		return;
	load = rail_cell_load(schemes, last);
	if (rail_load_crosses(load)) {
		crossing_break(last);
		return;
	}
	took_ns = last->took_ns;
	alone_ns = last->alone_ns;
	last->took_ns = last->alone_ns = 0;
	if (load == LOAD_ALONE && (!next || rail_cell_load(schemes, next) != LOAD_ALONE)) {
		last->begun_ns = 0;
		rail_race_put_off(last);
		return;
	}
	first |= last != next;
	looks = rail_look_is_open(last);
	if (alone_ns)
		rail_race_message(last, alone_ns, 1);
	else if (queues(load) && !first && took_ns)
		rail_race_message(last, now_ns - took_ns, last->took_pieces);
	if (looks)
		look_end(last, &plan[load], shows_cost(last, load) && rail_race_is_dear(last), first ? 0 : now_ns);
	else if (load == LOAD_ALONE || first)
		batch_break(last, load);
	else if (last->begun_ns && last->done >= batch_messages(last, &plan[load]))
		batch_end(last, &plan[load], now_ns);
	if (!looks && !last->settled && shows_cost(last, load) && rail_race_is_dear(last))
		visit_cut(last, load);
}

/* Begin a batch, when enough messages are passed. */
static void batch_take(struct rail_scheme_cell *cell, enum rail_load load, bool first, uint64_t now_ns)
{
	const struct rail_race_plan *p = &plan[load];
	const uint8_t pass = cell->fresh ? p->first_pass : p->pass;

	cell->burst = first ? 0 : (uint8_t)(cell->burst + (cell->burst < LONG_BURST));
	if (cell->resting && (load == LOAD_ALONE || first || cell->burst == LONG_BURST) && rail_race_may_visit(cell))
		rail_race_visit(cell);
	if (!rail_race_takes_samples(cell))
		return;
	if (wants_look(cell, load) && (cell->passed >= pass || !cell->fresh)) {
		rail_look_take(cell, cell->took_pieces, now_ns);
	} else if (cell->passed < pass) {
		cell->passed++;
	} else if (!cell->begun_ns) {
		cell->begun_ns = now_ns;
		cell->batch++;
		cell->done = cell->done_pieces = 0;
	}
}

/* ---- One way ---------------------------------------------------------------- */

enum rail_scheme rail_scheme_take(struct rail_schemes *schemes, struct rail_scheme_cell *cell,
				  uint64_t bytes, bool first, uint64_t now_ns)
{
	const enum rail_load load = rail_cell_load(schemes, cell);

	first |= schemes->last != cell;
	last_end(schemes, cell, first, now_ns);
	rail_scheme_expect(schemes, cell, SCHEME_NONE_TOLD);
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
	cell->took_pieces = pieces_of(load, bytes);
	batch_take(cell, load, first, now_ns);
	return cell->scheme;
}

/* ---- Messages that cross -------------------------------------------------- */

void rail_scheme_obey(struct rail_schemes *schemes, uint64_t now_ns)
{
	last_end(schemes, NULL, true, now_ns);
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

bool rail_scheme_take_crossing(struct rail_schemes *schemes, struct rail_scheme_cell *cell, uint64_t bytes,
			       enum rail_scheme told, bool first, uint64_t now_ns)
{
	const uint32_t pieces = pieces_of(rail_cell_load(schemes, cell), bytes);

	first |= schemes->last != cell;
	if (first)
		last_end(schemes, cell, true, now_ns);
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
		cell->begun_ns = 0;
		rail_race_uncount(cell);
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

/* follows: another one of the same window. */
static void sizes_step(struct rail_sizes *sizes, unsigned c, bool follows)
{
	if (follows && c != sizes->class)
		sizes->mixed = MIXED_OFFERS;
	else if (sizes->mixed)
		sizes->mixed--;
	sizes->class = (uint8_t)c;
}

enum rail_load rail_one_way_load(struct rail_crossing *crossing, uint64_t bytes, bool queued)
{
	sizes_step(&crossing->received, rail_scheme_class(bytes), queued);
	if (!queued) {
		crossing->bursts = crossing->followed ? (uint8_t)(crossing->bursts + (crossing->bursts < BURSTS)) : 0;
		crossing->followed = false;
		if (crossing->bursts < BURSTS)
			return LOAD_ALONE;
	}
	crossing->followed |= queued;
	return crossing->received.mixed ? LOAD_QUEUED_MIXED : LOAD_QUEUED;
}

enum rail_scheme rail_crossing_offer(const struct rail_schemes *schemes,
				     struct rail_crossing *crossing, uint64_t bytes, uint32_t offers)
{
	unsigned c = rail_scheme_class(bytes);
	enum rail_scheme scheme;
	enum rail_load load;

	sizes_step(&crossing->offered, c, offers > 0);
	load = rail_crossing_load(crossing);
	c = rail_load_is_mixed(load) ? SCHEME_CLASSES - 1 : c;
	scheme = schemes->cell[rail_load_at(crossing->place, load)][c].scheme;
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

void rail_scheme_done(struct rail_schemes *schemes, struct rail_scheme_cell *cell, uint64_t bytes,
		      uint8_t batch, uint64_t now_ns)
{
	const enum rail_load load = rail_cell_load(schemes, cell);
	const uint32_t pieces = pieces_of(load, bytes);

	if (schemes->under_way)
		schemes->under_way--;
	if (cell->under_way)
		cell->under_way--;
	if (!cell->settled && cell->looking && rail_look_done(cell, batch, pieces, now_ns) && cell->resting)
		rail_race_rest(cell);
	/* Messages from before the visit or the batch land during it. */
	if (batch != cell->batch)
		return;
	cell->done++;
	cell->done_pieces += pieces;
	cell->ended_ns = now_ns;
	if (rail_load_crosses(load))
		crossing_complete(schemes, cell);
	if (cell->settled || !cell->took_ns || load != LOAD_ALONE)
		return;
	cell->alone_ns = now_ns - cell->took_ns;
	cell->took_ns = 0;
}

static void cell_forget(struct rail_scheme_cell *cell)
{
	cell->begun_ns = cell->took_ns = cell->alone_ns = 0;
	cell->under_way = 0;
	rail_look_forget(cell);
}

void rail_scheme_forget(struct rail_schemes *schemes)
{
	schemes->under_way = 0;
	schemes->window = NULL;
	for (int row = 0; row < RAIL_PLACES * RAIL_LOADS; row++)
		for (int c = 0; c < SCHEME_CLASSES; c++)
			cell_forget(&schemes->cell[row][c]);
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
