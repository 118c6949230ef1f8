/* scheme_race.c - see scheme_race.h. */
#include <limits.h>

#include "rail/message/scheme_race.h"

/* A scheme drops out early where its best sample is so much above the best scheme's cost, percent. */
enum {
	DROP_FEW = 3, DROP_FEW_PERCENT = 200,
	DROP_SOME = 6, DROP_SOME_PERCENT = 120,
	DROP_SLICES = 10, DROP_SLICES_PERCENT = 100,
};

/* Debt: messages as many as are taken for granted at first, and part of all messages' time. */
enum {
	DEBT_MESSAGES = 32,
	DEBT_PERCENT = 4,
	EXTRA_MOST = 3,			/* per message, in costs of the best scheme: an outlier */
	FIRST_EXTRA = 2, VISIT_EXTRA = 3,	/* of the first message of a visit, of all, the same */
};
#define DEBT_MOST_NS ((uint64_t)2000000)

/* A related cell's best; a first try of another scheme is so many messages. */
enum { AS_BEST_PERCENT = 100, UNKNOWN_PERCENT = 200, TRY_MESSAGES = 3 };

/* Other lengths of slices join the race when the ring costs at most so much of the best, percent. */
enum { JOIN_PERCENT = 105 };

/* A cost by fewer samples is little known; a mean takes more. */
enum { FEW_SAMPLES = 4, MANY_SAMPLES = 8 };

#define for_each_racing(s, cell) \
	for (int s = 0; s < RAIL_SCHEMES; s++) if (is_racing(cell, s))

static bool is_racing(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->racing >> scheme & 1;
}

