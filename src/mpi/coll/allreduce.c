/* allreduce.c - MPI_Allreduce.  The rank's own elements are copied into the result first. */
#include "coll.h"
#include "dispatch.h"

/*
 * Each exchange joins two runs of ranks that follow each other; the lower one's value
 * stays on the left, on both sides, so that both have the same bits.
 */
static void doubling(struct coll *k, const struct coll_reduction *r, void *result, size_t count)
{
	void *acc = result, *tmp = coll_vector(k, r->type, count), *swap;
	struct coll_fold f;
	int bit, partner;

	coll_fold_in(k, r, &f, acc, tmp, count);
	for (bit = 1; f.rank >= 0 && bit < f.ranks; bit *= 2) {
		partner = coll_fold_real(&f, f.rank ^ bit);
		coll_exchange(k, coll_elements(r, acc, 0, count), partner,
			      coll_elements(r, tmp, 0, count), partner);
		if (partner < k->rank) {
			coll_apply(k, r, tmp, acc, count);
		} else {
			coll_apply(k, r, acc, tmp, count);
			swap = acc;
			acc = tmp;
			tmp = swap;
		}
	}
	if (acc != result)
		coll_copy(k, coll_elements(r, acc, 0, count), coll_elements(r, result, 0, count));
	coll_fold_out(k, r, &f, result, count);
}

/* Halve until each has one reduced part, then double until all have all. */
static void rabenseifner(struct coll *k, const struct coll_reduction *r, void *result, size_t count)
{
	void *tmp = coll_vector(k, r->type, count);
	int have, mine, theirs, partner;
	struct coll_fold f;

	coll_fold_in(k, r, &f, result, tmp, count);
	if (f.rank >= 0)
		coll_halve(k, r, &f, result, tmp, count);
	for (have = 1; f.rank >= 0 && have < f.ranks; have *= 2) {
		mine = f.rank & ~(have - 1);
		theirs = mine ^ have;
		partner = coll_fold_real(&f, f.rank ^ have);
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

static struct coll_block part_at(const void *parts, int i)
{
	const struct parts *p = parts;

	return coll_parts(p->r, p->vector, p->count, p->n, i, i + 1);
}

/* Parts go round twice: to be reduced, ending one rank below their number; to be known. */
static void ring(struct coll *k, const struct coll_reduction *r, void *result, size_t count)
{
	int n = k->size, right = (k->rank + 1) % n, left = (k->rank + n - 1) % n;
	void *tmp = coll_vector(k, r->type, coll_part(count, n, 1));
	const struct parts all = {r, result, count, n};
	struct coll_block in, part;
	int i, at = k->rank, next;

	for (i = 1; i < n; i++) {
		next = (at + n - 1) % n;
		part = coll_parts(r, result, count, n, next, next + 1);
		in = coll_elements(r, tmp, 0, part.count);
		coll_exchange(k, coll_parts(r, result, count, n, at, at + 1), right, in, left);
		coll_apply(k, r, in.buf, part.buf, part.count);
		at = next;
	}
	coll_ring(k, right, left, at, part_at, &all);
}

/* ---- The call ------------------------------------------------------------------------------- */

static void reduce(struct coll *k, const struct coll_reduction *r, void *result, size_t count)
{
	switch (coll_choose(COLL_ALLREDUCE, k->size, count * r->type->size,
			    coll_reduction_holds(r, count, k->size))) {
	case COLL_RABENSEIFNER:
		rabenseifner(k, r, result, count);
		break;
	case COLL_RING:
		ring(k, r, result, count);
		break;
	default:
		doubling(k, r, result, count);
	}
}

static int allreduce(struct comm *c, const void *sbuf, void *rbuf, MPI_Count count,
		     MPI_Datatype type, MPI_Op op)
{
	struct coll_reduction r;
	struct coll_block own, result;
	struct coll k;

	if (!coll_is_ours(COLL_ALLREDUCE) || rbuf == MPI_IN_PLACE ||
	    !coll_reduction_set(&r, op, type) || !coll_block_set(&result, rbuf, count, type) ||
	    !coll_block_set(&own, sbuf, count, type))
		return COLL_NATIVE;
	coll_begin(&k, c);
	if (sbuf != MPI_IN_PLACE)
		coll_copy(&k, own, result);
	if (coll_size(result) && k.size > 1)
		reduce(&k, &r, rbuf, result.count);
	return coll_end(&k);
}

#define GEN_ALLREDUCE(S, COUNT, DISPL) \
	COLL_CALL(Allreduce##S, COUNT, DISPL, COLL_VALUES_PARAMS, COLL_VALUES_ARGS, \
		  allreduce(c, sbuf, rbuf, count, type, op))

EACH_COUNT_AND_DISPL(GEN_ALLREDUCE)
