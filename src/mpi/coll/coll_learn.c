/*
 * coll_learn.c - races of algorithms: candidates, rounds, the decision.
 */
#include "mpi/coll/coll_learn.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/coll/coll.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/*
 * Before each round are calls by the best so far, so that the race is a small part of the first hundred
 * calls.  The first calls by a candidate meet new memory, and the transport learns its own schemes by
 * their messages: they may cost several times as much.  So a candidate leaves by its least cost so far,
 * if that is so many percent above the median of the best; after the last round, in which the best may
 * be alone, only the best stays.
 */
enum { STRANGERS = 8, ROUNDS = 4, CLEAR_PERCENT = 125 };
static const struct {
	uint8_t before;			/* calls by the best so far */
	uint8_t visits, pass, timed;	/* per candidate; calls of a visit: not timed, timed */
	unsigned leave_percent;
} rounds[ROUNDS] = {
	{ 1, 1, 0, 3, 180 },
	{ 16, 1, 0, 1, 125 },
	{ 16, 2, 1, 4, 110 },
	{ 16, COLL_LEARN_VISITS, 1, COLL_LEARN_TIMED, 100 },
};

/* ---- Candidates ----------------------------------------------------------------------------- */

/*
 * Algorithms that come near the best somewhere, by numbers of ranks and bytes.  Two ranks have no
 * choice where all algorithms send the same two messages, or one sends more of them.  Bruck's messages
 * are in memory of this library, which peers map: long ones may be faster though copied once more.
 */
struct reach {
	enum coll_algorithm algorithm;		/* COLL_AUTO: no more */
	int least_ranks, most_ranks;
	size_t above, most;			/* bytes */
	unsigned needs;				/* beyond those of the algorithm */
	bool uneven;				/* not among a power of two of ranks */
};

enum { REACH = 7, TWO = 2, THREE = 3, ANY = INT_MAX };
static const struct reach within_reach[COLL_COUNT][REACH] = {
	[COLL_BCAST] = {
		{ COLL_BINOMIAL, THREE, 4, 16 * KIB, SIZE_MAX, 0, false },
		{ COLL_BINOMIAL, 5, ANY, 16 * KIB, 512 * KIB, 0, false },
		{ COLL_SCATTER_RING, THREE, ANY, 16 * KIB, SIZE_MAX, 0, false },
		{ COLL_CHAIN, THREE, ANY, 2 * (size_t)COLL_CHAIN_BYTES, SIZE_MAX, 0, false },
	},
	[COLL_ALLGATHER] = {
		{ COLL_DOUBLING, TWO, TWO, 128 * KIB, SIZE_MAX, 0, false },
		{ COLL_RING, TWO, TWO, 256 * KIB, SIZE_MAX, 0, false },
		{ COLL_BRUCK, TWO, TWO, 128 * KIB, SIZE_MAX, 0, false },
		{ COLL_DOUBLING, THREE, ANY, 8 * KIB, SIZE_MAX, 0, false },
		{ COLL_RING, THREE, ANY, 8 * KIB, SIZE_MAX, 0, false },
		{ COLL_BRUCK, THREE, ANY, 8 * KIB, 1 * MIB, 0, true },
		{ COLL_RING_RAILS, THREE, ANY, 64 * KIB, SIZE_MAX, COLL_RAILS, false },
	},
	[COLL_ALLTOALL] = {
		{ COLL_LINEAR, THREE, 64, 0, SIZE_MAX, 0, false },
		{ COLL_PAIRWISE, THREE, 4, 8 * KIB, SIZE_MAX, 0, false },
		{ COLL_PAIRWISE, 5, ANY, 32 * KIB, SIZE_MAX, 0, false },
		{ COLL_BRUCK, 5, ANY, 0, 2 * KIB, 0, false },
		{ COLL_PAIRWISE_RAILS, THREE, ANY, 16 * KIB, SIZE_MAX, COLL_RAILS, false },
	},
	[COLL_ALLREDUCE] = {
		{ COLL_DOUBLING, TWO, ANY, 8 * KIB, SIZE_MAX, COLL_SAME_BITS, false },
		{ COLL_RABENSEIFNER, TWO, ANY, 8 * KIB, SIZE_MAX, COLL_SAME_BITS, false },
		{ COLL_RING, TWO, TWO, 256 * KIB, SIZE_MAX, COLL_SAME_BITS, false },
	},
};

