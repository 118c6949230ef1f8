/* eager_choice.c - see eager_choice.h. */
#include <string.h>

#include "rail/message/eager_choice.h"

enum { DROPS = 2 };

#define ROW_PLAN { .seen = 1024, .look = 64, .change = 64, .visit = 3, .samples = EAGER_SAMPLES, \
		   .drop = { { 3, 200 }, { 6, 150 } } }
/* A sample is a mean of many messages. */
#define CROSSING_PLAN { .seen = 256, .change = 64, .visit = 1, .samples = 6, .drop = { { 3, 130 }, { 3, 130 } } }

static const struct {
	uint16_t seen;			/* messages before learning */
	uint16_t look;			/* messages before the looks; 0: there are none */
	uint8_t change;			/* messages after a change of schemes, which leaves other caches */
	uint8_t visit;			/* samples before the other scheme's turn */
	uint8_t samples;		/* per scheme, for the decision */
	/* After so many samples the best one decides if it is so much below the other's, percent. */
	struct {
		uint8_t samples, percent;
	} drop[DROPS];
} plan[EAGER_LOADS] = {
	[EAGER_ALONE] = { .seen = 72, .change = 1, .visit = 3, .samples = EAGER_SAMPLES,
			  .drop = { { 6, 150 }, { 6, 150 } } },
	[EAGER_IN_ROW] = ROW_PLAN,
	[EAGER_CROSSING] = CROSSING_PLAN,
	[EAGER_ROW_MIXED] = ROW_PLAN,
	[EAGER_CROSSING_MIXED] = CROSSING_PLAN,
};

enum {
	SENT_CLASSES = 2,		/* at first: to 32 KiB; new memory need not be registered */
	ALONE_SENT = 32,		/* so many alone; the next ones are offered before learning */
	CROSSED_SENT = 128,		/* so many that cross; the next ones are offered before learning */
	CROSSED_BATCH = 128,		/* messages of a sample of crossing ones, at least */
	CROSSED_STREAM = 1024,		/* so many without the begin of a row: samples begin and end anywhere */
	ROW_LEAST = 8, ROW_LONG = 256,
	BATCH_LONG = 128,		/* messages of a sample in a long row, perhaps an endless one */
	LOOK_CHANGE = 8,		/* messages after a change of schemes, between looks */
	LOOK_CLEAR_PERCENT = 200,
	LOOK_ROW = 128, LOOK_BATCH = 32,	/* a look: in rows that go on after so many; its messages */
	LOST_MOST = 8,			/* samples in sequence after which eager messages are not measured */
	LOST_OFFERS_MOST = 64,		/* ... offers, such as of rows to several peers that alternate */
	LATE_MOST = 256,		/* messages after which the end of a sample is lost */
	LATE_ALONE = 8,			/* ... of messages alone */
};

void rail_eager_choice_init(struct rail_eager_choice *choice)
{
	memset(choice, 0, sizeof(*choice));
	for (int row = 0; row < RAIL_PLACES * EAGER_LOADS; row++)
		for (int c = 0; c < SENT_CLASSES; c++)
			choice->cell[row][c].scheme = EAGER_SENT;
}

static int load_of(const struct rail_eager_choice *choice, const struct rail_eager_cell *cell)
{
	return (int)((cell - choice->cell[0]) / EAGER_CLASSES % EAGER_LOADS);
}

/* ---- Costs --------------------------------------------------------------- */

uint32_t rail_eager_cost(const struct rail_eager_cell *cell, int scheme)
{
	const unsigned n = cell->samples[scheme];

	if (cell->given)
		return cell->given_ns[scheme];
	return n ? cell->sample_ns[scheme][(n - 1) / 4] : cell->look_ns[scheme];
}

static void sample_add(struct rail_eager_cell *cell, uint64_t ns)
{
	uint32_t *sample = cell->sample_ns[cell->scheme];
	unsigned at = cell->samples[cell->scheme]++;

	if (ns >= UINT32_MAX)
		ns = UINT32_MAX - 1;
	for (; at && sample[at - 1] > ns; at--)
		sample[at] = sample[at - 1];
	sample[at] = (uint32_t)ns;
}

