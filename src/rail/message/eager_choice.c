/* eager_choice.c - see eager_choice.h. */
#include <string.h>

#include "rail/message/eager_choice.h"

static const struct {
	uint16_t seen;			/* messages before learning */
	uint8_t change;			/* messages after a change of schemes, which leaves other caches */
	uint8_t visit;			/* samples before the other scheme's turn */
	uint8_t samples;		/* per scheme, for the decision */
	/* After so many samples the best one decides if it is so much below the other's, percent. */
	uint8_t drop, drop_percent;
} plan[EAGER_LOADS] = {
	[EAGER_ALONE] = { .seen = 72, .change = 1, .visit = 3, .samples = EAGER_SAMPLES,
			  .drop = 6, .drop_percent = 150 },
	[EAGER_IN_ROW] = { .seen = 1024, .change = 64, .visit = 3, .samples = EAGER_SAMPLES,
			   .drop = 6, .drop_percent = 150 },
	/* Samples of the last are means of many messages. */
	[EAGER_CROSSING] = { .seen = 256, .change = 64, .visit = 1, .samples = 6,
			     .drop = 3, .drop_percent = 130 },
	[EAGER_ROW_MIXED] = { .seen = 1024, .change = 64, .visit = 3, .samples = EAGER_SAMPLES,
			      .drop = 6, .drop_percent = 150 },
	[EAGER_CROSSING_MIXED] = { .seen = 256, .change = 64, .visit = 1, .samples = 6,
				   .drop = 3, .drop_percent = 130 },
};

enum {
	SENT_CLASSES = 2,		/* at first: to 32 KiB; new memory need not be registered */
	ALONE_SENT = 32,		/* so many alone; the next ones are offered before learning */
	CROSSED_SENT = 128,		/* so many that cross; the next ones are offered before learning */
	CROSSED_BATCH = 128,		/* messages of a sample of crossing ones, at least */
	CROSSED_STREAM = 1024,		/* ... without the begin of a row */
	ROW_LEAST = 8, ROW_LONG = 256,
	BATCH_LONG = 128,		/* messages of a sample in a long row, perhaps an endless one */
	LOST_MOST = 8,			/* samples in sequence after which eager messages are not measured */
	LOST_OFFERS_MOST = 64,		/* ... offers, such as of rows to several peers that alternate */
	LATE_MOST = 256,		/* messages after which the end of a sample is lost */
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
	return n ? cell->sample_ns[scheme][(n - 1) / 4] : 0;
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
	const unsigned samples = plan[load].samples, drop = plan[load].drop, percent = plan[load].drop_percent;
	const unsigned n = cell->samples[EAGER_OFFERED];
	const uint32_t offered = cell->sample_ns[EAGER_OFFERED][0];
	const uint32_t sent = cell->sample_ns[EAGER_SENT][0];

	if (n >= samples)
		settle(cell, is_faster(rail_eager_cost(cell, EAGER_SENT),
				       rail_eager_cost(cell, EAGER_OFFERED), 100 + EAGER_MARGIN) ?
			     EAGER_SENT : EAGER_OFFERED);
	else if (n >= drop && is_faster(offered, sent, percent))
		settle(cell, EAGER_OFFERED);
	else if (n >= drop && is_faster(sent, offered, percent))
		settle(cell, EAGER_SENT);
}

/* ---- Samples -------------------------------------------------------------- */

/* A cell whose samples never end stays with offers. */
void rail_eager_forget(struct rail_eager_choice *choice)
{
	struct rail_eager_cell *cell = choice->measured;

	choice->measured = NULL;
	if (cell && !cell->settled &&
	    ++cell->lost == (cell->scheme == EAGER_SENT ? LOST_MOST : LOST_OFFERS_MOST))
		settle(cell, EAGER_OFFERED);
}

void rail_eager_ended(struct rail_eager_choice *choice, uint64_t now_ns)
{
	struct rail_eager_cell *cell = choice->measured;
	int load;

	if (!cell || choice->sent < choice->batch)
		return;
	load = load_of(choice, cell);
	choice->measured = NULL;
	cell->lost = 0;
	sample_add(cell, (now_ns - choice->begun_ns) / choice->batch);
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

/* Messages of the sample that begins now; 0: none does. */
static unsigned batch_of(struct rail_eager_cell *cell, int load)
{
	if (cell->passed < plan[load].change) {
		cell->passed++;
		return 0;
	}
	return load == EAGER_ALONE ? 1 : row_batch(cell);
}

/* May the sample under way go on after this message? */
static bool is_sound(struct rail_eager_choice *choice, const struct rail_eager_cell *cell,
		     bool new_row)
{
	const int load = load_of(choice, cell);

	if (choice->measured != cell || load == EAGER_ALONE)
		return false;
	return choice->sent < choice->batch ? !new_row : ++choice->late < LATE_MOST;
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
		settle(cell, EAGER_OFFERED);
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
static bool is_edge(uint32_t messages, uint32_t least, uint32_t row)
{
	return messages >= least && (!row || messages >= least + CROSSED_STREAM);
}

bool rail_eager_take_crossing(struct rail_eager_choice *choice, struct rail_eager_cell *cell, uint32_t row,
			      uint64_t now_ns)
{
	if (choice->crossing && choice->crossing != cell)
		rail_eager_uncross(choice);
	if (cell->settled || is_early(cell))
		return cell->scheme == EAGER_SENT;
	if (choice->crossing && is_edge(cell->crossed, CROSSED_BATCH, row))
		crossing_ended(choice, cell, now_ns);
	if (!choice->crossing && !cell->settled && is_edge(cell->passed, plan[EAGER_CROSSING].change, row)) {
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
