/*
 * reduce_suite.c - reductions: every predefined type and operation against the library's,
 * operations of a program against their definition, in the order of ranks.
 *
 * Values are such that any order of sums and products is exact.
 */
#include "against.h"

/* ---- Types and operations ------------------------------------------------------------------- */

enum { ORDER = 1, ARITHMETIC = 2, LOGICAL = 4, BITS = 8, PLACE = 16, USER = 32 };
enum value { BITS_OF_ANY_KIND, TRUTH, SINGLE, DOUBLE, LONGER, SHORT, INT, LONG };

struct element {
	const char *name;
	MPI_Datatype type;
	int bytes;			/* from one element to the next */
	int ops;
	enum value value;
	int value_bytes, values;	/* bytes of each value; a complex number has two */
	int index_at;			/* place of the int after it, or 0 */
};

#define INTEGER(t, c, ops) {#t, t, sizeof(c), ops, BITS_OF_ANY_KIND, sizeof(c), 1, 0}
#define ALL (ORDER | ARITHMETIC | LOGICAL | BITS)
#define NUMBER(t, c, v, n, ops) {#t, t, n * sizeof(c), ops, v, sizeof(c), n, 0}
/* The int is at the first place that its alignment, or the value's, allows. */
#define BEHIND(c) (sizeof(c) < sizeof(int) ? sizeof(int) : sizeof(c))
#define PAIR(t, c, v) {#t, t, 2 * BEHIND(c), PLACE, v, sizeof(c), 1, BEHIND(c)}

static const struct element known[] = {
	INTEGER(MPI_SIGNED_CHAR, char, ALL), INTEGER(MPI_UNSIGNED_CHAR, char, ALL),
	INTEGER(MPI_SHORT, short, ALL), INTEGER(MPI_UNSIGNED_SHORT, short, ALL),
	INTEGER(MPI_INT, int, ALL), INTEGER(MPI_UNSIGNED, int, ALL | USER),
	INTEGER(MPI_LONG, long, ALL), INTEGER(MPI_UNSIGNED_LONG, long, ALL),
	INTEGER(MPI_LONG_LONG, long long, ALL), INTEGER(MPI_UNSIGNED_LONG_LONG, long long, ALL),
	INTEGER(MPI_INT8_T, int8_t, ALL), INTEGER(MPI_UINT8_T, int8_t, ALL),
	INTEGER(MPI_INT16_T, int16_t, ALL), INTEGER(MPI_UINT16_T, int16_t, ALL),
	INTEGER(MPI_INT32_T, int32_t, ALL), INTEGER(MPI_UINT32_T, int32_t, ALL),
	INTEGER(MPI_INT64_T, int64_t, ALL), INTEGER(MPI_UINT64_T, int64_t, ALL),
	INTEGER(MPI_AINT, MPI_Aint, ORDER | ARITHMETIC | BITS),
	INTEGER(MPI_OFFSET, MPI_Offset, ORDER | ARITHMETIC | BITS),
	INTEGER(MPI_COUNT, MPI_Count, ORDER | ARITHMETIC | BITS),
	INTEGER(MPI_BYTE, char, BITS),
	NUMBER(MPI_C_BOOL, bool, TRUTH, 1, LOGICAL),
	NUMBER(MPI_FLOAT, float, SINGLE, 1, ORDER | ARITHMETIC),
	NUMBER(MPI_DOUBLE, double, DOUBLE, 1, ORDER | ARITHMETIC),
	NUMBER(MPI_LONG_DOUBLE, long double, LONGER, 1, ORDER | ARITHMETIC),
	NUMBER(MPI_C_FLOAT_COMPLEX, float, SINGLE, 2, ARITHMETIC),
	NUMBER(MPI_C_DOUBLE_COMPLEX, double, DOUBLE, 2, ARITHMETIC),
	PAIR(MPI_2INT, int, INT), PAIR(MPI_SHORT_INT, short, SHORT), PAIR(MPI_LONG_INT, long, LONG),
	PAIR(MPI_FLOAT_INT, float, SINGLE), PAIR(MPI_DOUBLE_INT, double, DOUBLE),
	/* Types of Fortran, by size; a library may lack some. */
	NUMBER(MPI_REAL4, float, SINGLE, 1, ORDER | ARITHMETIC),
	NUMBER(MPI_REAL8, double, DOUBLE, 1, ORDER | ARITHMETIC),
	INTEGER(MPI_INTEGER4, int32_t, ORDER | ARITHMETIC | BITS),
	INTEGER(MPI_INTEGER8, int64_t, ORDER | ARITHMETIC | BITS),
	NUMBER(MPI_COMPLEX16, double, DOUBLE, 2, ARITHMETIC),
#ifdef MPI_INTEGER1
	INTEGER(MPI_INTEGER1, int8_t, ORDER | ARITHMETIC | BITS),
	INTEGER(MPI_INTEGER2, int16_t, ORDER | ARITHMETIC | BITS),
#endif
#ifdef MPI_COMPLEX8
	NUMBER(MPI_COMPLEX8, float, SINGLE, 2, ARITHMETIC),
#endif
#ifdef MPI_LOGICAL4
	INTEGER(MPI_LOGICAL4, int32_t, LOGICAL), INTEGER(MPI_LOGICAL8, int64_t, LOGICAL),
#endif
#ifdef MPI_CXX_BOOL
	NUMBER(MPI_CXX_BOOL, bool, TRUTH, 1, LOGICAL),
	NUMBER(MPI_CXX_DOUBLE_COMPLEX, double, DOUBLE, 2, ARITHMETIC),
#endif
	/* Types by precision, made when the suite begins. */
	NUMBER(MPI_DATATYPE_NULL, float, SINGLE, 1, ORDER | ARITHMETIC),
	NUMBER(MPI_DATATYPE_NULL, double, DOUBLE, 1, ORDER | ARITHMETIC),
	NUMBER(MPI_DATATYPE_NULL, double, DOUBLE, 2, ARITHMETIC),
	INTEGER(MPI_DATATYPE_NULL, int64_t, ORDER | ARITHMETIC | BITS),
};
enum { ELEMENTS = sizeof(known) / sizeof(known[0]), BY_PRECISION = 4 };
enum { OPS = 13, MODULUS = 10007 };
static struct element elements[ELEMENTS];