/* ---- The decision -------------------------------------------------------- */

static bool is_faster(uint32_t cost, uint32_t other, unsigned percent)
{
	return (uint64_t)cost * percent < (uint64_t)other * 100;
}

static void settle(struct rail_eager_cell *cell, int scheme)
{
	cell->scheme = (uint8_t)scheme;
	cell->settled = true;
}

void rail_eager_give(struct rail_eager_cell *cell, unsigned scheme, const uint32_t cost_ns[EAGER_SCHEMES])
{
	memcpy(cell->given_ns, cost_ns, sizeof(cell->given_ns));
	cell->given = true;
	settle(cell, (int)scheme);
}

/* The samples of both are as many. */
static void compare(struct rail_eager_cell *cell, int load)
{
	const unsigned n = cell->samples[EAGER_OFFERED];
	const uint32_t offered = cell->sample_ns[EAGER_OFFERED][0];
	const uint32_t sent = cell->sample_ns[EAGER_SENT][0];

	if (n >= plan[load].samples) {
		settle(cell, is_faster(rail_eager_cost(cell, EAGER_SENT),
				       rail_eager_cost(cell, EAGER_OFFERED), 100 + EAGER_MARGIN) ?
			     EAGER_SENT : EAGER_OFFERED);
		return;
	}
	for (int i = 0; i < DROPS && n >= plan[load].drop[i].samples; i++) {
		if (is_faster(offered, sent, plan[load].drop[i].percent))
			settle(cell, EAGER_OFFERED);
		if (is_faster(sent, offered, plan[load].drop[i].percent))
			settle(cell, EAGER_SENT);
	}
}

/* ---- Looks ---------------------------------------------------------------- */

static bool is_looking(const struct rail_eager_cell *cell, int load)
{
	return !cell->settled && plan[load].look && cell->looks < EAGER_LOOKS && cell->seen >= plan[load].look;
}

/* The scheme until learning begins: that of the last look, if it is clearly ahead. */
static void looks_end(struct rail_eager_cell *cell)
{
	const uint32_t mine = cell->look_ns[cell->scheme], other = cell->look_ns[!cell->scheme];

	cell->looks = EAGER_LOOKS;
	if (!mine || !other || !is_faster(mine, other, 100 + EAGER_MARGIN))
		cell->scheme = (uint8_t)!cell->scheme;
}

/* Is one scheme so slow that another look at it costs more than it tells? */
static bool is_looked_over(const struct rail_eager_cell *cell)
{
	const uint32_t offered = cell->look_ns[EAGER_OFFERED], sent = cell->look_ns[EAGER_SENT];

	return cell->looks == EAGER_LOOKS || (cell->looks % 2 == 0 && offered && sent &&
					      (is_faster(offered, sent, LOOK_CLEAR_PERCENT) ||
					       is_faster(sent, offered, LOOK_CLEAR_PERCENT)));
}

/*
 * A look is over, or lost: 0.  The better one of a scheme counts, since disturbances only add time.  The first
 * look is at the scheme that was assumed, the second one at the other.
 */
static void look_end(struct rail_eager_cell *cell, uint32_t ns)
{
	uint32_t *look = &cell->look_ns[cell->scheme];

	if (ns && (!*look || ns < *look))
		*look = ns;
	cell->passed = 0;
	cell->looks++;
	if (is_looked_over(cell))
		looks_end(cell);
	else
		cell->scheme = (uint8_t)!cell->scheme;
}

/* ---- Samples -------------------------------------------------------------- */

/* Samples do not end any more: what is known decides, or offers stay. */
static void give_up(struct rail_eager_cell *cell)
{
	const uint32_t offered = rail_eager_cost(cell, EAGER_OFFERED), sent = rail_eager_cost(cell, EAGER_SENT);

	settle(cell, sent && is_faster(sent, offered, 100 + EAGER_MARGIN) ? EAGER_SENT : EAGER_OFFERED);
}

