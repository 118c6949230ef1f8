/* scheme.c - the race of schemes in a cell: batches, rounds, the decision. */
#include <string.h>

#include "rail/message/scheme.h"

/*
 * A batch is measured as a whole: one message, or several that queue, whose copies overlap.  A short
 * batch of the latter shows what this end does and hides what the other end still has to do, so it
 * is long, or ends with the queue.  Messages before a batch are passed over, since the scheme before
 * has left the bytes in other caches; the first ones of all meet fresh pages as well.
 */
static const struct {
	uint8_t batch, least;		/* messages of a batch; of one that ends early */
	uint8_t first_pass, pass;	/* messages before a scheme's first batch, before others */
	uint8_t visit;			/* samples before the next scheme's turn */
	uint8_t samples;		/* of each scheme, for the decision */
} plan[RAIL_LOADS] = {
	[LOAD_ALONE] = { .batch = 1, .least = 1, .first_pass = 3, .pass = 1, .visit = 2,
			 .samples = SCHEME_SAMPLES },
	[LOAD_QUEUED] = { .batch = 64, .least = 8, .first_pass = 2, .pass = 2, .visit = 1,
			  .samples = 4 },
};

/* A scheme drops out early where its best sample is so much above the best of all, percent. */
enum {
	DROP_FEW = 2, DROP_FEW_PERCENT = 200,
	DROP_SOME = 4, DROP_SOME_PERCENT = 120,
};

enum {
	TURNS_CLASSES = 3,		/* turns up to 64 KiB; halves overlap as well above */
	HALVES_FROM = 1,		/* assumed from this class on, for messages alone */
	QUEUED_HALVES_FROM = TURNS_CLASSES,
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
	unsigned from = load == LOAD_ALONE ? HALVES_FROM : QUEUED_HALVES_FROM;

	return c < from ? SCHEME_READ : SCHEME_HALVES;
}

void rail_scheme_init(struct rail_schemes *schemes)
{
	memset(schemes, 0, sizeof(*schemes));
	for (int load = 0; load < RAIL_LOADS; load++)
		for (unsigned c = 0; c < SCHEME_CLASSES; c++) {
			struct rail_scheme_cell *cell = &schemes->cell[load][c];

			cell->assumed = cell->scheme = (uint8_t)assumed(load, c);
			cell->racing = 1u << SCHEME_READ | 1u << SCHEME_HALVES;
			if (load == LOAD_QUEUED && c < TURNS_CLASSES)
				cell->racing |= 1u << SCHEME_TURNS;
		}
}

static enum rail_load load_of(const struct rail_schemes *schemes, const struct rail_scheme_cell *cell)
{
	return cell >= schemes->cell[LOAD_QUEUED] ? LOAD_QUEUED : LOAD_ALONE;
}

/* ---- Costs --------------------------------------------------------------- */

static uint32_t best_sample(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->samples[scheme] ? cell->sample_ns[scheme][0] : UINT32_MAX;
}

/* Samples are kept in order. */
uint32_t rail_scheme_cost(const struct rail_scheme_cell *cell, enum rail_scheme scheme)
{
	unsigned n = cell->samples[scheme];

	return n ? cell->sample_ns[scheme][(n - 1) / 2] : 0;
}

static void sample_add(struct rail_scheme_cell *cell, uint64_t ns)
{
	uint32_t *sample = cell->sample_ns[cell->scheme];
	unsigned at = cell->samples[cell->scheme]++;

	if (ns >= UINT32_MAX)
		ns = UINT32_MAX - 1;
	for (; at && sample[at - 1] > ns; at--)
		sample[at] = sample[at - 1];
	sample[at] = (uint32_t)ns;
}

static bool is_racing(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->racing >> scheme & 1;
}

/* ---- The decision -------------------------------------------------------- */

static void settle(struct rail_scheme_cell *cell)
{
	int best = -1;

	for (int s = 0; s < RAIL_SCHEMES; s++)
		if (is_racing(cell, s) && (best < 0 || rail_scheme_cost(cell, s) <
						       rail_scheme_cost(cell, best)))
			best = s;
	if (is_racing(cell, cell->assumed) &&
	    (uint64_t)rail_scheme_cost(cell, cell->assumed) * 100 <=
	    (uint64_t)rail_scheme_cost(cell, best) * (100 + SCHEME_MARGIN))
		best = cell->assumed;
	cell->scheme = (uint8_t)best;
	cell->settled = true;
}

