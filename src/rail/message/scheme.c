/* scheme.c - the race of schemes in a cell: batches, visits, debt, the decision. */
#include <string.h>

#include "rail/message/scheme.h"

/*
 * A batch is measured as a whole: one message, or several that queue, whose copies overlap.  A short
 * batch of the latter shows what this end does and hides what the other end still has to do, so it
 * is long, or ends with the queue.  Messages before a batch are passed over, since the scheme before
 * has left the bytes in other caches; the first ones of all meet fresh pages as well.
 */
static const struct plan {
	uint8_t glance;			/* messages of a scheme's first batches, no samples; 0: none */
	uint8_t batch, least;		/* messages of a batch; of one that ends early */
	uint8_t first_pass, pass;	/* messages before a scheme's first batch, before others */
	uint8_t visit;			/* samples before the next scheme's turn */
	uint8_t samples, most;		/* per scheme, for a clear decision; for any */
} plan[RAIL_LOADS] = {
	[LOAD_ALONE] = { .batch = 1, .least = 1, .first_pass = 3, .pass = 1, .visit = 2,
			 .samples = 12, .most = SCHEME_SAMPLES },
	[LOAD_QUEUED] = { .glance = 2, .batch = 64, .least = 8, .first_pass = 2, .pass = 2, .visit = 1,
			  .samples = 6, .most = 16 },
};

/* A scheme drops out early where its best sample is so much above the best scheme's cost, percent. */
enum {
	DROP_FEW = 3, DROP_FEW_PERCENT = 200,
	DROP_SOME = 6, DROP_SOME_PERCENT = 120,
};

/* Debt: messages as many as are taken for granted at first, and part of all messages' time. */
enum {
	DEBT_MESSAGES = 64,
	DEBT_PERCENT = 4,
	EXTRA_MOST = 3,			/* per message, in costs of the best scheme: an outlier */
	VISIT_EXTRA = 4,		/* per visit, the same */
};
#define DEBT_MOST_NS ((uint64_t)2000000)

/* The first batches of a scheme whose messages queue. */
enum { GLANCES = 2, FEW_SAMPLES = 4, MANY_SAMPLES = 8 };

enum {
	TURNS_CLASSES = 3,		/* turns up to 64 KiB; halves overlap as well above */
	HALVES_FROM = 1,		/* assumed from this class on, for messages alone */
	QUEUED_HALVES_FROM = TURNS_CLASSES,
};

#define for_each_racing(s, cell) \
	for (int s = 0; s < RAIL_SCHEMES; s++) if (is_racing(cell, s))

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
			cell->possible = 1u << SCHEME_READ | 1u << SCHEME_HALVES;
			if (load == LOAD_QUEUED && c < TURNS_CLASSES)
				cell->possible |= 1u << SCHEME_TURNS;
			cell->racing = cell->possible;
		}
}

static enum rail_load load_of(const struct rail_schemes *schemes, const struct rail_scheme_cell *cell)
{
	return cell >= schemes->cell[LOAD_QUEUED] ? LOAD_QUEUED : LOAD_ALONE;
}

static bool is_racing(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->racing >> scheme & 1;
}

/* ---- Costs --------------------------------------------------------------- */

/* Samples are kept in order. */
static uint32_t quartile(const struct rail_scheme_cell *cell, int scheme, unsigned fourths)
{
	unsigned n = cell->samples[scheme];

	return n ? cell->sample_ns[scheme][(n - 1) * fourths / 4] : 0;
}

/*
 * A mean of many varies less than any one; most disturbances add time, so it leaves more above out.  Of
 * few samples the lower median.
 */
static uint32_t typical(const struct rail_scheme_cell *cell, int scheme)
{
	const unsigned n = cell->samples[scheme], first = n / 8, end = n * 5 / 8;
	uint64_t sum = 0;

	if (n < MANY_SAMPLES)
		return quartile(cell, scheme, 2);
	for (unsigned i = first; i < end; i++)
		sum += cell->sample_ns[scheme][i];
	return (uint32_t)(sum / (end - first));
}