static void elements_make(void)
{
	struct element *last = elements + ELEMENTS - BY_PRECISION;

	memcpy(elements, known, sizeof(elements));
	MPI_Type_create_f90_real(6, 37, &last[0].type);
	MPI_Type_create_f90_real(15, 307, &last[1].type);
	MPI_Type_create_f90_complex(15, 307, &last[2].type);
	MPI_Type_create_f90_integer(18, &last[3].type);
	last[0].name = "create_f90_real(6)";
	last[1].name = "create_f90_real(15)";
	last[2].name = "create_f90_complex(15)";
	last[3].name = "create_f90_integer(18)";
}

/* Commutes. */
static void sum_modulo(void *in, void *inout, int *count, MPI_Datatype *type)
{
	const unsigned *a = in;
	unsigned *b = inout;
	int i;

	for (i = 0; i < *count; i++)
		b[i] = (a[i] % MODULUS + b[i] % MODULUS) % MODULUS;
}

static struct { MPI_Op op; int needs; } ops[OPS];

static void ops_make(void)
{
	static const int needs[OPS] = {ORDER, ORDER, ARITHMETIC, ARITHMETIC, LOGICAL, LOGICAL,
				       LOGICAL, BITS, BITS, BITS, PLACE, PLACE, USER};
	const MPI_Op all[OPS - 1] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_LOR,
				     MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
	int i;

	for (i = 0; i < OPS; i++) {
		ops[i].needs = needs[i];
		if (i < OPS - 1)
			ops[i].op = all[i];
		else
			MPI_Op_create(sum_modulo, 1, &ops[i].op);
	}
}

/* ---- Values --------------------------------------------------------------------------------- */

