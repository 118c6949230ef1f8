/* coll_op.h - reductions: operations and their application. */
#ifndef RAILMPI_COLL_OP_H
#define RAILMPI_COLL_OP_H

#include <stdbool.h>
#include <stddef.h>

#include "mpi/abi/native.h"
#include "mpi/coll/coll_data.h"
#include "mpi/type/dtype.h"

struct coll_reduction {
	MPI_Op op;
	MPI_Datatype handle;
	struct dtype *type;
	bool commutes;
	bool same_bits;			/* COLL_SAME_BITS, where coll_reduction_judge has found it */
};

/* Outside of layer_enter.  0, or COLL_BY_... */
int coll_reduction_set(struct coll_reduction *r, MPI_Op op, MPI_Datatype type);
/* Outside of layer_enter: does COLL_SAME_BITS hold? */
void coll_reduction_judge(struct coll_reduction *r);
/* The conditions that hold, for coll_choose. */
unsigned coll_reduction_holds(const struct coll_reduction *r, size_t count, int ranks);
/*
 * inout = in op inout, element by element.  Outside of layer_enter meanwhile: a user's
 * function may take long, and may take locks.
 */
void coll_apply(struct coll *k, const struct coll_reduction *r, const void *in, void *inout,
		size_t count);
/* to = left op right.  `to` is `right` or overlaps neither. */
void coll_combine(struct coll *k, const struct coll_reduction *r, const void *left, void *right,
		  void *to, size_t count);
/* A buffer for `count` elements in the type's layout, until coll_end. */
void *coll_vector(struct coll *k, const struct dtype *type, size_t count);

static inline struct coll_block coll_elements(const struct coll_reduction *r, void *base,
					      size_t first, size_t count)
{
	char *at = (char *)base + (MPI_Aint)first * r->type->extent;

	return (struct coll_block){at, count, r->type};
}

/* The first element of part i, of `count` elements in even parts. */
static inline size_t coll_part(size_t count, int parts, int i)
{
	size_t rest = count % (size_t)parts, at = (size_t)i;

	return at * (count / (size_t)parts) + (at < rest ? at : rest);
}

/* Parts lo to hi - 1. */
static inline struct coll_block coll_parts(const struct coll_reduction *r, void *base, size_t count,
					   int parts, int lo, int hi)
{
	size_t first = coll_part(count, parts, lo);

	return coll_elements(r, base, first, coll_part(count, parts, hi) - first);
}

/*
 * A number of ranks n that is no power of two: the first 2 (n - p) ranks form pairs, and the upper
 * rank of a pair takes part for both.  The order of ranks is kept.
 */
struct coll_fold {
	int ranks;	/* p: ranks that take part */
	int pairs;
	int rank;	/* number of this rank among them; -1: its neighbour has its data */
};

/* The part that coll_halve leaves to the rank of this number: the number's bits, in reverse. */
static inline int coll_fold_part(const struct coll_fold *f, int rank)
{
	int part = 0, bit;

	for (bit = 1; bit < f->ranks; bit *= 2)
		part = 2 * part + !!(rank & bit);
	return part;
}

static inline int coll_fold_real(const struct coll_fold *f, int rank)
{
	return rank < f->pairs ? 2 * rank + 1 : rank + f->pairs;
}

/*
 * mine: this rank's elements, only read unless they are in acc.  acc, tmp: room for as many.
 * Returns where this rank's elements are, combined with its neighbour's: mine or acc.
 */
void *coll_fold_in(struct coll *k, const struct coll_reduction *r, struct coll_fold *f, void *mine,
		   void *acc, void *tmp, size_t count);
/* Send the result to the ranks that did not take part. */
void coll_fold_out(struct coll *k, const struct coll_reduction *r, const struct coll_fold *f,
		   void *acc, size_t count);
/*
 * Halve among the ranks that take part the elements that coll_fold_in has returned, first with the
 * neighbour, to whom a message of half of them is near: afterwards part coll_fold_part of f->ranks
 * in acc is reduced.  Only for operations that commute.
 */
void coll_halve(struct coll *k, const struct coll_reduction *r, const struct coll_fold *f,
		void *mine, void *acc, void *tmp, size_t count);

#endif
