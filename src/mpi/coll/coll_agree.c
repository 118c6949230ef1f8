/* coll_agree.c - races of algorithms in the calls of a communicator. */
#include "mpi/coll/coll_agree.h"

#include <stdlib.h>

#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/coll/coll_learn.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
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

/* NULL: the call has nothing to choose from. */
static struct coll_race *race_of(struct comm *c, const struct coll_call *call)
{
	const int class = coll_learn_class(call->bytes);
	struct coll_race **race;

	if (class < 0)
		return NULL;
	if (c->learned && is_settled_for(c->learned->race[call->id][class], call))
		return c->learned->race[call->id][class];
	if (!coll_learn_may(call))
		return NULL;
	if (!c->learned)
		c->learned = coll_must(calloc(1, sizeof(*c->learned)));
	race = &c->learned->race[call->id][class];
	if (!*race) {
		*race = coll_must(malloc(sizeof(**race)));
		coll_race_begin(*race, call);
	}
	return *race;
}

/*
 * In a communicator with a lost rank there is no more to agree on.  Ranks that are not at the same
 * point of a race, after an error of one of them, may send each other pieces of other sizes, so a
 * message that is too short is an error (coll_wait).
 */
enum coll_algorithm coll_take_large(struct coll *k, enum coll_id id, size_t bytes, unsigned holds)
{
	struct coll_call call = {.id = id, .ranks = k->size, .bytes = bytes, .holds = holds};
	struct coll_race *race;
	enum coll_algorithm a;
	bool open, timed;

	call.usual = coll_choose_open(id, k->size, bytes, holds, &open);
	race = open ? race_of(k->comm, &call) : NULL;
	if (!race)
		return call.usual;
	if (unlikely(k->comm->lost && !race->settled))
		coll_race_abandon(race);
	k->exact = !race->settled || race->choice;
	a = coll_race_take(race, &call, &timed);
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
	const int error = k->error;
	uint32_t theirs[COLL_LEARN_SAMPLES];
	bool agreed;
	int far, i;

	k->error = MPI_SUCCESS;
	for (far = 1; far < k->size; far *= 2) {
		coll_exchange(k, coll_bytes(sample, bytes), (k->rank + far) % k->size,
			      coll_bytes(theirs, bytes), (k->rank - far + k->size) % k->size);
		for (i = 0; !k->error && i < count; i++)
			if (theirs[i] > sample[i])
				sample[i] = theirs[i];
	}
	agreed = k->error == MPI_SUCCESS;
	k->error = error ? error : k->error;
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
	if (parent->collective->learned)
		made->collective->learned = coll_must(coll_learned_copy(parent->collective->learned));
}

struct visit {
	coll_learned_comm_fn *fn;
	void *user;
};

static void visit_comm(struct comm *c, uint64_t arg)
{
	const struct visit *v = (const struct visit *)(uintptr_t)arg;

	if (c->learned)
		v->fn(v->user, c->size, c->learned);
}

void coll_each_learned(coll_learned_comm_fn *visit, void *user)
{
	struct visit v = {visit, user};

	comm_table_each(visit_comm, (uint64_t)(uintptr_t)&v);
}
