/* coll_op.c - operations of reductions: the operation of a call, and its application. */
#include "mpi/coll/coll_op.h"

#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/coll/coll_types.h"
#include "mpi/job/progress.h"
#include "mpi/type/dtype.h"
#include "util/compiler.h"

/* ---- Which operation ------------------------------------------------------------------------ */

/* Operations that all ranks have as long as they have the type; all of them commute. */
static const MPI_Op predefined[] = {
	MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR,
	MPI_MAXLOC, MPI_MINLOC,
};
#define PREDEFINED (sizeof(predefined) / sizeof(predefined[0]))
_Static_assert(PREDEFINED <= COLL_OPERATIONS, "each has its bits");

int coll_reduction_set(struct coll_reduction *r, MPI_Op op, MPI_Datatype type)
{
	int commutes = 0;
	unsigned i;

	r->op = op;
	r->same_bits = false;
	r->handle = type;
	r->type = coll_type(type);
	if (!r->type || op == MPI_OP_NULL)
		return COLL_BY_ARGUMENTS;
	for (i = 0; i < PREDEFINED && predefined[i] != op; i++)
		;
	if (i < PREDEFINED) {
		r->commutes = true;
		return coll_type_has(r->type, type, op, i) ? 0 : COLL_BY_OPERATION;
	}
	/* For one-sided calls. */
	if (op == MPI_REPLACE || op == MPI_NO_OP)
		return COLL_BY_OPERATION;
	if (native.Op_commutative(op, &commutes) != MPI_SUCCESS)
		return COLL_BY_ARGUMENTS;
	r->commutes = commutes;
	return 0;
}

static bool type_has(const struct coll_reduction *r, MPI_Op op)
{
	unsigned i;

	for (i = 0; predefined[i] != op; i++)
		;
	return coll_type_has(r->type, r->handle, op, i);
}

/*
 * Types with bitwise operations are integers.  Of real and complex numbers a sum of two is the same
 * from either side, and a product of real ones, which have a largest one; of a product of complex ones a
 * compiler may round one half later.  The largest of 0 and -0 is either.
 */
void coll_reduction_judge(struct coll_reduction *r)
{
	if (r->op == MPI_SUM)
		r->same_bits = true;
	else if (r->op == MPI_PROD)
		r->same_bits = type_has(r, MPI_MAX);
	else if (r->op == MPI_MAX || r->op == MPI_MIN || r->op == MPI_BAND || r->op == MPI_BOR ||
		 r->op == MPI_BXOR)
		r->same_bits = type_has(r, MPI_BAND);
}

unsigned coll_reduction_holds(const struct coll_reduction *r, size_t count, int ranks)
{
	return (r->commutes ? COLL_COMMUTES : 0) | (r->same_bits ? COLL_SAME_BITS : 0) |
	       (count >= (size_t)ranks ? COLL_DIVIDES : 0);
}

/* ---- Applying them -------------------------------------------------------------------------- */

enum { CALL_BYTES = 1 << 30 };	/* most bytes of a call: its number of elements is an int */

void coll_apply(struct coll *k, const struct coll_reduction *r, const void *in, void *inout,
		size_t count)
{
	const char *from = in;
	char *to = inout;
	const size_t most = r->type->size < CALL_BYTES ? CALL_BYTES / r->type->size : 1;
	size_t n;
	int rc = MPI_SUCCESS;

	/* After an error the operands may be anything. */
	if (!count || k->error)
		return;
	layer_leave();
	for (; count && rc == MPI_SUCCESS; count -= n) {
		n = count < most ? count : most;
		rc = native.Reduce_local(from, to, (int)n, r->handle, r->op);
		from += (MPI_Aint)n * r->type->extent;
		to += (MPI_Aint)n * r->type->extent;
	}
	layer_enter();
	if (unlikely(rc != MPI_SUCCESS))
		coll_fail(k, rc);
}

enum { PIECE_BYTES = 16 << 10 };

