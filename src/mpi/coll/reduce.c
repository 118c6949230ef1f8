/* reduce.c - MPI_Reduce, MPI_Reduce_scatter, MPI_Reduce_scatter_block. */
#include "mpi/abi/dispatch.h"
#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/coll/coll_op.h"
#include "mpi/comm/comm.h"
#include "mpi/type/dtype.h"

/* ---- binomial ------------------------------------------------------------------------------- */

/*
 * Each rank joins its own elements with those of the branch above it, in the order of ranks counted
 * from the root.  `mine` is only read.  Returns where the result is, at the root: in `result`,
 * unless that is NULL, mine, or there is nothing to join.
 */
static void *binomial_to_rank(struct coll *k, const struct coll_reduction *r, void *mine,
			      void *result, size_t count, int root)
{
	int n = k->size, v = (k->rank - root + n) % n, bit, next = 1;
	void *acc = mine, *room[2] = {v || result == mine ? NULL : result, NULL}, *theirs;

	/* The last of the root's rooms is the first. */
	for (bit = 1; bit < n; bit *= 2)
		next = !next;
	for (bit = 1; bit < n && !(v & bit); bit *= 2) {
		if (v + bit >= n)
			continue;
		if (!room[next])
			room[next] = coll_vector(k, r->type, count);
		theirs = room[next];
		coll_recv(k, coll_elements(r, theirs, 0, count), (k->rank + bit) % n);
		coll_apply(k, r, acc, theirs, count);
		acc = theirs;
		next = !next;
	}
	if (v)
		coll_send(k, coll_elements(r, acc, 0, count), (k->rank - bit + n) % n);
	return acc;
}

/*
 * Ranks are counted from 0 for an operation that does not commute, and rank 0 passes the result on.
 */
static void reduce_binomial(struct coll *k, const struct coll_reduction *r, void *mine,
			    void *result, size_t count, int root)
{
	int first = r->commutes ? root : 0;
	void *acc = binomial_to_rank(k, r, mine, first == root ? result : NULL, count, first);

	if (first != root && k->rank == first)
		coll_send(k, coll_elements(r, acc, 0, count), root);
	else if (first != root && k->rank == root)
		coll_recv(k, coll_elements(r, result, 0, count), first);
	else if (k->rank == root && acc != result)
		coll_copy(k, coll_elements(r, acc, 0, count), coll_elements(r, result, 0, count));
}

/* ---- rabenseifner --------------------------------------------------------------------------- */

static struct coll_block fold_part(const struct coll_reduction *r, const struct coll_fold *f, void *acc,
				   size_t count, int rank)
{
	int part = coll_fold_part(f, rank);

	return coll_parts(r, acc, count, f->ranks, part, part + 1);
}

/* The parts that others have reduced go to the root; the root's own part is in place. */
static void collect_parts(struct coll *k, const struct coll_reduction *r, const struct coll_fold *f,
			  void *acc, size_t count, int root)
{
	struct coll_message *in;
	int i, from;

	if (k->rank != root) {
		if (f->rank >= 0)
			coll_send(k, fold_part(r, f, acc, count, f->rank), root);
		return;
	}
	in = coll_temp(k, (size_t)f->ranks * sizeof(*in));
	for (i = 0; i < f->ranks; i++) {
		from = coll_fold_real(f, i);
		in[i].active = false;
		if (from != root)
			coll_irecv(k, &in[i], fold_part(r, f, acc, count, i), from);
	}
	coll_wait_all(k, in, f->ranks);
}

/* At the root the result is where the reduction happens; mine may be the same. */
static void reduce_rabenseifner(struct coll *k, const struct coll_reduction *r, void *mine,
				void *result, size_t count, int root)
{
	void *tmp = coll_vector(k, r->type, count);
	void *acc = k->rank == root ? result : coll_vector(k, r->type, count);
	struct coll_fold f;

	mine = coll_fold_in(k, r, &f, mine, acc, tmp, count);
	if (f.rank >= 0)
		coll_halve(k, r, &f, mine, acc, tmp, count);
	collect_parts(k, r, &f, acc, count, root);
}

/* ---- MPI_Reduce ----------------------------------------------------------------------------- */

static void reduce_any(struct coll *k, const struct coll_reduction *r, void *mine, void *result,
		       size_t count, int root)
{
	if (k->size > 1 &&
	    coll_choose(COLL_REDUCE, k->size, count * r->type->size,
			coll_reduction_holds(r, count, k->size)) == COLL_RABENSEIFNER)
		reduce_rabenseifner(k, r, mine, result, count, root);
	else
		reduce_binomial(k, r, mine, result, count, root);
}

static int reduce_to_root(struct comm *c, const void *sbuf, void *rbuf, MPI_Count count,
			  MPI_Datatype type, MPI_Op op, int root)
{
	bool in_place = sbuf == MPI_IN_PLACE;
	struct coll_reduction r;
	struct coll_block own;
	struct coll k;
	int rc;

	if (!coll_is_ours(COLL_REDUCE))
		return COLL_BY_OPTION;
	rc = coll_reduction_set(&r, op, type);
	if (rc)
		return rc;
	if (root < 0 || root >= c->size ||
	    (c->rank == root ? rbuf == MPI_IN_PLACE : in_place) ||
	    !coll_block_set(&own, in_place ? rbuf : sbuf, count, type))
		return COLL_BY_ARGUMENTS;
	coll_begin(&k, c);
	if (coll_size(own))
		reduce_any(&k, &r, own.buf, rbuf, own.count, root);
	return coll_end(&k);
}

/* ---- MPI_Reduce_scatter --------------------------------------------------------------------- */

/* Part i is elements first[i] to first[i + 1] - 1 of each rank's vector. */
struct division {
	size_t *first;
	void *mine;
	void *result;
};

