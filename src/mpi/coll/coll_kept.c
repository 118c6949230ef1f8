/* coll_kept.c - see coll_kept.h. */
#include "mpi/coll/coll_kept.h"

#include <stdlib.h>
#include <string.h>

/* ---- The table ------------------------------------------------------------------------------ */

static struct coll_kept *kept[COLL_KEPT_MOST];
static unsigned count;

static bool is_same(const struct coll_kind *a, const struct coll_kind *b)
{
	return a->ranks == b->ranks && a->way == b->way && a->where == b->where;
}

struct coll_kept *coll_kept_of(const struct coll_kind *kind)
{
	for (unsigned i = 0; i < count; i++)
		if (is_same(&kept[i]->kind, kind))
			return kept[i];
	if (count == COLL_KEPT_MOST)
		return NULL;
	kept[count] = calloc(1, sizeof(*kept[count]));
	if (!kept[count])
		return NULL;
	kept[count]->kind = *kind;
	return kept[count++];
}

struct coll_kept *coll_kept_at(unsigned i)
{
	return i < count ? kept[i] : NULL;
}

void coll_kept_free(void)
{
	while (count) {
		coll_learned_clear(&kept[--count]->learned);
		free(kept[count]);
	}
}

/* ---- Races ----------------------------------------------------------------------------------- */

/* Has it more to say than what is kept?  A race that ended unsettled says least. */
static bool is_further(const struct coll_race *race, const struct coll_race *old)
{
	if (!old || old->settled || race->settled)
		return !old || !old->settled;
	if (race->abandoned != old->abandoned)
		return old->abandoned;
	return race->met >= old->met;
}

void coll_keep_race(struct coll_kept *k, enum coll_id id, int class, const struct coll_race *race)
{
	struct coll_race **at = &k->learned.race[id][class];

	if (!is_further(race, *at))
		return;
	if (!*at)
		*at = malloc(sizeof(**at));
	if (*at)
		**at = *race;
}

void coll_keep(struct coll_kept *k, const struct coll_learned *learned)
{
	struct coll_race over;

	if (learned->end == COLL_LEARN_CROWDED)
		k->learned.end = learned->end;
	for (int id = 0; id < COLL_COUNT; id++)
		for (int c = 0; c < COLL_LEARN_CLASSES; c++) {
			const struct coll_race *race = learned->race[id][c];

			if (!race)
				continue;
			over = *race;
			over.abandoned |= !race->settled && learned->end == COLL_LEARN_UNLIKE;
			coll_keep_race(k, (enum coll_id)id, c, &over);
		}
}

/* ---- Ranks that compare ----------------------------------------------------------------------- */

static uint64_t race_digest(uint64_t digest, const struct coll_race *race)
{
	const uint64_t values[] = {
		race->bytes, race->holds, race->candidates, race->choice, race->decided, race->settled,
		race->met, race->racing, race->round, race->strangers, race->calls, race->samples,
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		digest = coll_mixed(digest, values[i]);
	for (int c = 0; c < race->candidates; c++) {
		digest = coll_mixed(digest, race->candidate[c]);
		digest = coll_mixed(digest, race->cost_ns[c]);
		digest = coll_mixed(digest, race->least_ns[c]);
	}
	return digest;
}

uint64_t coll_learned_digest(const struct coll_learned *learned)
{
	uint64_t digest = 0;

	for (int id = 0; id < COLL_COUNT; id++)
		for (int c = 0; c < COLL_LEARN_CLASSES; c++)
			if (coll_race_goes_on(learned->race[id][c])) {
				digest = coll_mixed(digest, (uint64_t)(id * COLL_LEARN_CLASSES + c + 1));
				digest = race_digest(digest, learned->race[id][c]);
			}
	return digest;
}

static bool is_settled(const struct coll_race *race)
{
	return race && race->settled;
}

int coll_learned_settled(const struct coll_learned *learned)
{
	int n = 0;

	for (int id = 0; id < COLL_COUNT; id++)
		for (int c = 0; c < COLL_LEARN_CLASSES; c++)
			n += is_settled(learned->race[id][c]);
	return n;
}

void coll_learned_tell(const struct coll_learned *learned, struct coll_told *told)
{
	int n = 0;

	for (int id = 0; id < COLL_COUNT; id++)
		for (int c = 0; c < COLL_LEARN_CLASSES; c++) {
			const struct coll_race *race = learned->race[id][c];

			if (!is_settled(race))
				continue;
			told[n] = (struct coll_told){
				.bytes = race->bytes, .holds = race->holds,
				.id = (uint8_t)id, .class = (uint8_t)c,
				.candidates = race->candidates, .choice = race->choice,
			};
			for (int i = 0; i < race->candidates; i++) {
				told[n].candidate[i] = (uint8_t)race->candidate[i];
				told[n].cost_ns[i] = race->cost_ns[i];
			}
			n++;
		}
}

static struct coll_race *race_of_told(const struct coll_told *told)
{
	struct coll_race *race = calloc(1, sizeof(*race));

	if (!race)
		return NULL;
	race->bytes = told->bytes;
	race->holds = told->holds;
	race->candidates = told->candidates;
	race->choice = told->choice;
	race->met = 1;
	race->decided = race->settled = true;
	for (int i = 0; i < told->candidates; i++) {
		race->candidate[i] = (enum coll_algorithm)told->candidate[i];
		race->cost_ns[i] = told->cost_ns[i];
	}
	return race;
}

struct coll_learned *coll_learned_of_told(const struct coll_told *told, int n)
{
	struct coll_learned *learned = calloc(1, sizeof(*learned));

	for (int i = 0; learned && i < n; i++) {
		struct coll_race *race = race_of_told(&told[i]);

		if (!race) {
			coll_learned_free(learned);
			return NULL;
		}
		learned->race[told[i].id][told[i].class] = race;
	}
	return learned;
}