/* A small number from random bits. */
static void value_put(enum value v, unsigned char *at, unsigned random)
{
	int small = (int)(random % 5) - 2;
	long double longer = small;
	double twice = small;
	float single = (float)small;
	bool truth = small > 0;
	short s = (short)small;
	long l = small;

	switch (v) {
	case BITS_OF_ANY_KIND:
		break;
	case TRUTH:
		memcpy(at, &truth, sizeof(truth));
		break;
	case SINGLE:
		memcpy(at, &single, sizeof(single));
		break;
	case DOUBLE:
		memcpy(at, &twice, sizeof(twice));
		break;
	case LONGER:
		memcpy(at, &longer, sizeof(longer));
		break;
	case SHORT:
		memcpy(at, &s, sizeof(s));
		break;
	case INT:
		memcpy(at, &small, sizeof(small));
		break;
	case LONG:
		memcpy(at, &l, sizeof(l));
		break;
	}
}

/*
 * Random bytes become values of this kind.  Sums of short integers stay within them: Open
 * MPI 4.1 saturates some, by vector instructions, and then the order counts.
 */
static void values_put(const struct element *e, unsigned char *p, int count, bool sums)
{
	bool short_sums = sums && e->value == BITS_OF_ANY_KIND && e->bytes < (int)sizeof(int);
	unsigned char byte;
	int i, k, index;
	short two;

	for (i = 0; i < count; i++, p += e->bytes) {
		unsigned random = (unsigned)p[0] << 8 | p[e->bytes - 1];

		for (k = 0; k < e->values; k++)
			value_put(e->value, p + k * e->value_bytes, random >> (3 * k));
		index = (int)(random % 7);
		if (e->index_at)
			memcpy(p + e->index_at, &index, sizeof(index));
		/* Half of them zero, for logical operations. */
		if (e->value == BITS_OF_ANY_KIND && random % 2)
			memset(p, 0, (size_t)e->bytes);
		if (!short_sums)
			continue;
		byte = (unsigned char)(random % (128 / AGAINST_RANKS));
		two = byte;
		memcpy(p, e->bytes == 1 ? (void *)&byte : (void *)&two, (size_t)e->bytes);
	}
}

static long double value_get(enum value v, const unsigned char *at)
{
	long double longer;
	double twice;
	float single;

	switch (v) {
	case SINGLE:
		memcpy(&single, at, sizeof(single));
		return single;
	case DOUBLE:
		memcpy(&twice, at, sizeof(twice));
		return twice;
	default:
		memcpy(&longer, at, sizeof(longer));
		return longer;
	}
}

/* Floating-point values are compared as such: zeros have signs, long double has idle bytes. */
static bool element_same(const struct element *e, const unsigned char *p, const unsigned char *q)
{
	bool same = true, floats = e->value == SINGLE || e->value == DOUBLE || e->value == LONGER;
	int k;

	for (k = 0; k < e->values; k++) {
		const unsigned char *a = p + k * e->value_bytes, *b = q + k * e->value_bytes;

		same = same && (floats ? value_get(e->value, a) == value_get(e->value, b)
				       : !memcmp(a, b, (size_t)e->value_bytes));
	}
	return same && (!e->index_at || !memcmp(p + e->index_at, q + e->index_at, sizeof(int)));
}

/* ---- Calls ---------------------------------------------------------------------------------- */

enum call { ALLREDUCE, REDUCE, SCAN, EXSCAN, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, CALLS };
static const char *const call_names[] = {
	"Allreduce", "Reduce", "Scan", "Exscan", "Reduce_scatter", "Reduce_scatter_block",
};

struct plan {
	enum call call;
	MPI_Datatype type;
	MPI_Op op;
	int count;			/* elements of a vector; of all parts together */
	int root;
	bool in_place;
	int parts[AGAINST_RANKS];
};