void rail_eager_forget(struct rail_eager_choice *choice)
{
	struct rail_eager_cell *cell = choice->measured;

	choice->measured = NULL;
	if (!cell)
		return;
	if (is_looking(cell, load_of(choice, cell)))
		look_end(cell, 0);
	else if (!cell->settled && ++cell->lost == (cell->scheme == EAGER_SENT ? LOST_MOST : LOST_OFFERS_MOST))
		give_up(cell);
}

void rail_eager_ended(struct rail_eager_choice *choice, uint64_t now_ns)
{
	struct rail_eager_cell *cell = choice->measured;
	uint64_t ns;
	int load;

	if (!cell || choice->sent < choice->batch)
		return;
	load = load_of(choice, cell);
	ns = (now_ns - choice->begun_ns) / choice->batch;
	choice->measured = NULL;
	cell->lost = 0;
	if (is_looking(cell, load)) {
		look_end(cell, ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX);
		return;
	}
	sample_add(cell, ns);
	if (cell->samples[cell->scheme] % plan[load].visit)
		return;
	cell->scheme = (uint8_t)!cell->scheme;
	cell->passed = 0;
	if (cell->samples[EAGER_SENT] == cell->samples[EAGER_OFFERED])
		compare(cell, load);
}

/*
 * Messages of a row's sample that begins now; 0: none does.  A whole row counts the time in which the
 * receiver empties the ring; of a long one that is little.
 */
static unsigned row_batch(const struct rail_eager_cell *cell)
{
	const uint32_t row = cell->row_before + 1;

	if (cell->row > cell->row_before)
		return cell->row >= ROW_LONG ? BATCH_LONG : 0;
	if (row > ROW_LONG)
		return row - cell->row > BATCH_LONG ? BATCH_LONG : 0;
	return cell->row || row < ROW_LEAST ? 0 : row;
}

/* The same of a look, which is short: messages that queue before it would be most of its time. */
static unsigned look_batch(const struct rail_eager_cell *cell)
{
	const uint32_t row = cell->row_before + 1;

	if (cell->row)
		return cell->row >= row && cell->row >= LOOK_ROW ? LOOK_BATCH : 0;
	return row < ROW_LEAST ? 0 : row < LOOK_BATCH ? row : LOOK_BATCH;
}

/* The same of messages alone: a program sends one, or a few to a peer, and then waits. */
static unsigned alone_batch(const struct rail_eager_cell *cell)
{
	return cell->row ? 0 : cell->row_before + 1;
}

/* Messages of the sample that begins now; 0: none does. */
static unsigned batch_of(struct rail_eager_cell *cell, int load)
{
	const bool looks = is_looking(cell, load);

	if (cell->passed < (looks ? LOOK_CHANGE : plan[load].change)) {
		cell->passed++;
		return 0;
	}
	return load == EAGER_ALONE ? alone_batch(cell) : looks ? look_batch(cell) : row_batch(cell);
}

/*
 * May the sample under way go on after this message?  One alone goes on if the peer has sent meanwhile: its
 * end may come after what it was exchanged for.
 */
static bool is_sound(struct rail_eager_choice *choice, const struct rail_eager_cell *cell,
		     bool new_row)
{
	const int load = load_of(choice, cell);

	if (choice->measured != cell)
		return false;
	if (choice->sent < choice->batch)
		return !new_row;
	if (load == EAGER_ALONE)
		return cell->row < choice->batch && ++choice->late < LATE_ALONE;
	return ++choice->late < LATE_MOST;
}

bool rail_eager_waits(struct rail_eager_choice *choice)
{
	const struct rail_eager_cell *cell = choice->measured;

	if (cell && choice->sent == choice->batch && load_of(choice, cell) == EAGER_ALONE &&
	    ++choice->late < LATE_ALONE)
		return true;
	rail_eager_forget(choice);
	return false;
}

