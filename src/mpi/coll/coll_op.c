/* coll_op.c - operations of reductions: what MPI has of them, and how they are applied. */
#include "coll.h"

#include <limits.h>

/* ---- Which operations, for which types [MPI 4.0, 6.9.2 and 6.9.4] --------------------------- */

enum {
	ORDER = 1,		/* MPI_MAX, MPI_MIN */
	ARITHMETIC = 2,		/* MPI_SUM, MPI_PROD */
	LOGICAL = 4,		/* MPI_LAND, MPI_LOR, MPI_LXOR */
	BITS = 8,		/* MPI_BAND, MPI_BOR, MPI_BXOR */
	PLACE = 16,		/* MPI_MAXLOC, MPI_MINLOC */
	NO_REDUCTION = 32,	/* MPI_REPLACE, MPI_NO_OP: for one-sided calls */
	C_INTEGER = ORDER | ARITHMETIC | LOGICAL | BITS,
	F_INTEGER = ORDER | ARITHMETIC | BITS,	/* and MPI_AINT, MPI_OFFSET, MPI_COUNT */
	FLOATING = ORDER | ARITHMETIC,
};

static const struct { MPI_Op op; unsigned char bit; } operations[] = {
	{MPI_SUM, ARITHMETIC}, {MPI_MAX, ORDER}, {MPI_MIN, ORDER}, {MPI_PROD, ARITHMETIC},
	{MPI_LAND, LOGICAL}, {MPI_LOR, LOGICAL}, {MPI_LXOR, LOGICAL},
	{MPI_BAND, BITS}, {MPI_BOR, BITS}, {MPI_BXOR, BITS},
	{MPI_MAXLOC, PLACE}, {MPI_MINLOC, PLACE},
	{MPI_REPLACE, NO_REDUCTION}, {MPI_NO_OP, NO_REDUCTION},
};

/* Types that a library may lack are not here: it does their reductions itself. */
static const struct { MPI_Datatype type; unsigned char bits; } types[] = {
	{MPI_INT, C_INTEGER}, {MPI_LONG, C_INTEGER}, {MPI_SHORT, C_INTEGER},
	{MPI_UNSIGNED, C_INTEGER}, {MPI_UNSIGNED_LONG, C_INTEGER},
	{MPI_UNSIGNED_SHORT, C_INTEGER}, {MPI_LONG_LONG_INT, C_INTEGER},
	{MPI_UNSIGNED_LONG_LONG, C_INTEGER}, {MPI_SIGNED_CHAR, C_INTEGER},
	{MPI_UNSIGNED_CHAR, C_INTEGER},
	{MPI_INT8_T, C_INTEGER}, {MPI_INT16_T, C_INTEGER}, {MPI_INT32_T, C_INTEGER},
	{MPI_INT64_T, C_INTEGER}, {MPI_UINT8_T, C_INTEGER}, {MPI_UINT16_T, C_INTEGER},
	{MPI_UINT32_T, C_INTEGER}, {MPI_UINT64_T, C_INTEGER},
	{MPI_INTEGER, F_INTEGER}, {MPI_AINT, F_INTEGER}, {MPI_OFFSET, F_INTEGER},
	{MPI_COUNT, F_INTEGER},
	{MPI_FLOAT, FLOATING}, {MPI_DOUBLE, FLOATING}, {MPI_LONG_DOUBLE, FLOATING},
	{MPI_REAL, FLOATING}, {MPI_DOUBLE_PRECISION, FLOATING},
	{MPI_LOGICAL, LOGICAL}, {MPI_C_BOOL, LOGICAL},
	{MPI_COMPLEX, ARITHMETIC}, {MPI_DOUBLE_COMPLEX, ARITHMETIC},
	{MPI_C_FLOAT_COMPLEX, ARITHMETIC}, {MPI_C_DOUBLE_COMPLEX, ARITHMETIC},
	{MPI_C_LONG_DOUBLE_COMPLEX, ARITHMETIC},
	{MPI_BYTE, BITS},
	{MPI_2INT, PLACE}, {MPI_FLOAT_INT, PLACE}, {MPI_DOUBLE_INT, PLACE},
	{MPI_LONG_INT, PLACE}, {MPI_SHORT_INT, PLACE}, {MPI_LONG_DOUBLE_INT, PLACE},
	{MPI_2INTEGER, PLACE}, {MPI_2REAL, PLACE}, {MPI_2DOUBLE_PRECISION, PLACE},
};