/* Uneven parts, some empty; even ones for the call that knows no others. */
static void parts_set(struct plan *p)
{
	int n = against_size, each = p->count / n, i, from;

	for (i = 0; i < n; i++)
		p->parts[i] = each;
	if (p->call == REDUCE_SCATTER_BLOCK) {
		p->count = each * n;
		return;
	}
	p->parts[n - 1] += p->count - each * n;
	for (i = 0; i + 1 < n; i += 2) {
		from = p->parts[i] - p->parts[i] * (int)((against_round + (unsigned)i) % 3) / 2;
		p->parts[i + 1] += p->parts[i] - from;
		p->parts[i] = from;
	}
}

/* in holds what is sent, or buf does. */
static void call_run(const struct plan *p, MPI_Comm comm, void *in, void *buf)
{
	void *placed = p->in_place ? MPI_IN_PLACE : in;

	switch (p->call) {
	case ALLREDUCE:
		MPI_Allreduce(placed, buf, p->count, p->type, p->op, comm);
		break;
	case REDUCE:
		MPI_Reduce(against_rank == p->root ? placed : in, buf, p->count, p->type, p->op,
			   p->root, comm);
		break;
	case SCAN:
		MPI_Scan(placed, buf, p->count, p->type, p->op, comm);
		break;
	case EXSCAN:
		MPI_Exscan(placed, buf, p->count, p->type, p->op, comm);
		break;
	case REDUCE_SCATTER:
		MPI_Reduce_scatter(placed, buf, p->parts, p->type, p->op, comm);
		break;
	case REDUCE_SCATTER_BLOCK:
		MPI_Reduce_scatter_block(placed, buf, p->parts[0], p->type, p->op, comm);
		break;
	case CALLS:
		break;
	}
}

/* How many elements of the result mean something here. */
static int result_count(const struct plan *p)
{
	switch (p->call) {
	case REDUCE:
		return against_rank == p->root ? p->count : 0;
	case EXSCAN:
		return against_rank ? p->count : 0;
	case REDUCE_SCATTER:
	case REDUCE_SCATTER_BLOCK:
		return p->parts[against_rank];
	default:
		return p->count;
	}
}

/*
 * The library's result, never in place: MPICH 4.0 crashes then in MPI_Reduce of more than a few
 * kilobytes to a root other than rank 0.
 */
static void library_run(const struct plan *p, void *in, void *placed, void *result)
{
	struct plan q = *p;

	if (p->call == REDUCE && p->in_place) {
		q.in_place = false;
		in = against_rank == p->root ? placed : in;
	}
	call_run(&q, against_native, in, result);
}

/* ---- Predefined operations ------------------------------------------------------------------ */

static void predefined_run(const struct element *e, const struct plan *p)
{
	size_t room = 2 * AGAINST_MARGIN + (size_t)p->count * (size_t)e->bytes;
	unsigned char *in = against_given + AGAINST_MARGIN, *a = against_mine + AGAINST_MARGIN;
	unsigned char *b = against_theirs + AGAINST_MARGIN;
	char what[80];
	int i;

	against_fill(room);
	values_put(e, in, p->count, p->op == MPI_SUM);
	values_put(e, a, p->count, p->op == MPI_SUM);
	memcpy(b, a, (size_t)p->count * (size_t)e->bytes);
	memcpy(against_kept, against_given, room);
	snprintf(what, sizeof(what), "%s of %d %s%s", call_names[p->call], p->count, e->name,
		 p->in_place ? ", in place" : "");
	library_run(p, in, a, b);
	call_run(p, against_ours, in, a);
	against_check_kept(what, room);
	for (i = 0; i < result_count(p); i++)
		CHECK(element_same(e, a + i * e->bytes, b + i * e->bytes),
		      "%s: element %d (round %lu, see against.h)", what, i, against_round);
	/* Bytes after the buffer stay as they are. */
	for (i = 0; i < AGAINST_MARGIN; i++)
		CHECK_ROUND(a[p->count * e->bytes + i] == b[p->count * e->bytes + i], what);
}

static int draw_count(void)
{
	static const int limits[] = {0, 1, 2, 3, 7, 16, 100, 1023, 2048, 2049, 5000, 20000, 300000};

	return limits[against_draw(against_draw(4) ? 10 : 13)];
}