uint32_t rail_scheme_cost(const struct rail_scheme_cell *cell, enum rail_scheme scheme)
{
	return cell->given ? cell->given_ns[scheme] : typical(cell, scheme);
}

static uint32_t best_sample(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->samples[scheme] ? cell->sample_ns[scheme][0] : UINT32_MAX;
}

static void sample_add(struct rail_scheme_cell *cell, uint64_t ns)
{
	uint32_t *sample = cell->sample_ns[cell->scheme];
	unsigned at = cell->samples[cell->scheme];

	if (at == SCHEME_SAMPLES)
		return;
	cell->samples[cell->scheme]++;
	if (ns >= UINT32_MAX)
		ns = UINT32_MAX - 1;
	for (; at && sample[at - 1] > ns; at--)
		sample[at] = sample[at - 1];
	sample[at] = (uint32_t)ns;
}

/* The best one counts, since disturbances only add time. */
static void glance_add(struct rail_scheme_cell *cell, uint64_t ns)
{
	uint32_t *glance = &cell->glance_ns[cell->scheme];

	if (!ns)
		ns = 1;
	if (!cell->glances[cell->scheme]++ || ns < *glance)
		*glance = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/* The cost as far as it is known; 0: it is not.  A few samples may all be disturbed. */
static uint32_t known_cost(const struct rail_scheme_cell *cell, int scheme)
{
	const uint32_t ns = typical(cell, scheme), glance = cell->glance_ns[scheme];

	return cell->samples[scheme] && (cell->samples[scheme] >= FEW_SAMPLES || !glance || ns < glance) ?
		ns : glance;
}

/* The quickest scheme so far, the assumed one in doubt. */
static int leader(const struct rail_scheme_cell *cell)
{
	int best = is_racing(cell, cell->assumed) ? cell->assumed : -1;

	for_each_racing(s, cell) {
		uint32_t cost = known_cost(cell, s);

		if (best < 0 || (cost && cost < known_cost(cell, best)))
			best = s;
	}
	return best;
}

/* ---- Debt ---------------------------------------------------------------- */

/* A message's time beyond the best scheme's cost; of an outlier a part. */
static uint64_t extra_ns(uint64_t ns, uint64_t least)
{
	const uint64_t extra = ns > least ? ns - least : 0;

	return extra < EXTRA_MOST * least ? extra : EXTRA_MOST * least;
}

/* A message of the present scheme has taken so long. */
static void message_add(struct rail_scheme_cell *cell, uint64_t ns)
{
	const int best = leader(cell);

	cell->messages[cell->scheme]++;
	cell->visit_messages++;
	cell->visit_ns += ns;
	if (best != cell->scheme)
		cell->visit_extra_ns += extra_ns(ns, known_cost(cell, best));
}

/* The time that all schemes have taken beyond the best one, by what is known of their costs. */
static uint64_t debt(const struct rail_scheme_cell *cell)
{
	const uint64_t least = known_cost(cell, leader(cell));
	uint64_t sum = 0;

	for (int s = 0; s < RAIL_SCHEMES; s++)
		sum += cell->messages[s] * extra_ns(known_cost(cell, s), least);
	return sum;
}

static bool may_visit(const struct rail_scheme_cell *cell)
{
	uint64_t messages = 0;

	for (int s = 0; s < RAIL_SCHEMES; s++)
		messages += cell->messages[s];
	if (messages < DEBT_MESSAGES)
		messages = DEBT_MESSAGES;
	return debt(cell) * 100 <= DEBT_PERCENT * messages * known_cost(cell, leader(cell));
}

static bool is_dear(const struct rail_scheme_cell *cell)
{
	return cell->visit_messages > 1 &&
	       cell->visit_extra_ns > VISIT_EXTRA * (uint64_t)known_cost(cell, leader(cell));
}

/* ---- The decision -------------------------------------------------------- */

static void settle(struct rail_scheme_cell *cell)
{
	const int best = leader(cell);
	const uint64_t least = known_cost(cell, best);
	const bool stays = is_racing(cell, cell->assumed) &&
			   known_cost(cell, cell->assumed) <= least + least / SCHEME_MARGIN;

	cell->scheme = stays ? cell->assumed : (uint8_t)best;
	cell->settled = true;
}

static void drop_slow(struct rail_scheme_cell *cell, unsigned samples)
{
	uint64_t percent = samples >= DROP_SOME ? DROP_SOME_PERCENT : DROP_FEW_PERCENT;
	uint32_t best = UINT32_MAX;

	if (samples < DROP_FEW)
		return;
	for_each_racing(s, cell)
		if (typical(cell, s) < best)
			best = typical(cell, s);
	for_each_racing(s, cell)
		if ((uint64_t)best_sample(cell, s) * 100 > best * percent)
			cell->racing &= (uint8_t)~(1u << s);
}

static bool is_alone(const struct rail_scheme_cell *cell)
{
	return !(cell->racing & (cell->racing - 1));
}

/*
 * Do the costs differ by more than chance?  The cost by n samples varies by less than their
 * interquartile range over the root of n.  Three times the sum of both ranges is above four standard
 * deviations of the difference, since it is judged many times.
 */
static bool is_beyond_noise(const struct rail_scheme_cell *cell, int fast, int slow)
{
	const uint64_t gap = typical(cell, slow) - typical(cell, fast);
	const uint64_t spread = quartile(cell, fast, 3) - quartile(cell, fast, 1) +
				quartile(cell, slow, 3) - quartile(cell, slow, 1);
	const unsigned n = cell->samples[fast] < cell->samples[slow] ? cell->samples[fast] :
								       cell->samples[slow];

	return gap >> 28 || spread >> 28 || gap * gap * n >= 9 * spread * spread;
}

static bool is_clear(const struct rail_scheme_cell *cell)
{
	const int best = leader(cell);

	for_each_racing(s, cell)
		if (s != best && !is_beyond_noise(cell, best, s))
			return false;
	return true;
}

static bool is_decided(const struct rail_scheme_cell *cell, const struct plan *p, unsigned samples)
{
	if (is_alone(cell))
		return true;
	return samples >= p->samples &&
	       (samples >= p->most || debt(cell) > DEBT_MOST_NS || is_clear(cell));
}

/* ---- Visits -------------------------------------------------------------- */

static unsigned seen(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->samples[scheme] + cell->glances[scheme];
}

/* The racing scheme with the fewest samples, the quickest first. */
static int next_scheme(const struct rail_scheme_cell *cell)
{
	int next = leader(cell);

	for_each_racing(s, cell)
		if (seen(cell, s) < seen(cell, next))
			next = s;
	return next;
}

static void visit_begin(struct rail_scheme_cell *cell)
{
	const int best = leader(cell), next = next_scheme(cell);

	cell->resting = next != best && seen(cell, next) && !may_visit(cell);
	cell->scheme = (uint8_t)(cell->resting ? best : next);
	cell->passed = 0;
	cell->begun_ns = 0;
	cell->visit_extra_ns = cell->visit_ns = cell->visit_messages = cell->visit_done = 0;
}

/* The next scheme, or the decision when each has one sample more. */
static void visit_end(struct rail_scheme_cell *cell, const struct plan *p)
{
	unsigned least = UINT8_MAX;

	for_each_racing(s, cell)
		if (cell->samples[s] < least)
			least = cell->samples[s];
	if (least > cell->judged) {
		cell->judged = (uint8_t)least;
		drop_slow(cell, least);
		if (is_decided(cell, p, least)) {
			settle(cell);
			return;
		}
	}
	visit_begin(cell);
}

/* ---- Batches ------------------------------------------------------------- */

static bool is_glance(const struct rail_scheme_cell *cell, const struct plan *p)
{
	return p->glance && cell->glances[cell->scheme] < GLANCES;
}

static unsigned batch_messages(const struct rail_scheme_cell *cell, const struct plan *p)
{
	return is_glance(cell, p) ? p->glance : p->batch;
}

static void batch_end(struct rail_scheme_cell *cell, const struct plan *p, uint64_t end_ns)
{
	const uint64_t ns = (end_ns - cell->begun_ns) / cell->done;
	const uint8_t s = cell->scheme;
	const bool glance = is_glance(cell, p);

	cell->begun_ns = 0;
	if (glance)
		glance_add(cell, ns);
	else
		sample_add(cell, ns);
	/* Disturbances last, so the first samples are of visits of their own. */
	if (glance ? cell->glances[s] == GLANCES : cell->samples[s] <= DROP_FEW ||
						   cell->samples[s] % p->visit == 0)
		visit_end(cell, p);
}

/* Another message than of `cell` comes: the end of its last message so far is the batch's. */
static void batch_break(struct rail_scheme_cell *cell, enum rail_load load)
{
	const struct plan *p = &plan[load];
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
		sample_add(cell, cell->visit_ns / messages);
	visit_end(cell, &plan[load]);
}

/* ---- Messages ------------------------------------------------------------ */

/*
 * What does the next message say of the one before?  A message that others follow at once was not
 * alone: its sender was busy with these.
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
	took_ns = last->took_ns;
	alone_ns = last->alone_ns;
	last->took_ns = last->alone_ns = 0;
	if (load == LOAD_ALONE && load_of(schemes, next) == LOAD_QUEUED) {
		last->begun_ns = 0;
		return;
	}
	if (alone_ns)
		message_add(last, alone_ns);
	else if (load == LOAD_QUEUED && last == next && took_ns)
		message_add(last, now_ns - took_ns);
	if (load == LOAD_ALONE || last != next)
		batch_break(last, load);
	else if (last->begun_ns && last->done >= batch_messages(last, &plan[load]))
		batch_end(last, &plan[load], now_ns);
	if (!last->settled && is_dear(last))
		visit_cut(last, load);
}

/* Begin a batch, when enough messages are passed. */
static void batch_take(struct rail_scheme_cell *cell, const struct plan *p, uint64_t now_ns)
{
	const uint8_t pass = seen(cell, cell->scheme) ? p->pass : p->first_pass;

	if (cell->resting && !may_visit(cell))
		return;
	if (cell->resting)
		visit_begin(cell);
	if (cell->passed < pass) {
		cell->passed++;
	} else if (!cell->begun_ns) {
		cell->begun_ns = now_ns;
		cell->done = 0;
	}
}

enum rail_scheme rail_scheme_take(struct rail_schemes *schemes, struct rail_scheme_cell *cell,
				  uint64_t now_ns)
{
	const enum rail_load load = load_of(schemes, cell);

	last_end(schemes, cell, now_ns);
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

void rail_scheme_done(struct rail_schemes *schemes, struct rail_scheme_cell *cell, uint64_t now_ns)
{
	if (schemes->under_way)
		schemes->under_way--;
	cell->done++;
	cell->visit_done++;
	cell->ended_ns = now_ns;
	if (cell->settled || !cell->took_ns || load_of(schemes, cell) != LOAD_ALONE)
		return;
	cell->alone_ns = now_ns - cell->took_ns;
	cell->took_ns = 0;
}

static void cell_forget(struct rail_scheme_cell *cell)
{
	cell->begun_ns = cell->took_ns = cell->alone_ns = 0;
}

void rail_scheme_forget(struct rail_schemes *schemes)
{
	schemes->under_way = 0;
	for (int load = 0; load < RAIL_LOADS; load++)
		for (int c = 0; c < SCHEME_CLASSES; c++)
			cell_forget(&schemes->cell[load][c]);
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