static void drop_slow(struct rail_scheme_cell *cell, unsigned samples)
{
	uint64_t percent = samples >= DROP_SOME ? DROP_SOME_PERCENT : DROP_FEW_PERCENT;
	uint32_t best = UINT32_MAX;

	if (samples < DROP_FEW)
		return;
	for (int s = 0; s < RAIL_SCHEMES; s++)
		if (is_racing(cell, s) && best_sample(cell, s) < best)
			best = best_sample(cell, s);
	for (int s = 0; s < RAIL_SCHEMES; s++)
		if (is_racing(cell, s) && (uint64_t)best_sample(cell, s) * 100 > best * percent)
			cell->racing &= (uint8_t)~(1u << s);
}

/* The racing scheme with the fewest samples, the assumed one first. */
static int next_scheme(const struct rail_scheme_cell *cell)
{
	int next = is_racing(cell, cell->assumed) ? cell->assumed : -1;

	for (int s = 0; s < RAIL_SCHEMES; s++)
		if (is_racing(cell, s) && (next < 0 || cell->samples[s] < cell->samples[next]))
			next = s;
	return next;
}

/* A scheme's visit is over: the next scheme, or the decision after a full round. */
static void visit_end(struct rail_scheme_cell *cell, uint8_t samples)
{
	int next = next_scheme(cell);

	if (cell->samples[next] == cell->samples[cell->scheme]) {
		drop_slow(cell, cell->samples[next]);
		if (cell->samples[next] >= samples || !(cell->racing & (cell->racing - 1))) {
			settle(cell);
			return;
		}
		next = next_scheme(cell);
	}
	cell->scheme = (uint8_t)next;
	cell->passed = 0;
}

/* ---- Batches ------------------------------------------------------------- */

static void batch_end(struct rail_scheme_cell *cell, enum rail_load load, uint64_t end_ns)
{
	sample_add(cell, (end_ns - cell->begun_ns) / cell->done);
	cell->begun_ns = 0;
	if (cell->samples[cell->scheme] % plan[load].visit == 0)
		visit_end(cell, plan[load].samples);
}

/* Another message than of `cell` comes: the end of its last message so far is the batch's. */
static void batch_break(struct rail_scheme_cell *cell, enum rail_load load)
{
	if (load == LOAD_QUEUED)
		cell->passed = 0;
	if (cell->begun_ns && cell->done >= plan[load].least)
		batch_end(cell, load, cell->ended_ns);
	cell->begun_ns = 0;
}

/*
 * What does the next message say of the one before?  A message that others follow at once was not
 * alone: its sender was busy with these.
 */
static void last_end(struct rail_schemes *schemes, const struct rail_scheme_cell *next,
		     uint64_t now_ns)
{
	struct rail_scheme_cell *last = schemes->last;
	enum rail_load load;

	if (!last || last->settled)
		return;
	load = load_of(schemes, last);
	if (load == LOAD_ALONE && load_of(schemes, next) == LOAD_QUEUED)
		last->begun_ns = 0;
	else if (load == LOAD_ALONE || last != next)
		batch_break(last, load);
	else if (last->begun_ns && last->done >= plan[load].batch)
		batch_end(last, load, now_ns);
}

enum rail_scheme rail_scheme_take(struct rail_schemes *schemes, struct rail_scheme_cell *cell,
				  uint64_t now_ns)
{
	const enum rail_load load = load_of(schemes, cell);
	uint8_t pass;

	last_end(schemes, cell, now_ns);
	schemes->last = cell->settled ? NULL : cell;
	if (cell->settled)
		return cell->scheme;
	pass = cell->samples[cell->scheme] ? plan[load].pass : plan[load].first_pass;
	if (cell->passed < pass) {
		cell->passed++;
	} else if (!cell->begun_ns) {
		cell->begun_ns = now_ns;
		cell->done = 0;
	}
	return cell->scheme;
}

void rail_scheme_done(struct rail_scheme_cell *cell, uint64_t now_ns)
{
	cell->done++;
	cell->ended_ns = now_ns;
}

void rail_scheme_forget(struct rail_schemes *schemes)
{
	for (int load = 0; load < RAIL_LOADS; load++)
		for (int c = 0; c < SCHEME_CLASSES; c++)
			schemes->cell[load][c].begun_ns = 0;
}