static struct coll_block part_of(const struct coll_reduction *r, const struct division *d,
				 void *base, int i)
{
	return coll_elements(r, base, d->first[i], d->first[i + 1] - d->first[i]);
}

/* Each rank sends every other rank its part, and reduces the elements that come for its own. */
static void reduce_scatter_pairwise(struct coll *k, const struct coll_reduction *r,
				    const struct division *d)
{
	struct coll_block own = part_of(r, d, d->mine, k->rank), in = own, acc = own;
	int i, to, from;

	in.buf = coll_vector(k, r->type, own.count);
	/* In place, the result would overwrite parts that are still to be sent. */
	acc.buf = d->mine == d->result ? coll_vector(k, r->type, own.count) : d->result;
	if (k->size == 1)
		coll_copy(k, own, acc);
	for (i = 1; i < k->size; i++) {
		to = (k->rank + i) % k->size;
		from = (k->rank - i + k->size) % k->size;
		coll_exchange(k, part_of(r, d, d->mine, to), to, i == 1 ? acc : in, from);
		coll_apply(k, r, i == 1 ? own.buf : in.buf, acc.buf, own.count);
	}
	if (acc.buf != d->result)
		coll_copy(k, acc, coll_elements(r, d->result, 0, own.count));
}

static void reduce_then_scatter(struct coll *k, const struct coll_reduction *r,
				const struct division *d)
{
	void *acc = binomial_to_rank(k, r, d->mine, NULL, d->first[k->size], 0);
	struct coll_block own = coll_elements(r, d->result, 0, d->first[k->rank + 1] -
							       d->first[k->rank]);
	struct coll_message *out;
	int i;

	if (k->rank) {
		coll_recv(k, own, 0);
		return;
	}
	out = coll_temp(k, (size_t)k->size * sizeof(*out));
	for (i = 1; i < k->size; i++)
		coll_isend(k, &out[i], part_of(r, d, acc, i), i);
	coll_copy(k, part_of(r, d, acc, 0), own);
	coll_wait_all(k, out + 1, k->size - 1);
}

/* counts.counts NULL: `each` for all. */
static int reduce_scatter(struct comm *c, const void *sbuf, void *rbuf, struct coll_counts counts,
			  MPI_Count each, MPI_Datatype type, MPI_Op op)
{
	struct division d = {.mine = sbuf == MPI_IN_PLACE ? rbuf : (void *)(uintptr_t)sbuf,
			     .result = rbuf};
	struct coll_reduction r;
	size_t total, bytes;
	struct coll k;
	int i, rc;

	if (!coll_is_ours(COLL_REDUCE_SCATTER))
		return COLL_BY_OPTION;
	rc = coll_reduction_set(&r, op, type);
	if (rc)
		return rc;
	if (rbuf == MPI_IN_PLACE || each < 0)
		return COLL_BY_ARGUMENTS;
	for (total = 0, i = 0; i < c->size; i++) {
		MPI_Count one = counts.counts ? coll_count_at(&counts, i) : each;

		if (one < 0 || __builtin_add_overflow(total, (size_t)one, &total))
			return COLL_BY_ARGUMENTS;
	}
	if (__builtin_mul_overflow(total, r.type->size, &bytes) || bytes > DTYPE_BYTES_MAX)
		return COLL_BY_ARGUMENTS;
	coll_begin(&k, c);
	d.first = coll_temp(&k, ((size_t)k.size + 1) * sizeof(*d.first));
	for (d.first[0] = 0, i = 0; i < k.size; i++)
		d.first[i + 1] = d.first[i] +
				 (size_t)(counts.counts ? coll_count_at(&counts, i) : each);
	if (coll_choose(COLL_REDUCE_SCATTER, k.size, bytes,
			coll_reduction_holds(&r, total, k.size)) == COLL_PAIRWISE)
		reduce_scatter_pairwise(&k, &r, &d);
	else
		reduce_then_scatter(&k, &r, &d);
	return coll_end(&k);
}

/* ---- The calls ------------------------------------------------------------------------------ */

#define REDUCE_PARAMS(COUNT, DISPL, COMM) \
	(const void *sbuf, void *rbuf, COUNT count, MPI_Datatype type, MPI_Op op, int root, COMM)
#define REDUCE_ARGS(COMM) (sbuf, rbuf, count, type, op, root, COMM)
#define SCATTER_PARAMS(COUNT, DISPL, COMM) \
	(const void *sbuf, void *rbuf, const COUNT counts[], MPI_Datatype type, MPI_Op op, COMM)
#define SCATTER_ARGS(COMM) (sbuf, rbuf, counts, type, op, COMM)

#define GEN_REDUCE(S, COUNT, DISPL)                                                                \
	COLL_CALL(Reduce##S, COUNT, DISPL, REDUCE_PARAMS, REDUCE_ARGS,                             \
		  reduce_to_root(c, sbuf, rbuf, count, type, op, root))                            \
	COLL_CALL(Reduce_scatter##S, COUNT, DISPL, SCATTER_PARAMS, SCATTER_ARGS,                   \
		  !counts ? COLL_BY_ARGUMENTS :                                                    \
			    reduce_scatter(c, sbuf, rbuf, COLL_COUNTS(COUNT, counts, NULL), 0,     \
					   type, op))                                              \
	COLL_CALL(Reduce_scatter_block##S, COUNT, DISPL, COLL_VALUES_PARAMS, COLL_VALUES_ARGS,     \
		  reduce_scatter(c, sbuf, rbuf, COLL_COUNTS(COUNT, NULL, NULL), count, type, op))

EACH_COUNT_AND_DISPL(GEN_REDUCE)
