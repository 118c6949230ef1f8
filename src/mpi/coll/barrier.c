/* barrier.c - MPI_Barrier. */
#include "mpi/abi/dispatch.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/comm/comm.h"

/* Each round doubles the run of ranks, ending with mine, that I know to be there. */
static void dissemination(struct coll *k)
{
	int far;

	for (far = 1; far < k->size; far *= 2)
		coll_signal(k, (k->rank + far) % k->size, (k->rank - far + k->size) % k->size);
}

static int barrier(struct comm *c)
{
	struct coll k;

	if (!coll_is_ours(COLL_BARRIER))
		return COLL_BY_OPTION;
	coll_begin(&k, c);
	dissemination(&k);
	return coll_end(&k);
}

#define BARRIER_PARAMS(COUNT, DISPL, COMM) (COMM)
#define BARRIER_ARGS(COMM) (COMM)

COLL_CALL(Barrier, int, int, BARRIER_PARAMS, BARRIER_ARGS, barrier(c))