static bool is_within_reach(const struct reach *r, const struct coll_call *call)
{
	return call->ranks >= r->least_ranks && call->ranks <= r->most_ranks &&
	       call->bytes > r->above && call->bytes <= r->most && !(r->needs & ~call->holds) &&
	       !(r->uneven && (call->ranks & (call->ranks - 1)) == 0) &&
	       coll_possible(call->id, r->algorithm, call->ranks, call->holds) == r->algorithm;
}

/* Fill in the candidates; returns how many.  The usual algorithm has to be one of them. */
static int candidates_find(const struct coll_call *call,
			   enum coll_algorithm candidate[COLL_LEARN_CANDIDATES])
{
	bool usual = false;
	int n = 1;

	candidate[0] = call->usual;
	for (int i = 0; i < REACH && within_reach[call->id][i].algorithm; i++) {
		const struct reach *r = &within_reach[call->id][i];

		if (!is_within_reach(r, call))
			continue;
		if (r->algorithm == call->usual)
			usual = true;
		else if (n < COLL_LEARN_CANDIDATES)
			candidate[n++] = r->algorithm;
	}
	return usual ? n : 1;
}

int coll_learn_class(size_t bytes)
{
	int c;

	if (bytes <= COLL_LEARN_ABOVE)
		return -1;
	c = (int)(8 * sizeof(long)) - 1 - __builtin_clzl((bytes - 1) / COLL_LEARN_ABOVE);
	return c < COLL_LEARN_CLASSES ? c : -1;
}

bool coll_learn_may(const struct coll_call *call)
{
	enum coll_algorithm candidate[COLL_LEARN_CANDIDATES];

	return candidates_find(call, candidate) > 1;
}

/* ---- Rounds --------------------------------------------------------------------------------- */

static int racing_count(const struct coll_race *race)
{
	return __builtin_popcount(race->racing);
}

/* The n-th candidate that is racing. */
static int racing_at(const struct coll_race *race, int n)
{
	int c = 0;

	for (;; c++)
		if (race->racing >> c & 1 && n-- == 0)
			return c;
}

/* Calls of a visit. */
static int visit_calls(const struct coll_race *race)
{
	return rounds[race->round].pass + rounds[race->round].timed;
}

static void round_begin(struct coll_race *race, int round)
{
	race->round = (uint8_t)round;
	race->calls = race->samples = 0;
}

void coll_race_begin(struct coll_race *race, const struct coll_call *call)
{
	memset(race, 0, sizeof(*race));
	race->candidates = (uint8_t)candidates_find(call, race->candidate);
	race->racing = (uint8_t)((1u << race->candidates) - 1);
	race->bytes = call->bytes;
	race->holds = call->holds;
}

/* A call of another size, or with other algorithms: it does not count. */
static bool is_stranger(struct coll_race *race, const struct coll_call *call)
{
	uint16_t met;

	if (call->bytes == race->bytes && call->holds == race->holds &&
	    call->usual == race->candidate[0]) {
		race->strangers = 0;
		return false;
	}
	if (++race->strangers < STRANGERS)
		return true;
	met = race->met;
	coll_race_begin(race, call);
	race->met = met;
	return false;
}

uint64_t coll_mixed(uint64_t digest, uint64_t value)
{
	digest = (digest ^ value) * UINT64_C(0xff51afd7ed558ccd);
	return digest ^ digest >> 32;
}

/* A race that has had no meeting begins with this call. */
uint64_t coll_race_place(struct coll_race *race, const struct coll_call *call)
{
	uint64_t digest = 0;

	if (!race->met)
		coll_race_begin(race, call);
	const uint64_t values[] = {
		call->id, call->bytes, call->holds, call->usual, race->bytes, race->holds,
		race->candidate[0], race->met, race->round, race->calls, race->samples, race->racing,
		race->strangers, race->choice, race->decided,
	};
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		digest = coll_mixed(digest, values[i]);
	return digest;
}

