/*
 * strides.h - datatypes that are regular: blocks of the same length at even distances, in loops
 * around each other.  They are packed and unpacked here, without a call of the MPI library, so also
 * where none is allowed (layer.h, transport_only).
 *
 * A vector of N blocks is one loop; a column of a matrix of such vectors, two; bytes in one piece,
 * none.  Loops that go on where the one inside them ends are one loop.  An address is counted from
 * the one that the program gives.
 */
#ifndef RAILMPI_STRIDES_H
#define RAILMPI_STRIDES_H

#include <stdbool.h>
#include <stddef.h>

#include "native.h"

#pragma GCC visibility push(hidden)

enum { STRIDES_LOOPS = 4 };

struct strides {
	size_t block;			/* bytes in one piece */
	MPI_Aint first;			/* where the first block begins */
	unsigned loops;
	/* The innermost first; behind the last one that over elements, which has no count. */
	struct strides_loop {
		size_t count;
		MPI_Aint stride;	/* from one turn to the next; may be zero or negative */
		size_t bytes;		/* of data in one turn */
	} loop[STRIDES_LOOPS + 1];
};

/*
 * False: the type is not regular, or has no data, or has more loops.  Calls MPI.  What is made of
 * predefined types by MPI_Type_contiguous, vector, subarray and the like is recognised, and
 * lists of displacements (MPI_Type_indexed and the like, MPI_Type_create_struct) whose blocks
 * are alike.
 */
bool strides_of(MPI_Datatype handle, struct strides *s);

/* All data of count elements. */
void strides_pack(const struct strides *s, const void *buf, size_t count, void *packed);
/* So many bytes, in the order of packing; they may end anywhere. */
void strides_unpack(const struct strides *s, const void *packed, size_t bytes, void *buf);

#pragma GCC visibility pop

#endif