static bool is_slices(int scheme)
{
	return SCHEMES_RING >> scheme & 1;
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

/* The cost as far as it is known: a few samples may all be disturbed. */
static void cost_know(struct rail_scheme_cell *cell, int scheme)
{
	const uint32_t ns = typical(cell, scheme), glance = cell->glance_ns[scheme];
	const uint8_t samples = cell->samples[scheme];

	cell->cost_ns[scheme] = samples && (samples >= FEW_SAMPLES || !glance || ns < glance) ? ns : glance;
}

void rail_race_sample(struct rail_scheme_cell *cell, uint64_t ns)
{
	uint32_t *sample = cell->sample_ns[cell->scheme];
	uint8_t *turn = cell->sample_turn[cell->scheme];
	unsigned at = cell->samples[cell->scheme], before = 0;

	if (at == SCHEME_SAMPLES)
		return;
	for (int s = 0; s < RAIL_SCHEMES; s++)
		before += cell->samples[s];
	cell->samples[cell->scheme]++;
	if (ns >= UINT32_MAX)
		ns = UINT32_MAX - 1;
	for (; at && sample[at - 1] > ns; at--) {
		sample[at] = sample[at - 1];
		turn[at] = turn[at - 1];
	}
	sample[at] = (uint32_t)ns;
	turn[at] = (uint8_t)before;
	cost_know(cell, cell->scheme);
}

/* The best one counts, since disturbances only add time. */
void rail_race_glance(struct rail_scheme_cell *cell, int scheme, uint64_t ns)
{
	uint32_t *glance = &cell->glance_ns[scheme];

	if (!ns)
		ns = 1;
	if (!cell->glances[scheme]++ || ns < *glance)
		*glance = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
	cost_know(cell, scheme);
}

static uint32_t expected(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->prior[scheme] ? cell->prior[scheme] : AS_BEST_PERCENT;
}

/* In the best one's cost, percent: what is known, or else what is expected. */
static uint16_t ratio_found(const struct rail_scheme_cell *found, int scheme)
{
	const uint64_t least = rail_scheme_cost(found, found->settled ? (enum rail_scheme)found->scheme :
							(enum rail_scheme)rail_race_best(found));
	const uint64_t ns = rail_scheme_cost(found, (enum rail_scheme)scheme);
	uint64_t percent;

	if (!ns || !least)
		return found->prior[scheme];
	percent = ns * AS_BEST_PERCENT / least;
	return percent < UINT16_MAX ? (uint16_t)percent : UINT16_MAX;
}

/* Ends that copy whole messages in turn share the bytes as those of halves do. */
void rail_race_expect(struct rail_scheme_cell *cell, const struct rail_scheme_cell *found)
{
	for_each_racing(s, cell)
		cell->prior[s] = ratio_found(found, s == SCHEME_TURNS && !(found->possible >> s & 1) ? SCHEME_HALVES : s);
}

void rail_race_expect_told(struct rail_scheme_cell *cell, int scheme)
{
	if (!is_racing(cell, scheme))
		return;
	for_each_racing(s, cell)
		cell->prior[s] = s == scheme ? AS_BEST_PERCENT : UNKNOWN_PERCENT;
}

/* Is a scheme better than the best of those before it? */
static bool is_quicker(const struct rail_scheme_cell *cell, int scheme, int best)
{
	const uint32_t ns = rail_race_cost(cell, scheme), least = rail_race_cost(cell, best);

	if (ns || least)
		return ns && (!least || ns < least);
	return cell->prior[scheme] && expected(cell, scheme) < expected(cell, best);
}

/* The assumed one in doubt. */
int rail_race_best(const struct rail_scheme_cell *cell)
{
	int best = is_racing(cell, cell->assumed) ? cell->assumed : -1;

	for_each_racing(s, cell)
		if (best < 0 || is_quicker(cell, s, best))
			best = s;
	return best;
}

/* ---- What is known --------------------------------------------------------- */

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

/* ---- Ratios -------------------------------------------------------------- */

/*
 * The ratios of two schemes' costs, in order; 1 is UNIT.  Each sample of the scheme that has fewer is paired with
 * the other's sample that is nearest in time and has no pair yet: both met the same state of the machine.
 */
enum { UNIT = 1 << 12, RATIO_MOST = 1 << 28 };

struct ratios {
	uint32_t ratio[SCHEME_SAMPLES];
	unsigned count;
};

_Static_assert(RAIL_SCHEMES * SCHEME_SAMPLES <= UINT8_MAX + 1, "a byte holds a turn");
_Static_assert(SCHEME_SAMPLES <= 64, "a word holds a bit for each sample");

/* The sample next to a turn among those whose bits are left, which it leaves. */
static unsigned sample_take(const struct rail_scheme_cell *cell, int scheme, unsigned turn, uint64_t *left)
{
	unsigned near = 0, least = UINT_MAX;

	for (unsigned i = 0; i < cell->samples[scheme]; i++) {
		const unsigned at = cell->sample_turn[scheme][i], away = at < turn ? turn - at : at - turn;

		if (*left >> i & 1 && away < least) {
			least = away;
			near = i;
		}
	}
	*left &= ~(UINT64_C(1) << near);
	return near;
}

static void ratio_add(struct ratios *r, uint64_t part, uint64_t whole)
{
	const uint64_t ratio = (part + 1) * UNIT / (whole + 1);
	unsigned at = r->count++;

	for (; at && r->ratio[at - 1] > ratio; at--)
		r->ratio[at] = r->ratio[at - 1];
	r->ratio[at] = (uint32_t)(ratio < RATIO_MOST ? ratio : RATIO_MOST);
}

static struct ratios ratios_of(const struct rail_scheme_cell *cell, int scheme, int base)
{
	const bool fewer = cell->samples[scheme] <= cell->samples[base];
	const int by = fewer ? scheme : base, to = fewer ? base : scheme;
	uint64_t by_left = UINT64_MAX, to_left = UINT64_MAX;
	struct ratios r = { .count = 0 };

	for (unsigned n = 0; n < cell->samples[by]; n++) {
		const unsigned i = sample_take(cell, by, 0, &by_left);
		const uint32_t mine = cell->sample_ns[by][i];
		const uint32_t other = cell->sample_ns[to][sample_take(cell, to, cell->sample_turn[by][i], &to_left)];

		ratio_add(&r, fewer ? mine : other, fewer ? other : mine);
	}
	return r;
}

/* The mean of the middle half. */
static uint32_t ratio_cost(const struct ratios *r)
{
	const unsigned first = r->count / 4, end = r->count - first;
	uint64_t sum = 0;

	for (unsigned i = first; i < end; i++)
		sum += r->ratio[i];
	return end > first ? (uint32_t)(sum / (end - first)) : UNIT;
}

/* ---- Debt ---------------------------------------------------------------- */

/* A message's time beyond the best scheme's cost; of an outlier a part. */
static uint64_t extra_ns(uint64_t ns, uint64_t least)
{
	const uint64_t extra = ns > least ? ns - least : 0;

	return extra < EXTRA_MOST * least ? extra : EXTRA_MOST * least;
}

/*
 * Messages between visits go by what is the best so far: they are the best scheme's, so that they are no debt when
 * another one turns out to be it.
 */
void rail_race_count(struct rail_scheme_cell *cell, int scheme, uint32_t pieces)
{
	const int best = rail_race_best(cell);

	if (!cell->resting) {
		cell->messages[scheme] += pieces;
		return;
	}
	cell->messages[cell->rested_as] -= cell->rested;
	cell->rested += pieces;
	cell->messages[best] += cell->rested;
	cell->rested_as = (uint8_t)best;
}

void rail_race_message(struct rail_scheme_cell *cell, uint64_t ns, uint32_t pieces)
{
	const int best = rail_race_best(cell);

	rail_race_count(cell, cell->scheme, pieces);
	cell->visit_messages++;
	cell->visit_pieces += pieces;
	cell->visit_ns += ns;
	if (best != cell->scheme)
		cell->visit_extra_ns += extra_ns(ns, pieces * (uint64_t)rail_race_cost(cell, best));
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

static unsigned seen(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->samples[scheme] + cell->glances[scheme] + (cell->looking >> scheme & 1u);
}

/* The racing scheme with the fewest samples, the quickest first. */
static int next_scheme(const struct rail_scheme_cell *cell)
{
	int next = rail_race_best(cell);

	for_each_racing(s, cell)
		if (seen(cell, s) < seen(cell, next) ||
		    (!seen(cell, s) && !seen(cell, next) && expected(cell, s) < expected(cell, next)))
			next = s;
	return next;
}

/* The first try of a scheme that is expected to be slow adds so much. */
static uint64_t try_extra(const struct rail_scheme_cell *cell, int scheme, uint64_t least)
{
	const uint32_t percent = expected(cell, scheme);

	if (seen(cell, scheme) || percent <= AS_BEST_PERCENT)
		return 0;
	return TRY_MESSAGES * least * (percent - AS_BEST_PERCENT) / AS_BEST_PERCENT;
}

bool rail_race_may_visit(const struct rail_scheme_cell *cell)
{
	const uint64_t least = rail_race_cost(cell, rail_race_best(cell));
	uint64_t messages = 0;

	if (cell->looking)
		return false;
	for (int s = 0; s < RAIL_SCHEMES; s++)
		messages += cell->messages[s];
	if (messages < DEBT_MESSAGES)
		messages = DEBT_MESSAGES;
	return (debt(cell, cell->possible) + try_extra(cell, next_scheme(cell), least)) * 100 <=
	       DEBT_PERCENT * messages * least;
}

bool rail_race_is_dear(const struct rail_scheme_cell *cell)
{
	const uint64_t least = rail_race_cost(cell, rail_race_best(cell));

	const uint64_t most = cell->visit_messages > 1 ? VISIT_EXTRA : FIRST_EXTRA;

	return cell->visit_messages &&
	       cell->visit_extra_ns * cell->visit_messages > most * least * cell->visit_pieces;
}

/* ---- The decision -------------------------------------------------------- */

static void settle(struct rail_scheme_cell *cell)
{
	const int base = rail_race_best(cell);
	uint32_t least = UINT32_MAX, costs[RAIL_SCHEMES] = { 0 };

	for_each_racing(s, cell) {
		const struct ratios r = ratios_of(cell, s, base);

		costs[s] = ratio_cost(&r);
		if (costs[s] < least) {
			least = costs[s];
			cell->scheme = (uint8_t)s;
		}
	}
	if (is_racing(cell, cell->assumed) && costs[cell->assumed] <= least + least / SCHEME_MARGIN)
		cell->scheme = cell->assumed;
	cell->settled = true;
}

/*
 * Do the costs differ by more than chance?  The mean of n ratios varies by less than their interquartile range over
 * the root of n.  Four times that is above five standard deviations, since it is judged many times.
 */
static bool is_beyond_noise(const struct rail_scheme_cell *cell, int fast, int slow)
{
	const struct ratios r = ratios_of(cell, slow, fast);
	const uint64_t cost = ratio_cost(&r), gap = cost > UNIT ? cost - UNIT : 0;
	const uint64_t spread = r.count ? r.ratio[(r.count - 1) * 3 / 4] - r.ratio[(r.count - 1) / 4] : 0;

	return gap * gap * r.count >= 16 * spread * spread;
}

/* Where slices of another length are clearly better, these end their part soon, so that they cost little. */
static bool is_far(const struct rail_scheme_cell *cell, int scheme, int best, unsigned samples)
{
	const uint64_t percent = samples < DROP_SOME ? DROP_FEW_PERCENT :
				 samples >= DROP_SLICES && is_slices(scheme) && is_slices(best) ?
				 DROP_SLICES_PERCENT : DROP_SOME_PERCENT;

	return (uint64_t)best_sample(cell, scheme) * 100 > typical(cell, best) * percent;
}

static void drop_slow(struct rail_scheme_cell *cell, unsigned samples)
{
	int best = -1;

	if (samples < DROP_FEW)
		return;
	for_each_racing(s, cell)
		if (best < 0 || typical(cell, s) < typical(cell, best))
			best = s;
	for_each_racing(s, cell)
		if (is_far(cell, s, best, samples) && is_beyond_noise(cell, best, s))
			cell->racing &= (uint8_t)~(1u << s);
}

static bool is_alone(const struct rail_scheme_cell *cell)
{
	return !(cell->racing & (cell->racing - 1));
}

static bool is_clear(const struct rail_scheme_cell *cell)
{
	const int best = rail_race_best(cell);

	for_each_racing(s, cell)
		if (s != best && !is_beyond_noise(cell, best, s))
			return false;
	return true;
}

/* Slices of several lengths differ by less than other schemes do, so more samples tell them apart. */
static bool races_slices(const struct rail_scheme_cell *cell)
{
	const unsigned slices = cell->racing & SCHEMES_RING;

	return slices & (slices - 1);
}

/* The debt of a scheme that has dropped out says nothing of the others. */
static bool is_decided(const struct rail_scheme_cell *cell, const struct rail_race_plan *p, unsigned samples)
{
	if (is_alone(cell))
		return true;
	return samples >= (unsigned)p->samples << races_slices(cell) &&
	       (samples >= p->most || debt(cell, cell->racing) > DEBT_MOST_NS || is_clear(cell));
}

/* ---- Visits -------------------------------------------------------------- */

/* Schemes that have joined later need no try. */
bool rail_race_has_all(const struct rail_scheme_cell *cell)
{
	for_each_racing(s, cell)
		if (!seen(cell, s) && !cell->prior[s] && !(SCHEMES_LATER >> s & 1))
			return false;
	return true;
}

/* Slices of another length may be the best where the usual ones cost a little more than another scheme. */
static void join(struct rail_scheme_cell *cell)
{
	const uint64_t least = rail_race_cost(cell, rail_race_best(cell));

	if (!cell->later || !is_racing(cell, SCHEME_RING) || !cell->samples[SCHEME_RING] || !rail_race_has_all(cell) ||
	    rail_race_cost(cell, SCHEME_RING) * UINT64_C(100) > JOIN_PERCENT * least)
		return;
	cell->racing |= cell->later;
	cell->later = 0;
}

bool rail_race_takes_samples(const struct rail_scheme_cell *cell)
{
	return !cell->resting || cell->samples[cell->scheme] < MANY_SAMPLES;
}

void rail_race_rest(struct rail_scheme_cell *cell)
{
	const int best = rail_race_best(cell);

	if (best == cell->scheme)
		return;
	cell->scheme = (uint8_t)best;
	cell->passed = 0;
	rail_race_uncount(cell);
	cell->batch++;
}

void rail_race_visit(struct rail_scheme_cell *cell)
{
	const int best = rail_race_best(cell), next = next_scheme(cell);

	cell->resting = next != best && (seen(cell, next) || cell->prior[next]) && !rail_race_may_visit(cell);
	cell->scheme = (uint8_t)(cell->resting ? best : next);
	cell->passed = 0;
	cell->begun_ns = 0;
	rail_race_uncount(cell);
	cell->batch++;
	cell->visit_extra_ns = cell->visit_ns = 0;
	cell->visit_messages = cell->visit_pieces = 0;
}

void rail_race_put_off(struct rail_scheme_cell *cell)
{
	rail_race_count(cell, cell->scheme, 1);
	if (cell->fresh || cell->scheme == rail_race_best(cell))
		return;
	cell->resting = true;
	rail_race_rest(cell);
}

void rail_race_visit_end(struct rail_scheme_cell *cell, const struct rail_race_plan *p)
{
	unsigned least = UINT8_MAX;

	join(cell);
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
