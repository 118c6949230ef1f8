/*
 * strides.h - the places of a datatype's bytes: blocks in loops around each other, and in lists.
 * Data are packed and unpacked, from any byte on and in pieces of any length, without a call of the
 * MPI library, so also where no call is allowed (progress.h, transport_only).
 *
 * A vector of N blocks is one loop; a column of a matrix of such vectors, two; bytes in one piece,
 * none.  A loop that goes on at the end of its inner loop is one loop with it.  Blocks at uneven
 * distances, or that differ, are a list, inside the loops; its parts are blocks, or loops and
 * lists again.  A part that begins at the end of the part before is one part with it.  Addresses
 * are relative to the program's buffer.
 */
#ifndef RAILMPI_STRIDES_H
#define RAILMPI_STRIDES_H

#include <stdbool.h>
#include <stddef.h>

#include "mpi/abi/native.h"

#pragma GCC visibility push(hidden)

enum { STRIDES_LOOPS = 4 };

struct strides_list;
struct strides_memory;

struct strides {
	size_t block;			/* bytes of data in one piece, or in the list */
	MPI_Aint first;			/* beginning of the first block */
	const struct strides_list *list;	/* NULL: the block is in one piece */
	unsigned loops;
	/* Loops from the innermost on, then the loop over elements, which has no count. */
	struct strides_loop {
		size_t count;
		MPI_Aint stride;	/* from one turn to the next; may be zero or negative */
		size_t bytes;		/* data in one turn */
	} loop[STRIDES_LOOPS + 1];
	struct strides_memory *memory;	/* memory of all lists; set by strides_of only */
};

struct strides_list {
	size_t parts;
	/* The list has a part more, after the last: its `from` is the sum of all. */
	struct strides_part {
		MPI_Aint at;
		size_t from;			/* bytes of data in the parts before it */
		const struct strides *of;	/* NULL: in one piece */
	} part[];
};

/*
 * Calls MPI.  0 with *s, to be freed; -ENOMEM; -ENOTSUP: the type is made by a constructor that no
 * MPI standard up to 4.1 has.  The type must have data.
 */
int strides_of(MPI_Datatype handle, struct strides *s);
void strides_free(struct strides *s);
/* The beginning and end of an element's data. */
void strides_bounds(const struct strides *s, MPI_Aint *low, MPI_Aint *high);

/*
 * True: an element is in one piece.  Elements that follow each other are, too, if the extent equals
 * its length.
 */
static inline bool strides_are_solid(const struct strides *s)
{
	return !s->loops && !s->list;
}

#pragma GCC visibility pop

#endif