/* MPI combines into its second operand, which is copied piece by piece while it is in the cache. */
void coll_combine(struct coll *k, const struct coll_reduction *r, const void *left, void *right,
		  void *to, size_t count)
{
	size_t piece = r->type->size < PIECE_BYTES ? PIECE_BYTES / r->type->size : 1, at, n;
	struct coll_block part;

	if (to == right) {
		coll_apply(k, r, left, to, count);
		return;
	}
	for (at = 0; at < count; at += n) {
		n = count - at < piece ? count - at : piece;
		part = coll_elements(r, to, at, n);
		coll_copy(k, coll_elements(r, right, at, n), part);
		coll_apply(k, r, (const char *)left + (MPI_Aint)at * r->type->extent, part.buf, n);
	}
}

/* ---- Vectors -------------------------------------------------------------------------------- */

enum { ALIGNMENT = 64 };

/*
 * Data reaches from the first or, where the extent is negative, the last element's
 * true_lb on.  The buffer must be aligned, not its first byte of data.
 */
void *coll_vector(struct coll *k, const struct dtype *type, size_t count)
{
	MPI_Aint last = count ? (MPI_Aint)(count - 1) * type->extent : 0;
	MPI_Aint lo = (last < 0 ? last : 0) + type->true_lb;
	MPI_Aint hi = (last > 0 ? last : 0) + type->true_lb + type->true_extent;
	uintptr_t block = (uintptr_t)coll_temp(k, (size_t)(hi - lo) + ALIGNMENT);

	return (void *)((block - (uintptr_t)lo + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

/* ---- Ranks that are no power of two --------------------------------------------------------- */

void *coll_fold_in(struct coll *k, const struct coll_reduction *r, struct coll_fold *f, void *mine,
		   void *acc, void *tmp, size_t count)
{
	f->ranks = 1;
	while (f->ranks <= k->size / 2)
		f->ranks *= 2;
	f->pairs = k->size - f->ranks;
	if (k->rank >= 2 * f->pairs) {
		f->rank = k->rank - f->pairs;
	} else if (k->rank % 2) {
		coll_recv(k, coll_elements(r, tmp, 0, count), k->rank - 1);
		coll_combine(k, r, tmp, mine, acc, count);
		f->rank = k->rank / 2;
		return acc;
	} else {
		coll_send(k, coll_elements(r, mine, 0, count), k->rank + 1);
		f->rank = -1;
	}
	return mine;
}

void coll_fold_out(struct coll *k, const struct coll_reduction *r, const struct coll_fold *f,
		   void *acc, size_t count)
{
	if (k->rank >= 2 * f->pairs)
		return;
	if (k->rank % 2)
		coll_send(k, coll_elements(r, acc, 0, count), k->rank - 1);
	else
		coll_recv(k, coll_elements(r, acc, 0, count), k->rank + 1);
}

void coll_halve(struct coll *k, const struct coll_reduction *r, const struct coll_fold *f,
		void *mine, void *acc, void *tmp, size_t count)
{
	int half, bit, lo = 0, mid, partner, keep, give;
	struct coll_block own, theirs;

	for (half = f->ranks / 2, bit = 1; half; half /= 2, bit *= 2) {
		mid = lo + half;
		partner = coll_fold_real(f, f->rank ^ bit);
		keep = f->rank & bit ? mid : lo;
		give = f->rank & bit ? lo : mid;
		own = coll_parts(r, mine, count, f->ranks, keep, keep + half);
		theirs = coll_parts(r, mine == acc ? tmp : acc, count, f->ranks, keep, keep + half);
		coll_exchange(k, coll_parts(r, mine, count, f->ranks, give, give + half), partner,
			      theirs, partner);
		if (mine == acc)
			coll_apply(k, r, theirs.buf, own.buf, own.count);
		else
			coll_apply(k, r, own.buf, theirs.buf, own.count);
		mine = acc;
		lo = keep;
	}
}