/* Each type with each operation that it has, by a call that is drawn. */
static void predefined(MPI_Comm comm)
{
	unsigned long rounds = (against_rounds(AGAINST_ROUNDS) + 49) / 50, i;
	struct plan p;
	int e, o;

	against_begin(comm);
	ops_make();
	elements_make();
	for (i = 0; i < rounds; i++)
		for (e = 0; e < ELEMENTS; e++)
			for (o = 0; o < OPS; o++) {
				if (!(elements[e].ops & ops[o].needs) ||
				    elements[e].type == MPI_DATATYPE_NULL)
					continue;
				against_round_begin(i, (unsigned)(e * OPS + o));
				p.call = (enum call)against_draw(CALLS);
				p.type = elements[e].type;
				p.op = ops[o].op;
				p.count = draw_count();
				p.root = (int)against_draw((unsigned)against_size);
				p.in_place = against_draw(3) == 0;
				parts_set(&p);
				predefined_run(&elements[e], &p);
			}
	MPI_Op_free(&ops[OPS - 1].op);
	against_end();
}

/* ---- An operation that does not commute: products of 2 x 2 matrices ------------------------- */

struct matrix { unsigned v[4]; };

static struct matrix product(struct matrix a, struct matrix b)
{
	struct matrix c;
	int i;

	for (i = 0; i < 4; i++) {
		const unsigned *row = a.v + i / 2 * 2, *column = b.v + i % 2;

		c.v[i] = (row[0] * column[0] + row[1] * column[2]) % MODULUS;
	}
	return c;
}

/* Wherever the type has its data. */
static void multiply(void *in, void *inout, int *count, MPI_Datatype *type)
{
	MPI_Aint lb, extent, at, bytes;
	struct matrix a, b;
	int i;

	MPI_Type_get_extent(*type, &lb, &extent);
	MPI_Type_get_true_extent(*type, &at, &bytes);
	for (i = 0; i < *count; i++, at += extent) {
		memcpy(&a, (char *)in + at, sizeof(a));
		memcpy(&b, (char *)inout + at, sizeof(b));
		b = product(a, b);
		memcpy((char *)inout + at, &b, sizeof(b));
	}
}

static struct matrix matrix_of(int rank, int element)
{
	uint64_t x = (uint64_t)(unsigned)rank * 0x9e3779b97f4a7c15u +
		     (unsigned)element * 0xff51afd7ed558ccdu + against_round * 0xda942042e4dd58b5u;
	struct matrix m;
	int i;

	for (i = 0; i < 4; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		m.v[i] = (unsigned)(x >> 33) % MODULUS;
	}
	return m;
}

/* From rank 0 to last. */
static struct matrix chain(int last, int element)
{
	struct matrix all = matrix_of(0, element);
	int r;

	for (r = 1; r <= last; r++)
		all = product(all, matrix_of(r, element));
	return all;
}

/* Data in the middle of an element, and before its beginning. */
static void matrix_types(MPI_Datatype types[3])
{
	int four = 4;
	MPI_Aint at = 8, before = -16;
	MPI_Datatype t;

	MPI_Type_contiguous(4, MPI_UNSIGNED, &types[0]);
	MPI_Type_create_hindexed(1, &four, &at, MPI_UNSIGNED, &t);
	MPI_Type_create_resized(t, 0, 40, &types[1]);
	MPI_Type_free(&t);
	MPI_Type_create_hindexed(1, &four, &before, MPI_UNSIGNED, &t);
	MPI_Type_create_resized(t, -16, 24, &types[2]);
	MPI_Type_free(&t);
	MPI_Type_commit(&types[0]);
	MPI_Type_commit(&types[1]);
	MPI_Type_commit(&types[2]);
}

