/* scheme_race.c - see scheme_race.h. */
#include "rail/message/scheme_race.h"

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
	VISIT_EXTRA = 3,		/* per visit, the same */
};
#define DEBT_MOST_NS ((uint64_t)2000000)

/* A cost by fewer samples is little known; a mean takes more. */
enum { FEW_SAMPLES = 4, MANY_SAMPLES = 8 };

#define for_each_racing(s, cell) \
	for (int s = 0; s < RAIL_SCHEMES; s++) if (is_racing(cell, s))

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
 * A mean of many varies less than any one; most disturbances add time, so it leaves more above out.  The
 * cost by few samples is their lower median.
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

static uint32_t best_sample(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->samples[scheme] ? cell->sample_ns[scheme][0] : UINT32_MAX;
}

void rail_race_sample(struct rail_scheme_cell *cell, uint64_t ns)
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
void rail_race_glance(struct rail_scheme_cell *cell, uint64_t ns)
{
	uint32_t *glance = &cell->glance_ns[cell->scheme];

	if (!ns)
		ns = 1;
	if (!cell->glances[cell->scheme]++ || ns < *glance)
		*glance = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/* A few samples may all be disturbed. */
uint32_t rail_race_cost(const struct rail_scheme_cell *cell, int scheme)
{
	const uint32_t ns = typical(cell, scheme), glance = cell->glance_ns[scheme];

	return cell->samples[scheme] && (cell->samples[scheme] >= FEW_SAMPLES || !glance || ns < glance) ?
		ns : glance;
}

/* The quickest scheme so far, the assumed one in doubt. */
int rail_race_best(const struct rail_scheme_cell *cell)
{
	int best = is_racing(cell, cell->assumed) ? cell->assumed : -1;

	for_each_racing(s, cell) {
		uint32_t cost = rail_race_cost(cell, s);

		if (best < 0 || (cost && cost < rail_race_cost(cell, best)))
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

void rail_race_message(struct rail_scheme_cell *cell, uint64_t ns)
{
	const int best = rail_race_best(cell);

	cell->messages[cell->scheme]++;
	cell->visit_messages++;
	cell->visit_ns += ns;
	if (best != cell->scheme)
		cell->visit_extra_ns += extra_ns(ns, rail_race_cost(cell, best));
}

/* The time that these schemes have taken beyond the best one, by what is known of their costs. */
static uint64_t debt(const struct rail_scheme_cell *cell, unsigned schemes)
{
	const uint64_t least = rail_race_cost(cell, rail_race_best(cell));
	uint64_t sum = 0;

	for (int s = 0; s < RAIL_SCHEMES; s++)
		sum += (schemes >> s & 1) * cell->messages[s] * extra_ns(rail_race_cost(cell, s), least);
	return sum;
}

bool rail_race_may_visit(const struct rail_scheme_cell *cell)
{
	uint64_t messages = 0;

	for (int s = 0; s < RAIL_SCHEMES; s++)
		messages += cell->messages[s];
	if (messages < DEBT_MESSAGES)
		messages = DEBT_MESSAGES;
	return debt(cell, cell->possible) * 100 <= DEBT_PERCENT * messages * rail_race_cost(cell, rail_race_best(cell));
}

bool rail_race_is_dear(const struct rail_scheme_cell *cell)
{
	return cell->visit_messages > 1 &&
	       cell->visit_extra_ns > VISIT_EXTRA * (uint64_t)rail_race_cost(cell, rail_race_best(cell));
}

/* ---- The decision -------------------------------------------------------- */

static void settle(struct rail_scheme_cell *cell)
{
	const int best = rail_race_best(cell);
	const uint64_t least = rail_race_cost(cell, best);
	const bool stays = is_racing(cell, cell->assumed) &&
			   rail_race_cost(cell, cell->assumed) <= least + least / SCHEME_MARGIN;

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
	const int best = rail_race_best(cell);

	for_each_racing(s, cell)
		if (s != best && !is_beyond_noise(cell, best, s))
			return false;
	return true;
}

/* The debt of a scheme that has dropped out says nothing of the others. */
static bool is_decided(const struct rail_scheme_cell *cell, const struct rail_race_plan *p, unsigned samples)
{
	if (is_alone(cell))
		return true;
	return samples >= p->samples &&
	       (samples >= p->most || debt(cell, cell->racing) > DEBT_MOST_NS || is_clear(cell));
}

/* ---- Visits -------------------------------------------------------------- */

static unsigned seen(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->samples[scheme] + cell->glances[scheme];
}

bool rail_race_has_all(const struct rail_scheme_cell *cell)
{
	for_each_racing(s, cell)
		if (!seen(cell, s))
			return false;
	return true;
}

/* The racing scheme with the fewest samples, the quickest first. */
static int next_scheme(const struct rail_scheme_cell *cell)
{
	int next = rail_race_best(cell);

	for_each_racing(s, cell)
		if (seen(cell, s) < seen(cell, next))
			next = s;
	return next;
}

void rail_race_visit(struct rail_scheme_cell *cell)
{
	const int best = rail_race_best(cell), next = next_scheme(cell);

	cell->resting = next != best && seen(cell, next) && !rail_race_may_visit(cell);
	cell->scheme = (uint8_t)(cell->resting ? best : next);
	cell->passed = 0;
	cell->begun_ns = 0;
	cell->visit_batch = ++cell->batch;
	cell->visit_extra_ns = cell->visit_ns = cell->visit_messages = cell->visit_done = 0;
}

void rail_race_visit_end(struct rail_scheme_cell *cell, const struct rail_race_plan *p)
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
	rail_race_visit(cell);
}
