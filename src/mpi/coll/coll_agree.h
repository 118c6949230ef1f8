/*
 * coll_agree.h - the algorithm of a call, where costs on this machine may choose it: the clock and
 * the messages of the races of coll_learn.h.
 *
 * A record of collectives has a pointer to its races, NULL until a call has algorithms to choose from.
 * A duplicate begins with the settled ones of its parent.
 */
#ifndef RAILMPI_COLL_AGREE_H
#define RAILMPI_COLL_AGREE_H

#include <stddef.h>

#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/coll/coll_learn.h"
#include "mpi/comm/comm.h"
#include "util/compiler.h"

/* For calls above COLL_LEARN_ABOVE bytes. */
enum coll_algorithm coll_take_large(struct coll *k, enum coll_id id, size_t bytes, unsigned holds);

/* coll_choose for a blocking collective with the same bytes on all ranks. */
static inline enum coll_algorithm coll_take(struct coll *k, enum coll_id id, size_t bytes,
					    unsigned holds)
{
	if (bytes <= COLL_LEARN_ABOVE)
		return coll_choose(id, k->size, bytes, holds);
	return coll_take_large(k, id, bytes, holds);
}

/* Adds the call's time to its race. */
void coll_taken(struct coll *k);

/* coll_end of a call that may have called coll_take. */
static inline int coll_end_taken(struct coll *k)
{
	if (unlikely(k->race))
		coll_taken(k);
	return coll_end(k);
}

/* The duplicate has no races yet; both communicators are routed, and in the same way. */
void coll_inherit(struct comm *made, const struct comm *parent);
/* Visit the races of this process, by communicator.  Inside layer_enter. */
typedef void coll_learned_comm_fn(void *user, int ranks, const struct coll_learned *learned);
void coll_each_learned(coll_learned_comm_fn *visit, void *user);

#endif