/* The beginning of this rank's elements in the result, and the last rank that they hold. */
static void matrix_check(const struct plan *p, const unsigned char *data, MPI_Aint extent)
{
	int last = p->call == SCAN ? against_rank :
		   p->call == EXSCAN ? against_rank - 1 : against_size - 1;
	int first = 0, i;
	struct matrix want;

	if (p->call == REDUCE_SCATTER || p->call == REDUCE_SCATTER_BLOCK)
		for (i = 0; i < against_rank; i++)
			first += p->parts[i];
	for (i = 0; i < result_count(p); i++) {
		want = chain(last, first + i);
		CHECK(!memcmp(data + i * extent, &want, sizeof(want)),
		      "%s of %d matrices%s: element %d (round %lu, see against.h)",
		      call_names[p->call], p->count, p->in_place ? ", in place" : "", i,
		      against_round);
	}
}

static void matrix_run(const struct plan *p)
{
	MPI_Aint lb, extent, at, bytes;
	unsigned char *in = against_given + AGAINST_MARGIN, *buf = against_mine + AGAINST_MARGIN;
	bool placed = p->in_place && (p->call != REDUCE || against_rank == p->root);
	struct matrix m;
	size_t room;
	int i;

	MPI_Type_get_extent(p->type, &lb, &extent);
	MPI_Type_get_true_extent(p->type, &at, &bytes);
	room = 2 * AGAINST_MARGIN + (size_t)p->count * (size_t)extent;
	against_fill(room);
	for (i = 0; i < p->count; i++) {
		m = matrix_of(against_rank, i);
		memcpy((placed ? buf : in) + at + i * extent, &m, sizeof(m));
	}
	memcpy(against_kept, against_given, room);
	call_run(p, against_ours, in, buf);
	against_check_kept(call_names[p->call], room);
	matrix_check(p, buf + at, extent);
}

static void matrices(MPI_Comm comm)
{
	static const int counts[] = {0, 1, 2, 5, 30, 511, 513, 2000, 20000};
	unsigned long rounds = against_rounds(AGAINST_ROUNDS), i;
	MPI_Datatype types[3];
	struct plan p;
	MPI_Op op;

	against_begin(comm);
	matrix_types(types);
	MPI_Op_create(multiply, 0, &op);
	for (i = 0; i < rounds; i++) {
		against_round_begin(i, 3);
		p.call = (enum call)against_draw(CALLS);
		p.type = types[against_draw(3)];
		p.op = op;
		p.count = counts[against_draw(against_draw(4) ? 7 : 9)];
		p.root = (int)against_draw((unsigned)against_size);
		p.in_place = against_draw(3) == 0;
		parts_set(&p);
		matrix_run(&p);
	}
	MPI_Op_free(&op);
	for (i = 0; i < 3; i++)
		MPI_Type_free(&types[i]);
	against_end();
}

/* All ranks get the same bits, whatever the order in which rounding happens. */
static void same_bits(MPI_Comm comm)
{
	enum { COUNT = 30000 };
	double *in = malloc(COUNT * sizeof(*in)), *out = malloc(COUNT * sizeof(*out));
	double *first = malloc(COUNT * sizeof(*first));
	int i, n;

	CHECK(in && out && first);
	for (i = 0; i < COUNT; i++)
		in[i] = 1.0 / (1 + i + suite_rank * 7919);
	for (n = 1; n <= COUNT; n = n * 7 + 3) {
		MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, comm);
		memcpy(first, out, (size_t)n * sizeof(*first));
		MPI_Bcast(first, n, MPI_DOUBLE, 0, comm);
		CHECK(!memcmp(first, out, (size_t)n * sizeof(*first)), "%d elements", n);
	}
	free(in);
	free(out);
	free(first);
}

static const struct suite_case cases[] = {
	{.name = "predefined", .run = predefined, .min_ranks = 1,
	 .native_defect = "MPICH 4.0 crashes in MPI_Reduce in place, see library_run",
	 .collective = true},
	{.name = "matrices", .run = matrices, .min_ranks = 1,
	 .native_defect = "MPICH 4.0: wrong products by MPI_Reduce_scatter_block, too",
	 .collective = true},
	{.name = "same_bits", .run = same_bits, .min_ranks = 1},
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, MPI_THREAD_SINGLE, cases);
}