static bool sample_begin(struct rail_eager_choice *choice, struct rail_eager_cell *cell,
			 uint64_t now_ns)
{
	const int load = load_of(choice, cell);

	if (cell->settled)
		return false;
	if (cell->seen < plan[load].seen) {
		if (++cell->seen == ALONE_SENT && load == EAGER_ALONE)
			cell->scheme = EAGER_OFFERED;
		if (!is_looking(cell, load))
			return false;
	}
	choice->batch = (uint16_t)batch_of(cell, load);
	if (!choice->batch)
		return false;
	choice->measured = cell;
	choice->begun_ns = now_ns;
	choice->sent = choice->late = 0;
	return true;
}

struct rail_eager_step rail_eager_take(struct rail_eager_choice *choice,
				       struct rail_eager_cell *cell, uint32_t row, uint64_t now_ns)
{
	struct rail_eager_step step = { .eager = cell->scheme == EAGER_SENT };
	const bool new_row = row <= cell->row;

	if (new_row)
		cell->row_before = cell->row;
	cell->row = row;
	if (choice->measured && !is_sound(choice, cell, new_row))
		rail_eager_forget(choice);
	if ((choice->measured && choice->sent < choice->batch) ||
	    (!choice->measured && sample_begin(choice, cell, now_ns)))
		step.last = ++choice->sent == choice->batch;
	return step;
}

/* ---- Messages that cross -------------------------------------------------- */

void rail_eager_uncross(struct rail_eager_choice *choice)
{
	struct rail_eager_cell *cell = choice->crossing;

	choice->crossing = NULL;
	if (cell && ++cell->lost == LOST_OFFERS_MOST)
		give_up(cell);
}

/* The sample ends, and the other scheme's turn begins. */
static void crossing_ended(struct rail_eager_choice *choice, struct rail_eager_cell *cell, uint64_t now_ns)
{
	choice->crossing = NULL;
	cell->lost = 0;
	sample_add(cell, (now_ns - cell->begun_ns) / cell->crossed);
	cell->scheme = (uint8_t)!cell->scheme;
	cell->passed = 0;
	if (cell->samples[EAGER_SENT] == cell->samples[EAGER_OFFERED])
		compare(cell, load_of(choice, cell));
}

/* Is it before learning?  Two that alternate rows seem to cross as well, until there are many. */
static bool is_early(struct rail_eager_cell *cell)
{
	if (cell->seen >= plan[EAGER_CROSSING].seen)
		return false;
	if (cell->seen++ == CROSSED_SENT)
		cell->scheme = EAGER_OFFERED;
	return true;
}

/* Messages since the change of schemes, or of the sample: do they end where a row begins? */
static bool is_edge(const struct rail_eager_cell *cell, uint32_t messages, uint32_t least)
{
	return messages >= least && (!cell->unbroken || cell->unbroken == CROSSED_STREAM);
}

bool rail_eager_take_crossing(struct rail_eager_choice *choice, struct rail_eager_cell *cell, uint32_t row,
			      uint64_t now_ns)
{
	if (choice->crossing && choice->crossing != cell)
		rail_eager_uncross(choice);
	if (cell->settled || is_early(cell))
		return cell->scheme == EAGER_SENT;
	cell->unbroken = (uint16_t)(!row ? 0 : cell->unbroken + (cell->unbroken < CROSSED_STREAM));
	if (choice->crossing && is_edge(cell, cell->crossed, CROSSED_BATCH))
		crossing_ended(choice, cell, now_ns);
	if (!choice->crossing && !cell->settled && is_edge(cell, cell->passed, plan[EAGER_CROSSING].change)) {
		choice->crossing = cell;
		cell->begun_ns = now_ns;
		cell->crossed = 0;
	}
	cell->passed += !choice->crossing;
	cell->crossed++;
	return cell->scheme == EAGER_SENT;
}

bool rail_eager_obey(struct rail_row *row, uint64_t bytes, bool *eager)
{
	const unsigned c = rail_eager_class(bytes);

	if (!row->obeys[c])
		return false;
	row->obeys[c]--;
	*eager = row->told[c] == EAGER_SENT;
	return true;
}