/* All ranks were at the same point before this call. */
static void meet(struct coll_race *race)
{
	if (race->settled)
		return;
	race->settled = race->decided;
	if (++race->met < COLL_LEARN_MEETINGS || race->settled)
		return;
	race->choice = 0;
	race->decided = race->settled = true;
}

enum coll_algorithm coll_race_take(struct coll_race *race, const struct coll_call *call, bool *timed)
{
	int at, visit;

	*timed = false;
	meet(race);
	if (race->settled)
		return coll_possible(call->id, race->candidate[race->choice], call->ranks,
				     call->holds);
	if (is_stranger(race, call))
		return call->usual;
	at = race->calls++ - rounds[race->round].before;
	if (at < 0)
		return race->candidate[race->choice];
	visit = at / visit_calls(race);
	*timed = at % visit_calls(race) >= rounds[race->round].pass;
	return race->candidate[racing_at(race, visit % racing_count(race))];
}

bool coll_race_add(struct coll_race *race, uint64_t ns)
{
	const int all = racing_count(race) * rounds[race->round].visits * rounds[race->round].timed;

	race->sample_ns[race->samples++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
	return race->samples == all;
}

/* ---- The decision --------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* A candidate's samples in this round, ns.  Disturbed ones are mostly above the median. */
struct spread {
	uint32_t least, quartile, median;	/* least: at least 1 */
	int samples;
};

static struct spread spread_of(const struct coll_race *race, int n)
{
	const int timed = rounds[race->round].timed, visits = rounds[race->round].visits;
	const int racing = racing_count(race), all = visits * timed;
	uint32_t sample[COLL_LEARN_VISITS * COLL_LEARN_TIMED];

	for (int v = 0; v < visits; v++)
		memcpy(sample + v * timed, race->sample_ns + (v * racing + n) * timed,
		       (size_t)timed * sizeof(*sample));
	qsort(sample, (size_t)all, sizeof(*sample), by_time);
	return (struct spread){ sample[0] ? sample[0] : 1, sample[(all - 1) / 4], sample[all / 2], all };
}

/*
 * The cost of a candidate, at least 1: the lower quartile, since up to half of the calls may wait for a
 * rank that comes late.
 */
static uint32_t cost_of(const struct spread *s)
{
	return s->quartile ? s->quartile : 1;
}

static int cheapest(const struct coll_race *race)
{
	int best = -1;

	for (int c = 0; c < race->candidates; c++)
		if (race->racing >> c & 1 && (best < 0 || race->cost_ns[c] < race->cost_ns[best]))
			best = c;
	return best;
}

static bool is_above(uint32_t cost, uint32_t best, unsigned percent)
{
	return (uint64_t)cost * 100 > (uint64_t)best * percent;
}

/*
 * Do the costs differ by more than chance?  A quartile of n samples varies by about their interquartile
 * range over the root of n.
 */
static bool is_beyond_noise(const struct spread *usual, const struct spread *best)
{
	const double gap = (double)cost_of(usual) - cost_of(best);
	const double range = (double)(usual->median - usual->quartile) + (best->median - best->quartile);

	return gap * gap * best->samples >= 2 * range * range;
}

/* Samples of a processor that others use, too, are far apart. */
static bool is_steady(const struct spread *s)
{
	return s->median - s->quartile <= cost_of(s) / 8;
}

/*
 * Costs that vary from call to call, such as by the transport's schemes, are unlike those of a shared
 * processor where even the median of the best is below the usual algorithm's better calls.
 */
static bool is_clearly_ahead(const struct coll_race *race, const struct spread *best,
			     const struct spread *usual)
{
	if (race->racing & 1)
		return is_above(cost_of(usual), best->median, CLEAR_PERCENT);
	return is_above(race->least_ns[0], best->median, CLEAR_PERCENT);
}

static bool is_ahead(const struct coll_race *race, int best, const struct spread s[])
{
	if (is_clearly_ahead(race, &s[best], &s[0]))
		return true;
	if (!is_steady(&s[best]) || !(race->racing & 1))
		return is_steady(&s[best]);
	return is_above(race->cost_ns[0], race->cost_ns[best], 100 + COLL_LEARN_MARGIN) &&
	       is_beyond_noise(&s[0], &s[best]);
}

/* The usual algorithm leaves by two rounds at least. */
static void slow_leave(struct coll_race *race, int best, uint32_t best_ns)
{
	const unsigned percent = rounds[race->round].leave_percent;

	for (int c = race->round ? 0 : 1; c < race->candidates; c++)
		if (c != best && is_above(race->least_ns[c], best_ns, percent))
			race->racing &= (uint8_t)~(1u << c);
}

void coll_race_decide(struct coll_race *race)
{
	const int count = racing_count(race);
	struct spread s[COLL_LEARN_CANDIDATES] = { { 0 } };
	int best;

	for (int n = 0; n < count; n++) {
		const int c = racing_at(race, n);

		s[c] = spread_of(race, n);
		race->cost_ns[c] = cost_of(&s[c]);
		if (!race->least_ns[c] || s[c].least < race->least_ns[c])
			race->least_ns[c] = s[c].least;
	}
	best = cheapest(race);
	race->choice = (uint8_t)best;
	if (race->round < ROUNDS - 1)
		slow_leave(race, best, s[best].median);
	race->decided = race->round == ROUNDS - 1;
	if (!race->decided)
		round_begin(race, race->round + 1);
	else if (!is_ahead(race, best, s))
		race->choice = 0;
}

void coll_race_abandon(struct coll_race *race)
{
	race->abandoned = true;
}

/* ---- A communicator's races ----------------------------------------------------------------- */

bool coll_race_goes_on(const struct coll_race *race)
{
	return race && race->met && !race->abandoned;
}

static bool race_copy(struct coll_race **to, const struct coll_race *from)
{
	if (!coll_race_goes_on(from))
		return true;
	*to = malloc(sizeof(**to));
	if (*to)
		**to = *from;
	return *to;
}

struct coll_learned *coll_learned_copy(const struct coll_learned *from)
{
	struct coll_learned *copy = calloc(1, sizeof(*copy));
	bool whole = copy;

	for (int id = 0; whole && id < COLL_COUNT; id++)
		for (int c = 0; whole && c < COLL_LEARN_CLASSES; c++)
			whole = race_copy(&copy->race[id][c], from->race[id][c]);
	if (whole)
		return copy;
	coll_learned_free(copy);
	return NULL;
}

void coll_learned_clear(struct coll_learned *learned)
{
	for (int id = 0; id < COLL_COUNT; id++)
		for (int c = 0; c < COLL_LEARN_CLASSES; c++)
			free(learned->race[id][c]);
}

void coll_learned_free(struct coll_learned *learned)
{
	if (!learned)
		return;
	coll_learned_clear(learned);
	free(learned);
}

static void row_fill(struct coll_learned_row *row, int id, int class, const struct coll_learned *of)
{
	const struct coll_race *race = of->race[id][class];
	const enum coll_learn_end end = race->abandoned ? COLL_LEARN_UNLIKE : of->end;
	const bool is_over = !race->settled && end;

	*row = (struct coll_learned_row){
		.collective = coll_name((enum coll_id)id),
		.most_bytes = (size_t)COLL_LEARN_ABOVE << (class + 1),
		.choice = coll_algorithm_name(race->candidate[is_over ? 0 : race->choice]),
		.settled = race->settled,
		.end = end,
		.candidates = race->candidates,
	};
	for (int c = 0; c < race->candidates; c++) {
		row->candidate[c] = coll_algorithm_name(race->candidate[c]);
		row->cost_ns[c] = race->cost_ns[c];
	}
}

void coll_learned_each(const struct coll_learned *learned, coll_learned_fn *visit, void *user)
{
	struct coll_learned_row row;

	for (int id = 0; learned && id < COLL_COUNT; id++)
		for (int c = 0; c < COLL_LEARN_CLASSES; c++)
			if (learned->race[id][c]) {
				row_fill(&row, id, c, learned);
				visit(user, &row);
			}
}
