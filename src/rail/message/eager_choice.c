/* eager_choice.c - see eager_choice.h. */
#include <string.h>

#include "rail/message/eager_choice.h"

static const struct {
	uint16_t seen;			/* messages before learning */
	uint8_t change;			/* messages after a change of schemes, which leaves other caches */
	uint8_t visit;			/* samples before the other scheme's turn */
	uint8_t samples;		/* per scheme, for the decision */
} plan[EAGER_LOADS] = {
	[EAGER_ALONE] = { .seen = 72, .change = 1, .visit = 3, .samples = EAGER_SAMPLES },
	[EAGER_IN_ROW] = { .seen = 1024, .change = 64, .visit = 3, .samples = EAGER_SAMPLES },
};

enum {
	SENT_CLASSES = 2,		/* at first: to 32 KiB; new memory need not be registered */
	ALONE_SENT = 32,		/* so many alone; the next ones are offered before learning */
	CROSSED_SENT = 128,		/* messages of a load, after which those that cross are offered */
	ROW_LEAST = 8, ROW_LONG = 256,
	BATCH_LONG = 128,		/* messages of a sample in a long row, perhaps an endless one */
	LOST_MOST = 8,			/* samples in sequence after which eager messages are not measured */
	LOST_OFFERS_MOST = 64,		/* ... offers, such as of rows to several peers that alternate */
	LATE_MOST = 256,		/* messages after which the end of a sample is lost */
	/* After so many samples the best one decides if it is so much above the other's, percent. */
	DROP_SAMPLES = 6, DROP_PERCENT = 150,
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
static void compare(struct rail_eager_cell *cell, unsigned samples)
{
	const unsigned n = cell->samples[EAGER_OFFERED];
	const uint32_t offered = cell->sample_ns[EAGER_OFFERED][0];
	const uint32_t sent = cell->sample_ns[EAGER_SENT][0];

	if (n >= samples)
		settle(cell, is_faster(rail_eager_cost(cell, EAGER_SENT),
				       rail_eager_cost(cell, EAGER_OFFERED), 100 + EAGER_MARGIN) ?
			     EAGER_SENT : EAGER_OFFERED);
	else if (n >= DROP_SAMPLES && is_faster(offered, sent, DROP_PERCENT))
		settle(cell, EAGER_OFFERED);
	else if (n >= DROP_SAMPLES && is_faster(sent, offered, DROP_PERCENT))
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
		compare(cell, plan[load].samples);
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

/* Two that alternate rows seem to cross as well, until there are many. */
bool rail_eager_take_crossed(struct rail_eager_cell *cell)
{
	if (cell->settled || cell->seen >= CROSSED_SENT)
		return false;
	cell->seen++;
	return cell->scheme == EAGER_SENT;
}
