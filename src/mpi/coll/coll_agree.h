/*
 * coll_agree.h - the algorithm of a call, where costs on this machine may choose it: the clock and
 * the messages of the races of coll_learn.h.
 *
 * A record of collectives has a pointer to its races, NULL until a call has algorithms to choose from.
 * A communicator begins with those that the job keeps for its kind (coll_job.h).
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

/* A duplicate of ranks that share cores races no more than its parent. */
void coll_inherit(struct comm *made, const struct comm *parent);

#endif
