/* reduction.c - reductions, computed once more by ourselves.  All are exact in any order. */
#include "programs.h"

#include <string.h>

enum number { NUMBER_UINT, NUMBER_ULONG, NUMBER_DOUBLE, NUMBERS };
enum op { OP_SUM, OP_MAX, OP_MIN, OP_BXOR, OP_PROD, OPS };

static int counts_of[OTHERS_MAX][RANKS_MAX]; /* for Reduce_scatter */

static enum number number_of(const struct other *o)
{
	return (enum number)(o->op % NUMBERS);
}

/* Doubles are small integers, and have no bits. */
static enum op op_of(const struct other *o)
{
	enum op op = (enum op)(o->op / NUMBERS % OPS);

	return number_of(o) == NUMBER_DOUBLE && op > OP_MIN ? OP_SUM : op;
}

static size_t size_of(const struct other *o)
{
	return number_of(o) == NUMBER_UINT ? 4 : 8;
}

static MPI_Datatype type_of(const struct other *o)
{
	switch (number_of(o)) {
	case NUMBER_UINT:
		return MPI_UNSIGNED;
	case NUMBER_ULONG:
		return MPI_UNSIGNED_LONG_LONG;
	default:
		return MPI_DOUBLE;
	}
}

static MPI_Op mpi_op(const struct other *o)
{
	switch (op_of(o)) {
	case OP_SUM:
		return MPI_SUM;
	case OP_MAX:
		return MPI_MAX;
	case OP_MIN:
		return MPI_MIN;
	case OP_BXOR:
		return MPI_BXOR;
	default:
		return MPI_PROD;
	}
}

/* ---- Our own arithmetic
 * --------------------------------------------------------------------------- */

/* MPICH 4.0.2 takes the greatest unsigned number for a negative one: none has the highest bit. */
static void values(const struct other *o, unsigned char *to, size_t n, int rank)
{
	size_t i, size = size_of(o);
	uint32_t half_word;
	uint64_t word;
	double x;

	pattern(to, n * size, o->key ^ mix((unsigned)rank + 4000));
	for (i = 0; i < n; i++, to += size)
		switch (number_of(o)) {
		case NUMBER_UINT:
			memcpy(&half_word, to, 4);
			half_word >>= 1;
			memcpy(to, &half_word, 4);
			break;
		case NUMBER_ULONG:
			memcpy(&word, to, 8);
			word >>= 1;
			memcpy(to, &word, 8);
			break;
		default:
			memcpy(&word, to, 8);
			x = (double)(word % 1000);
			memcpy(to, &x, 8);
		}
}

static uint64_t combine(enum op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case OP_SUM:
		return a + b;
	case OP_MAX:
		return a > b ? a : b;
	case OP_MIN:
		return a < b ? a : b;
	case OP_BXOR:
		return a ^ b;
	default:
		return a * b;
	}
}

static double combine_double(enum op op, double a, double b)
{
	switch (op) {
	case OP_MAX:
		return a > b ? a : b;
	case OP_MIN:
		return a < b ? a : b;
	default:
		return a + b;
	}
}

static void add(const struct other *o, unsigned char *to, const unsigned char *from, size_t n)
{
	size_t i, size = size_of(o);
	uint32_t a, b;
	uint64_t c, d;
	double x, y;

	for (i = 0; i < n; i++, to += size, from += size)
		switch (number_of(o)) {
		case NUMBER_UINT:
			memcpy(&a, to, 4);
			memcpy(&b, from, 4);
			a = (uint32_t)combine(op_of(o), a, b);
			memcpy(to, &a, 4);
			break;
		case NUMBER_ULONG:
			memcpy(&c, to, 8);
			memcpy(&d, from, 8);
			c = combine(op_of(o), c, d);
			memcpy(to, &c, 8);
			break;
		default:
			memcpy(&x, to, 8);
			memcpy(&y, from, 8);
			x = combine_double(op_of(o), x, y);
			memcpy(to, &x, 8);
		}
}

/* ---- What each rank gives and gets
 * ---------------------------------------------------------------- */

static void counts_make(int index, int n)
{
	const struct other *o = &running->other[index];
	int i;

	for (i = 0; i < n; i++)
		counts_of[index][i] = o->kind == OTHER_REDUCE_SCATTER_BLOCK
					  ? (int)o->units
					  : (int)(mix(o->key + (unsigned)i) % (o->units + 1));
}

static bool scatters(const struct other *o)
{
	return o->kind == OTHER_REDUCE_SCATTER || o->kind == OTHER_REDUCE_SCATTER_BLOCK;
}

/* Numbers that a rank gives; those of the result that are its own: where they begin, how many. */
static size_t gives(int index, int n)
{
	size_t sum = 0;
	int i;

	if (!scatters(&running->other[index]))
		return running->other[index].units;
	for (i = 0; i < n; i++)
		sum += (size_t)counts_of[index][i];
	return sum;
}

static size_t gets(int index, int me, size_t *from)
{
	const struct other *o = &running->other[index];
	int i;

	*from = 0;
	if (!scatters(o))
		return o->kind == OTHER_REDUCE && me != o->root ? 0 : o->units;
	for (i = 0; i < me; i++)
		*from += (size_t)counts_of[index][i];
	return (size_t)counts_of[index][me];
}

