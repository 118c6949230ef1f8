/*
 * allreduce.c - MPI_Allreduce.  A rank's own elements, `own`, are only read, and are not copied
 * where data that arrives can be combined with them; in place they are the result.
 */
#include "mpi/abi/dispatch.h"
#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_agree.h"
#include "mpi/coll/coll_data.h"
#include "mpi/coll/coll_op.h"
#include "mpi/comm/comm.h"

/*
 * Each exchange joins two runs of ranks that follow each other; the lower one's value
 * stays on the left, on both sides, so that both have the same bits.
 */
static void allreduce_doubling(struct coll *k, const struct coll_reduction *r, void *own,
			       void *result, size_t count)
{
	void *tmp = coll_vector(k, r->type, count), *theirs, *to, *acc;
	struct coll_fold f;
	int bit, partner;

	acc = coll_fold_in(k, r, &f, own, result, tmp, count);
	for (bit = 1; f.rank >= 0 && bit < f.ranks; bit *= 2) {
		partner = coll_fold_real(&f, f.rank ^ bit);
		/* MPI combines into the right operand, which the lower rank gets, and the upper has. */
		if (partner > k->rank) {
			theirs = to = acc == result ? tmp : result;
		} else {
			to = acc == own ? result : acc;
			theirs = to == result ? tmp : result;
		}
		coll_exchange(k, coll_elements(r, acc, 0, count), partner,
			      coll_elements(r, theirs, 0, count), partner);
		if (partner > k->rank)
			coll_apply(k, r, acc, theirs, count);
		else
			coll_combine(k, r, theirs, acc, to, count);
		acc = to;
	}
	if (f.rank >= 0 && acc != result)
		coll_copy(k, coll_elements(r, acc, 0, count), coll_elements(r, result, 0, count));
	coll_fold_out(k, r, &f, result, count);
}

/*
 * Halve until each rank has one reduced part, then double until all ranks have all parts.  Elements
 * are combined in the order of allreduce_doubling.
 */
static void rabenseifner(struct coll *k, const struct coll_reduction *r, void *own, void *result,
			 size_t count)
{
	void *tmp = coll_vector(k, r->type, count);
	int have, mine, theirs, partner;
	struct coll_fold f;

	own = coll_fold_in(k, r, &f, own, result, tmp, count);
	if (f.rank >= 0)
		coll_halve(k, r, &f, own, result, tmp, count);
	for (have = 1; f.rank >= 0 && have < f.ranks; have *= 2) {
		mine = coll_fold_part(&f, f.rank) & ~(have - 1);
		theirs = mine ^ have;
		partner = coll_fold_real(&f, f.rank ^ (f.ranks / 2 / have));
		coll_exchange(k, coll_parts(r, result, count, f.ranks, mine, mine + have), partner,
			      coll_parts(r, result, count, f.ranks, theirs, theirs + have),
			      partner);
	}
	coll_fold_out(k, r, &f, result, count);
}

struct parts {
	const struct coll_reduction *r;
	void *vector;
	size_t count;
	int n;
};

static struct coll_block ring_part(const void *parts, int i)
{
	const struct parts *p = parts;

	return coll_parts(p->r, p->vector, p->count, p->n, i, i + 1);
}

/*
 * Parts go round twice: once to be reduced, ending one rank below their number, once to be known.
 */
static void allreduce_ring(struct coll *k, const struct coll_reduction *r, void *own, void *result,
			   size_t count)
{
	int n = k->size, right = (k->rank + 1) % n, left = (k->rank + n - 1) % n;
	void *tmp = own == result ? coll_vector(k, r->type, coll_part(count, n, 1)) : NULL;
	const struct parts all = {r, result, count, n};
	struct coll_block in, mine, out;
	int i, at = k->rank, next;

	for (i = 1; i < n; i++) {
		next = (at + n - 1) % n;
		mine = coll_parts(r, own, count, n, next, next + 1);
		in = coll_parts(r, result, count, n, next, next + 1);
		if (tmp)
			in.buf = tmp;
		out = coll_parts(r, i == 1 ? own : result, count, n, at, at + 1);
		coll_exchange(k, out, right, in, left);
		if (tmp)
			coll_apply(k, r, in.buf, mine.buf, mine.count);
		else
			coll_apply(k, r, mine.buf, in.buf, mine.count);
		at = next;
	}
	coll_ring(k, right, left, at, ring_part, &all);
}

/* ---- The call ------------------------------------------------------------------------------- */

static void allreduce_by(struct coll *k, const struct coll_reduction *r, void *own, void *result,
			 size_t count)
{
	switch (coll_take(k, COLL_ALLREDUCE, count * r->type->size,
			  coll_reduction_holds(r, count, k->size))) {
	case COLL_RABENSEIFNER:
		rabenseifner(k, r, own, result, count);
		break;
	case COLL_RING:
		allreduce_ring(k, r, own, result, count);
		break;
	default:
		allreduce_doubling(k, r, own, result, count);
	}
}

static int allreduce(struct comm *c, const void *sbuf, void *rbuf, MPI_Count count,
		     MPI_Datatype type, MPI_Op op)
{
	struct coll_reduction r;
	struct coll_block own, result;
	struct coll k;
	int rc;

	if (!coll_is_ours(COLL_ALLREDUCE))
		return COLL_BY_OPTION;
	rc = coll_reduction_set(&r, op, type);
	if (rc)
		return rc;
	if (rbuf == MPI_IN_PLACE || !coll_block_set(&result, rbuf, count, type) ||
	    !coll_block_set(&own, sbuf, count, type))
		return COLL_BY_ARGUMENTS;
	if (coll_size(result) > COLL_LEARN_ABOVE)
		coll_reduction_judge(&r);
	coll_begin(&k, c);
	if (sbuf == MPI_IN_PLACE)
		own = result;
	if (k.size == 1 && own.buf != rbuf)
		coll_copy(&k, own, result);
	else if (coll_size(result) && k.size > 1)
		allreduce_by(&k, &r, own.buf, rbuf, result.count);
	return coll_end_taken(&k);
}

#define GEN_ALLREDUCE(S, COUNT, DISPL) \
	COLL_CALL(Allreduce##S, COUNT, DISPL, COLL_VALUES_PARAMS, COLL_VALUES_ARGS, \
		  allreduce(c, sbuf, rbuf, count, type, op))

EACH_COUNT_AND_DISPL(GEN_ALLREDUCE)
