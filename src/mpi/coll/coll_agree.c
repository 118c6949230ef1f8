/* coll_agree.c - races of algorithms in the calls of a communicator. */
#include "mpi/coll/coll_agree.h"

#include <stdlib.h>

#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/coll/coll_job.h"
#include "mpi/coll/coll_learn.h"
#include "mpi/comm/comm.h"
#include "mpi/job/progress.h"
#include "util/clock.h"
#include "util/compiler.h"

/* ---- Before the algorithm ------------------------------------------------------------------- */

/* The class is the call's, so such a race needs no look at what is within reach. */
static bool is_settled_for(const struct coll_race *race, const struct coll_call *call)
{
	return race && race->settled && race->holds == call->holds &&
	       race->candidate[0] == call->usual;
}

/* NULL: the call has nothing to choose from, or races have ended.  A new one begins in its first meeting. */
static struct coll_race *race_of(struct comm *c, const struct coll_call *call)
{
	const int class = coll_learn_class(call->bytes);
	struct coll_race *race;

	if (class < 0)
		return NULL;
	race = c->learned ? c->learned->race[call->id][class] : NULL;
	if (is_settled_for(race, call))
		return race;
	if (c->learned && c->learned->end && !(race && race->settled))
		return NULL;
	if (!coll_learn_may(call))
		return NULL;
	if (!c->learned)
		c->learned = coll_must(calloc(1, sizeof(*c->learned)));
	if (!race)
		race = c->learned->race[call->id][class] = coll_must(calloc(1, sizeof(*race)));
	return race;
}

struct meeting {
	uint64_t place;
	uint32_t ends[COLL_LEARN_ENDS];	/* booleans */
};

static void meeting_join(struct meeting *mine, const struct meeting *theirs)
{
	for (int i = 0; i < COLL_LEARN_ENDS; i++)
		mine->ends[i] |= theirs->ends[i];
	mine->ends[COLL_LEARN_UNLIKE] |= theirs->place != mine->place;
}

/*
 * Dissemination: a difference between two ranks reaches each.  False: a rank does not take part, since
 * its call was refused (coll_skip) or it is lost, and all others learn that.  Its absence is none of the
 * call's own errors.
 */
static bool ranks_meet(struct coll *k, struct meeting *mine)
{
	const int error = k->error, tag = k->tag;
	struct meeting theirs;
	bool whole;

	k->error = MPI_SUCCESS;
	k->exact = true;
	k->tag = coll_agree_tag(tag);
	for (int far = 1; far < k->size; far *= 2) {
		coll_exchange(k, coll_bytes(mine, sizeof(*mine)), (k->rank + far) % k->size,
			      coll_bytes(&theirs, sizeof(theirs)), (k->rank - far + k->size) % k->size);
		if (!k->error)
			meeting_join(mine, &theirs);
	}
	whole = k->error == MPI_SUCCESS;
	k->error = error;
	k->exact = false;
	k->tag = tag;
	return whole;
}

/* Does the call count on all ranks? */
static bool is_joint(struct coll *k, struct coll_race *race, const struct coll_call *call)
{
	struct meeting m = { .place = coll_race_place(race, call) };

	m.ends[COLL_LEARN_CROWDED] = layer.oversubscribed && !coll_is_measured_anyway(call->id);
	m.ends[COLL_LEARN_UNLIKE] = race->abandoned;
	if (!ranks_meet(k, &m))
		return false;
	for (int i = 0; i < COLL_LEARN_ENDS; i++)
		if (m.ends[i])
			k->comm->learned->end = (enum coll_learn_end)i;
	return !k->comm->learned->end;
}

/*
 * Ranks that are not at the same point of a race, such as after a loss, may send each other pieces
 * of other sizes, so a message that is too short is an error (coll_wait).
 */
enum coll_algorithm coll_take_large(struct coll *k, enum coll_id id, size_t bytes, unsigned holds)
{
	struct coll_call call = {.id = id, .ranks = k->size, .bytes = bytes, .holds = holds};
	struct coll_race *race;
	enum coll_algorithm a;
	bool open, timed, settles;

	call.usual = coll_choose_open(id, k->size, bytes, holds, &open);
	race = open ? race_of(k->comm, &call) : NULL;
	if (!race || unlikely(!race->settled && !is_joint(k, race, &call)))
		return call.usual;
	k->exact = !race->settled || race->choice;
	settles = !race->settled;
	a = coll_race_take(race, &call, &timed);
	if (unlikely(settles && race->settled))
		coll_job_settled(k->comm, id, coll_learn_class(bytes));
	coll_use(a, bytes);
	if (unlikely(timed)) {
		k->race = race;
		k->began_ns = rg_now_ns();
	}
	return a;
}

/* ---- After it ------------------------------------------------------------------------------- */

/*
 * The largest of all ranks, by dissemination: a maximum may count a rank twice.  An error of the call
 * itself is none of the agreement.
 */
static bool samples_agree(struct coll *k, uint32_t *sample, int count)
{
	const size_t bytes = (size_t)count * sizeof(*sample);
	const int error = k->error, tag = k->tag;
	uint32_t theirs[COLL_LEARN_SAMPLES];
	bool agreed;
	int far, i;

	k->error = MPI_SUCCESS;
	k->tag = coll_agree_tag(tag);
	for (far = 1; far < k->size; far *= 2) {
		coll_exchange(k, coll_bytes(sample, bytes), (k->rank + far) % k->size,
			      coll_bytes(theirs, bytes), (k->rank - far + k->size) % k->size);
		for (i = 0; !k->error && i < count; i++)
			if (theirs[i] > sample[i])
				sample[i] = theirs[i];
	}
	agreed = k->error == MPI_SUCCESS;
	k->error = error ? error : k->error;
	k->tag = tag;
	return agreed;
}

void coll_taken(struct coll *k)
{
	struct coll_race *race = k->race;

	if (!coll_race_add(race, rg_now_ns() - k->began_ns))
		return;
	if (samples_agree(k, race->sample_ns, race->samples))
		coll_race_decide(race);
	else
		coll_race_abandon(race);
}

/* ---- Communicators -------------------------------------------------------------------------- */

void coll_inherit(struct comm *made, const struct comm *parent)
{
	const struct coll_learned *learned = parent->collective->learned;
	struct comm *c = made->collective;

	if (!learned || learned->end != COLL_LEARN_CROWDED)
		return;
	if (!c->learned)
		c->learned = coll_must(calloc(1, sizeof(*c->learned)));
	c->learned->end = learned->end;
}