/*
 * The MPI_Reduce of MPICH 4.0.2 itself (RAILGAUGE_COLL=native, or what the layer leaves to it)
 * reads from MPI_IN_PLACE where the root is not the first rank of its node, from 2 KiB on.
 */
static bool in_place(const struct other *o, int me)
{
#ifdef MPICH_VERSION
	if (o->kind == OTHER_REDUCE && o->root > 0)
		return false;
#endif
	return o->in_place && (o->kind == OTHER_ALLREDUCE || o->kind == OTHER_SCAN ||
			       (o->kind == OTHER_REDUCE && me == o->root));
}

/* ---- The calls
 * ---------------------------------------------------------------------------------------- */

static int call(const struct other *o, const void *in, void *to, const int *counts, MPI_Comm comm)
{
	MPI_Datatype t = type_of(o);
	MPI_Op op = mpi_op(o);
	int n = (int)o->units;

	switch (o->kind) {
	case OTHER_REDUCE:
		return MPI_Reduce(in, to, n, t, op, o->root, comm);
	case OTHER_ALLREDUCE:
		return MPI_Allreduce(in, to, n, t, op, comm);
	case OTHER_SCAN:
		return MPI_Scan(in, to, n, t, op, comm);
	case OTHER_EXSCAN:
		return MPI_Exscan(in, to, n, t, op, comm);
	case OTHER_REDUCE_SCATTER:
		return MPI_Reduce_scatter(in, to, counts, t, op, comm);
	default:
		return MPI_Reduce_scatter_block(in, to, n, t, op, comm);
	}
}

static int call_nonblocking(const struct other *o, const void *in, void *to, const int *counts,
			    MPI_Comm comm, MPI_Request *q)
{
	MPI_Datatype t = type_of(o);
	MPI_Op op = mpi_op(o);
	int n = (int)o->units;

	switch (o->kind) {
	case OTHER_REDUCE:
		return MPI_Ireduce(in, to, n, t, op, o->root, comm, q);
	case OTHER_ALLREDUCE:
		return MPI_Iallreduce(in, to, n, t, op, comm, q);
	case OTHER_SCAN:
		return MPI_Iscan(in, to, n, t, op, comm, q);
	case OTHER_EXSCAN:
		return MPI_Iexscan(in, to, n, t, op, comm, q);
	case OTHER_REDUCE_SCATTER:
		return MPI_Ireduce_scatter(in, to, counts, t, op, comm, q);
	default:
		return MPI_Ireduce_scatter_block(in, to, n, t, op, comm, q);
	}
}

void reduction_start(int index)
{
	const struct other *o = &running->other[index];
	int me = member_of(running, o->comm, world_rank), n = running->comm[o->comm].size;
	struct half *h = &between[index];
	size_t from, given, got;
	const void *in;

	counts_make(index, n);
	given = gives(index, n);
	got = gets(index, me, &from);
	buffer_get(&h->b, o->origin, got * size_of(o), 8, o->key + 1);
	buffer_get(&h->b2, o->origin, given * size_of(o), 8, o->key + 2);
	values(o, h->b2.mem + GUARD, given, me);
	in = h->b2.mem + GUARD;
	if (in_place(o, me)) {
		values(o, h->b.mem + GUARD, given, me);
		in = MPI_IN_PLACE;
	}
	if (o->nonblocking)
		DO(call_nonblocking(o, in, h->b.mem + GUARD, counts_of[index], comm_of[o->comm],
				    &h->q));
	else
		DO(call(o, in, h->b.mem + GUARD, counts_of[index], comm_of[o->comm]));
}

void reduction_finish(int index)
{
	const struct other *o = &running->other[index];
	int me = member_of(running, o->comm, world_rank), n = running->comm[o->comm].size, i;
	struct half *h = &between[index];
	size_t from, given = gives(index, n), got = gets(index, me, &from), size = size_of(o);
	int last = o->kind == OTHER_SCAN ? me + 1 : o->kind == OTHER_EXSCAN ? me : n;
	unsigned char *sum = scratch(1, given * size), *more = scratch(2, given * size);
	unsigned char *should = scratch(0, given * size + 2 * GUARD);

	values(o, sum, given, 0);
	for (i = 1; i < last; i++) {
		values(o, more, given, i);
		add(o, sum, more, given);
	}
	pattern(should, h->b.room + 2 * GUARD, h->b.key);
	/* To rank 0 Exscan brings nothing that is defined. */
	memcpy(should + GUARD, last ? sum + from * size : h->b.mem + GUARD, got * size);
	bytes_check(h->b.mem, should, h->b.room + 2 * GUARD, "the result of a reduction");
	pattern(should, h->b2.room + 2 * GUARD, h->b2.key);
	values(o, should + GUARD, given, me);
	bytes_check(h->b2.mem, should, h->b2.room + 2 * GUARD, "what a reduction has taken");
	buffer_put(&h->b);
	buffer_put(&h->b2);
}
