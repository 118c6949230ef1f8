/* contents.h - the construction of a datatype, as the MPI library tells it. */
#ifndef RAILMPI_CONTENTS_H
#define RAILMPI_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "mpi/abi/native.h"

#pragma GCC visibility push(hidden)

/*
 * The arguments of the constructor: integers, then addresses, then large counts.  A constructor of
 * large counts has all its numbers among the large counts, in the same order.
 */
struct contents {
	int combiner;
	size_t numbers, large, types;
	MPI_Count *number;
	MPI_Datatype *type;
};

/* n: integers, addresses, large counts, types.  False: the library refuses. */
bool contents_envelope(MPI_Datatype handle, MPI_Count n[4], int *combiner);
/* Types without contents, which may not be freed, though contents_get returns them. */
bool contents_are_predefined(int combiner);
/* n: of the envelope.  c->combiner stays.  False: no memory. */
bool contents_get(MPI_Datatype handle, const MPI_Count n[4], struct contents *c);
void contents_free(struct contents *c);

#pragma GCC visibility pop

#endif