unsigned char coll_operations_of(MPI_Datatype type)
{
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return types[i].bits;
	return 0;
}

bool coll_reduction_set(struct coll_reduction *r, MPI_Op op, MPI_Datatype type)
{
	int commutes = 0;
	size_t i;

	r->op = op;
	r->handle = type;
	r->type = dtype_lookup(type);
	if (!r->type || op == MPI_OP_NULL)
		return false;
	for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (operations[i].op == op) {
			r->commutes = true;
			return operations[i].bit & r->type->reduces;
		}
	if (native.Op_commutative(op, &commutes) != MPI_SUCCESS)
		return false;
	r->commutes = commutes;
	return true;
}

unsigned coll_reduction_holds(const struct coll_reduction *r, size_t count, int ranks)
{
	return (r->commutes ? COLL_COMMUTES : 0) | (count >= (size_t)ranks ? COLL_DIVIDES : 0);
}

/* ---- Applying them -------------------------------------------------------------------------- */

void coll_apply(struct coll *k, const struct coll_reduction *r, const void *in, void *inout,
		size_t count)
{
	const char *from = in;
	char *to = inout;
	size_t n;
	int rc = MPI_SUCCESS;

	if (!count)
		return;
	layer_leave();
	for (; count && rc == MPI_SUCCESS; count -= n) {
		n = count < INT_MAX ? count : INT_MAX;
		rc = native.Reduce_local(from, to, (int)n, r->handle, r->op);
		from += (MPI_Aint)n * r->type->extent;
		to += (MPI_Aint)n * r->type->extent;
	}
	layer_enter();
	if (unlikely(rc != MPI_SUCCESS))
		coll_fail(k, rc);
}

/* ---- Vectors -------------------------------------------------------------------------------- */

enum { ALIGNMENT = 64 };

/*
 * Data reaches from the first or, where the extent is negative, the last element's
 * true_lb on.  The buffer, not its first byte of data, is what must be aligned.
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

void coll_fold_in(struct coll *k, const struct coll_reduction *r, struct coll_fold *f, void *acc,
		  void *tmp, size_t count)
{
	f->ranks = 1;
	while (f->ranks <= k->size / 2)
		f->ranks *= 2;
	f->pairs = k->size - f->ranks;
	if (k->rank >= 2 * f->pairs) {
		f->rank = k->rank - f->pairs;
	} else if (k->rank % 2) {
		coll_recv(k, coll_elements(r, tmp, 0, count), k->rank - 1);
		coll_apply(k, r, tmp, acc, count);
		f->rank = k->rank / 2;
	} else {
		coll_send(k, coll_elements(r, acc, 0, count), k->rank + 1);
		f->rank = -1;
	}
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
		void *acc, void *tmp, size_t count)
{
	int half, lo = 0, mid, partner, keep, give;
	struct coll_block mine, theirs;

	for (half = f->ranks / 2; half; half /= 2) {
		mid = lo + half;
		partner = coll_fold_real(f, f->rank ^ half);
		keep = f->rank & half ? mid : lo;
		give = f->rank & half ? lo : mid;
		mine = coll_parts(r, acc, count, f->ranks, keep, keep + half);
		theirs = coll_parts(r, tmp, count, f->ranks, keep, keep + half);
		coll_exchange(k, coll_parts(r, acc, count, f->ranks, give, give + half), partner,
			      theirs, partner);
		coll_apply(k, r, theirs.buf, mine.buf, mine.count);
		lo = keep;
	}
}
