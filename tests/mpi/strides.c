/*
 * strides.c - types that librailmpi packs (src/mpi/type/strides.h): their construction and the
 * places of their bytes.  The truth is a list of places, made along with each type from the
 * definition of its constructor; the MPI library, which packs some types wrongly, is asked for
 * extents only.
 *
 *	strides [SEED [TYPES]]	on one rank: so many drawn types (1, 5000)
 */
#include "mpi/type/strides.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/type/strides_copy.h"
#include "random.h"

/* The functions that strides.c calls; the layer has all of them (native.c). */
struct native native;

enum { AREA = 1 << 16, MIDDLE = AREA / 2, GUARD = 64, PARTS = 5, DEPTH = 4, COUNT_MAX = 5 };

static unsigned char area[AREA], other[AREA];
static unsigned char packed[AREA + GUARD];
static uint64_t state;
static unsigned long seed = 1, types = 5000, number;

#define CHECK(condition, ...)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "seed %lu, type %lu: %s: ", seed, number, #condition);     \
			fprintf(stderr, __VA_ARGS__);                                              \
			fputc('\n', stderr);                                                       \
			MPI_Abort(MPI_COMM_WORLD, 1);                                              \
		}                                                                                  \
	} while (0)

/* 0 to n - 1. */
static unsigned draw(unsigned n)
{
	return (unsigned)random_below(&state, n);
}

static int between(int low, int high)
{
	return low + (int)draw((unsigned)(high - low + 1));
}

/* ---- Where the bytes are ------------------------------------------------------------------- */

/* Byte i of an element's data lies at at[i]; a type of more bytes than an area is not compared. */
struct places {
	long size, at[AREA];
};

static struct places made, old;		/* places of the type, and of the types in it */

static void put(struct places *p, long at, int bytes)
{
	int i;

	for (i = 0; i < bytes; i++, p->size++)
		if (p->size < AREA)
			p->at[p->size] = at + i;
}

/* Add elements of the old type from `at` on. */
static void put_old(long at, long elements, MPI_Aint extent)
{
	long e, i;

	for (e = 0; e < elements && made.size < AREA; e++)
		for (i = 0; i < old.size && i < AREA; i++)
			put(&made, at + e * extent + old.at[i], 1);
}

/* ---- Types ------------------------------------------------------------------------------- */

static MPI_Datatype basic(void)
{
	static const struct {
		MPI_Datatype type;
		int first, then, bytes;		/* `first` bytes, then `bytes` more at `then` */
	} of[] = {
		{MPI_BYTE, 1, 0, 0}, {MPI_PACKED, 1, 0, 0}, {MPI_SHORT, 2, 0, 0}, {MPI_INT, 4, 0, 0},
		{MPI_DOUBLE, 8, 0, 0}, {MPI_LONG_DOUBLE, sizeof(long double), 0, 0},
		{MPI_C_DOUBLE_COMPLEX, 16, 0, 0}, {MPI_DOUBLE_INT, 12, 0, 0}, {MPI_SHORT_INT, 2, 4, 4},
	};
	const unsigned i = draw(sizeof(of) / sizeof(*of));
	MPI_Datatype t;

	MPI_Type_dup(of[i].type, &t);
	made.size = 0;
	put(&made, 0, of[i].first);
	put(&made, of[i].then, of[i].bytes);
	return t;
}

static MPI_Datatype vector(MPI_Datatype of, MPI_Aint extent)
{
	int count = between(1, 5), length = between(draw(20) ? 1 : 0, 3), stride = between(-5, 5), i;
	MPI_Aint bytes = stride * extent + (draw(2) ? between(-8, 8) : 0);
	MPI_Datatype t;

	for (i = 0; i < count; i++)
		put_old(i * bytes, length, extent);
#ifdef HAVE_MPI_SEND_C
	if (draw(2) == 0) {
		if (bytes == stride * extent)
			MPI_Type_vector_c(count, length, stride, of, &t);
		else
			MPI_Type_create_hvector_c(count, length, bytes, of, &t);
		return t;
	}
#endif
	if (bytes == stride * extent)
		MPI_Type_vector(count, length, stride, of, &t);
	else
		MPI_Type_create_hvector(count, length, bytes, of, &t);
	return t;
}

/* Lists of displacements, at even distances or not. */
enum { LIST = 6 };

static MPI_Datatype list(MPI_Datatype of, MPI_Aint extent)
{
	int n = between(1, LIST), length = between(1, 3), first = between(-3, 3);
	int step = between(-4, 4), lengths[LIST], places[LIST], i, how = (int)draw(4);
	unsigned even = draw(2) ? 30 : 3;
	MPI_Aint bytes[LIST];
	MPI_Datatype t;

	for (i = 0; i < n; i++) {
		lengths[i] = draw(even) ? length : between(0, 3);
		places[i] = first + i * step + (draw(even) ? 0 : 1);
		bytes[i] = places[i] * extent;
		put_old(bytes[i], how < 2 ? lengths[i] : length, extent);
	}
	switch (how) {
	case 0:
		MPI_Type_indexed(n, lengths, places, of, &t);
		break;
	case 1:
		MPI_Type_create_hindexed(n, lengths, bytes, of, &t);
		break;
	case 2:
		MPI_Type_create_indexed_block(n, length, places, of, &t);
		break;
	default:
		MPI_Type_create_hindexed_block(n, length, bytes, of, &t);
	}
	return t;
}

/* Members of the old type and of others; some close the gaps that the ones before leave. */
static MPI_Datatype structure(MPI_Datatype of, MPI_Aint extent)
{
	int n = between(1, LIST), lengths[LIST], i, e;
	MPI_Datatype members[LIST], t;
	MPI_Aint at[LIST], end = 0;

	for (i = 0; i < n; i++) {
		lengths[i] = between(draw(10) ? 1 : 0, 3);
		members[i] = draw(2) ? of : draw(2) ? MPI_INT : MPI_SHORT_INT;
		at[i] = draw(2) ? end : end + between(-40, 40);
		if (members[i] == of)
			put_old(at[i], lengths[i], extent);
		for (e = 0; e < lengths[i] && members[i] == MPI_INT; e++)
			put(&made, at[i] + 4 * e, 4);
		for (e = 0; e < lengths[i] && members[i] == MPI_SHORT_INT; e++) {
			put(&made, at[i] + 8 * e, 2);
			put(&made, at[i] + 8 * e + 4, 4);
		}
		end = at[i] + lengths[i] * (members[i] == of ? extent : members[i] == MPI_INT ? 4 : 8);
	}
	MPI_Type_create_struct(n, lengths, at, members, &t);
	return t;
}

/* ---- Parts of arrays ------------------------------------------------------------------------- */

enum { DIMS = 3 };

/* The elements of an array in the order of memory; a part of it has those that `has` says. */
static void put_array(int n, const int size[], int order, MPI_Aint extent,
		      int (*has)(int dim, int index))
{
	int all = 1, i, k, d, rest, in;

	for (k = 0; k < n; k++)
		all *= size[k];
	for (i = 0; i < all; i++) {
		for (in = 1, rest = i, k = 0; k < n; k++) {
			d = order == MPI_ORDER_FORTRAN ? k : n - 1 - k;
			in = in && has(d, rest % size[d]);
			rest /= size[d];
		}
		if (in)
			put_old(i * extent, 1, extent);
	}
}

static int part[DIMS], start[DIMS];

static int in_part(int dim, int index)
{
	return index >= start[dim] && index < start[dim] + part[dim];
}

static MPI_Datatype subarray(MPI_Datatype of, MPI_Aint extent)
{
	int size[DIMS], n = between(1, DIMS), k;
	int order = draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	MPI_Datatype t;

	for (k = 0; k < n; k++) {
		part[k] = between(1, 3);
		start[k] = between(0, 2);
		size[k] = start[k] + part[k] + between(0, 2);
	}
	put_array(n, size, order, extent, in_part);
#ifdef HAVE_MPI_SEND_C
	if (draw(4) == 0) {
		MPI_Count s[DIMS], p[DIMS], b[DIMS];

		for (k = 0; k < n; k++) {
			s[k] = size[k];
			p[k] = part[k];
			b[k] = start[k];
		}
		MPI_Type_create_subarray_c(n, s, p, b, order, of, &t);
		return t;
	}
#endif
	MPI_Type_create_subarray(n, size, part, start, order, of, &t);
	return t;
}

static int dealt_by[DIMS], dealt_to[DIMS], dealt_here[DIMS];	/* blocks of so many; ranks; this one */

static int in_hand(int dim, int index)
{
	return index / dealt_by[dim] % dealt_to[dim] == dealt_here[dim];
}

/* A rank's part of an array that is dealt out, in each distribution. */
static MPI_Datatype darray(MPI_Datatype of, MPI_Aint extent)
{
	int size[DIMS], how[DIMS], arg[DIMS], n = between(1, DIMS), k, all = 1, rank = 0;
	int order = draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	MPI_Datatype t;

	for (k = 0; k < n; k++) {
		how[k] = (int[]){MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}[draw(3)];
		dealt_to[k] = how[k] == MPI_DISTRIBUTE_NONE ? 1 : between(1, 3);
		dealt_here[k] = between(0, dealt_to[k] - 1);
		size[k] = between(1, 9);
		arg[k] = MPI_DISTRIBUTE_DFLT_DARG;
		dealt_by[k] = how[k] == MPI_DISTRIBUTE_CYCLIC ? 1 :
			      (size[k] + dealt_to[k] - 1) / dealt_to[k];
		if (how[k] == MPI_DISTRIBUTE_CYCLIC && draw(2))
			arg[k] = dealt_by[k] = between(1, 3);
		all *= dealt_to[k];
		rank = rank * dealt_to[k] + dealt_here[k];
	}
	put_array(n, size, order, extent, in_hand);
#ifdef HAVE_MPI_SEND_C
	if (draw(4) == 0) {
		MPI_Count sizes[DIMS];

		for (k = 0; k < n; k++)
			sizes[k] = size[k];
		MPI_Type_create_darray_c(all, rank, n, sizes, how, arg, dealt_to, order, of, &t);
		return t;
	}
#endif
	MPI_Type_create_darray(all, rank, n, size, how, arg, dealt_to, order, of, &t);
	return t;
}

/* ---- Any type ---------------------------------------------------------------------------------- */

static MPI_Datatype around(MPI_Datatype of)
{
	MPI_Aint lb, extent;
	unsigned how = draw(9);
	MPI_Datatype t;
	int n;

	memcpy(&old, &made, sizeof(old));
	made.size = 0;
	MPI_Type_get_extent(of, &lb, &extent);
	/* Open MPI's bounds of some types without data are no places of memory. */
	if (lb < -AREA || lb > AREA)
		lb = extent = 0;
	/* Nor does it deal out nothing. */
	if (how == 6 && !old.size)
		how = 5;
	switch (how) {
	case 0:
		n = between(1, 4);
		put_old(0, n, extent);
		MPI_Type_contiguous(n, of, &t);
		break;
	case 1:
	case 2:
		t = vector(of, extent);
		break;
	case 3:
		t = list(of, extent);
		break;
	case 4:
		t = structure(of, extent);
		break;
	case 5:
		t = subarray(of, extent);
		break;
	case 6:
		t = darray(of, extent);
		break;
	case 7:
		put_old(0, 1, 0);
		/* Bounds that move elements apart, or into one another. */
		MPI_Type_create_resized(of, lb + between(-8, 8),
					draw(2) ? 8 * between(1, 4) : extent + between(0, 16), &t);
		break;
	default:
		put_old(0, 1, 0);
		MPI_Type_dup(of, &t);
	}
	return t;
}

/* `made` says where its bytes are. */
static MPI_Datatype type_draw(void)
{
	MPI_Datatype t = basic(), outer;
	int depth;

	for (depth = between(0, DEPTH); depth; depth--) {
		outer = around(t);
		MPI_Type_free(&t);
		t = outer;
	}
	MPI_Type_commit(&t);
	return t;
}

/* ---- Bytes -------------------------------------------------------------------------------- */

static struct {
	int size, apart;		/* bytes of all elements; no two lie at one place */
	int at[AREA];			/* the place in an area of each packed byte */
} elements;

/* Place `count` elements from the middle of an area on; false: they do not fit. */
static int elements_fit(int count, MPI_Aint extent)
{
	long e, i, at;

	if (!made.size || made.size >= AREA / count)
		return 0;
	memset(area, 0, AREA);
	elements.size = 0;
	elements.apart = 1;
	for (e = 0; e < count; e++)
		for (i = 0; i < made.size; i++) {
			at = MIDDLE + e * extent + made.at[i];
			if (at < 0 || at >= AREA)
				return 0;
			elements.apart = elements.apart && !area[at];
			area[at] = 1;
			elements.at[elements.size++] = (int)at;
		}
	return 1;
}

/* The type itself, or by absolute addresses; all, or what lies between any two bytes. */
static void gathered(const struct strides *s, const void *from)
{
	int i, n, begin = 0, bytes = elements.size;

	for (i = 0; i < AREA; i++)
		area[i] = (unsigned char)draw(256);
	for (n = 0; n <= PARTS; n++) {
		memset(packed, 0xee, sizeof(packed));
		strides_pack(s, from, (size_t)begin, packed, (size_t)bytes);
		for (i = 0; i < bytes; i++)
			CHECK(packed[i] == area[elements.at[begin + i]],
			      "packed byte %d of %d from %d on: %02x, not %02x", i, bytes, begin,
			      packed[i], area[elements.at[begin + i]]);
		for (; i < bytes + GUARD; i++)
			CHECK(packed[i] == 0xee, "byte %d behind what is packed", i - bytes);
		begin = between(0, elements.size);
		bytes = between(0, elements.size - begin);
	}
}

static void scattered(const struct strides *s, void *to)
{
	int i, n, begin = 0, bytes = elements.size;

	for (i = 0; i < elements.size; i++)
		packed[i] = (unsigned char)draw(256);
	for (n = 0; n <= PARTS; n++) {
		memset(area, 0xee, AREA);
		memset(other, 0xee, AREA);
		strides_unpack(s, packed + begin, (size_t)bytes, to, (size_t)begin);
		for (i = begin; i < begin + bytes; i++)
			other[elements.at[i]] = packed[i];
		for (i = 0; i < AREA; i++)
			CHECK(area[i] == other[i],
			      "%d of %d bytes from %d on: byte %d of the area: %02x, not %02x", bytes,
			      elements.size, begin, i - MIDDLE, area[i], other[i]);
		begin = draw(2) ? 0 : between(0, elements.size);
		bytes = between(0, elements.size - begin);
	}
}

static void bytes_compare(MPI_Datatype t, void *place)
{
	struct strides s;

	CHECK(strides_of(t, &s) == 0, "it is not known what it is made of");
	gathered(&s, place);
	if (elements.apart)
		scattered(&s, place);
	strides_free(&s);
}

static MPI_Datatype absolute(MPI_Datatype of)
{
	MPI_Datatype t;
	MPI_Aint where;
	int one = 1;

	MPI_Get_address(area + MIDDLE, &where);
	MPI_Type_create_hindexed(1, &one, &where, of, &t);
	MPI_Type_commit(&t);
	return t;
}

static void bounds_compare(MPI_Datatype t)
{
	long i, least = made.at[0], most = made.at[0];
	MPI_Aint low, high;
	struct strides s;

	for (i = 0; i < made.size; i++) {
		least = made.at[i] < least ? made.at[i] : least;
		most = made.at[i] > most ? made.at[i] : most;
	}
	CHECK(strides_of(t, &s) == 0, "it is not known what it is made of");
	strides_bounds(&s, &low, &high);
	CHECK(low == least && high == most + 1, "bounds %ld to %ld, not %ld to %ld", (long)low,
	      (long)high, least, most + 1);
	strides_free(&s);
}

/* False: it has no data, or not in an area. */
static int type_compare(MPI_Datatype t)
{
	MPI_Aint lb, extent;
	MPI_Datatype there;

	MPI_Type_get_extent(t, &lb, &extent);
	if (!elements_fit(1, extent))
		return 0;
	bounds_compare(t);
	if (draw(4) == 0) {
		there = absolute(t);
		bytes_compare(there, MPI_BOTTOM);
		MPI_Type_free(&there);
	}
	if (!elements_fit(between(1, COUNT_MAX), extent))
		elements_fit(1, extent);
	bytes_compare(t, area + MIDDLE);
	return 1;
}

/* ---- What a type is taken for -------------------------------------------------------------- */

/* parts: of its list; 0: it has none. */
static void known(MPI_Datatype t, const char *what, unsigned loops, size_t block, size_t parts)
{
	struct strides s;

	MPI_Type_commit(&t);
	CHECK(strides_of(t, &s) == 0, "%s", what);
	CHECK(s.loops == loops && s.block == block && (s.list ? s.list->parts : 0) == parts,
	      "%s: %u loops, blocks of %zu bytes, a list of %zu parts", what, s.loops, s.block,
	      s.list ? s.list->parts : 0);
	strides_free(&s);
	MPI_Type_free(&t);
}

static void loops_known(void)
{
	int sizes[] = {6, 5}, parts[] = {2, 3}, starts[] = {1, 1};
	int lengths[] = {2, 2, 2}, places[] = {4, 2, 0};
	MPI_Datatype t, u;

	MPI_Type_contiguous(1000, MPI_INT, &t);
	known(t, "contiguous", 0, 4000, 0);
	MPI_Type_vector(7, 3, 5, MPI_INT, &t);
	known(t, "vector", 1, 12, 0);
	MPI_Type_vector(7, 3, 3, MPI_INT, &t);
	known(t, "vector without gaps", 0, 84, 0);
	MPI_Type_vector(7, 1, -2, MPI_DOUBLE, &t);
	known(t, "vector backwards", 1, 8, 0);
	MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t);
	known(t, "subarray", 1, 12, 0);
	MPI_Type_indexed(3, lengths, places, MPI_INT, &t);
	known(t, "blocks in reverse", 1, 8, 0);
	MPI_Type_vector(4, 1, 10, MPI_DOUBLE, &u);
	MPI_Type_create_resized(u, 0, sizeof(double), &t);
	MPI_Type_free(&u);
	MPI_Type_contiguous(10, t, &u);
	MPI_Type_free(&t);
	known(u, "columns", 2, 8, 0);
}

/* A type of `loops` loops around each other. */
static MPI_Datatype nested(int loops)
{
	MPI_Datatype t, u;

	MPI_Type_dup(MPI_BYTE, &t);
	for (int i = 0; i < loops; i++) {
		MPI_Aint lb, extent;

		MPI_Type_get_extent(t, &lb, &extent);
		MPI_Type_create_hvector(2, 1, 2 * extent + 1, t, &u);
		MPI_Type_free(&t);
		t = u;
	}
	return t;
}

static void lists_known(void)
{
	int lengths[] = {2, 2, 2}, one[] = {0, 3, 0}, uneven[] = {0, 1, 5}, unlike[] = {1, 1, 2};
	MPI_Aint bytes[] = {0, 8, 64}, next[] = {0, 8, 24}, even[] = {0, 16, 32};
	MPI_Datatype mixed[] = {MPI_INT, MPI_DOUBLE, MPI_INT}, same[] = {MPI_INT, MPI_INT, MPI_INT}, t;

	MPI_Type_create_indexed_block(3, 1, uneven, MPI_INT, &t);
	known(t, "uneven distances", 0, 12, 2);
	MPI_Type_indexed(3, unlike, uneven, MPI_INT, &t);
	known(t, "uneven lengths that become even", 1, 8, 0);
	MPI_Type_create_struct(3, one, bytes, mixed, &t);
	known(t, "a structure of one member", 0, 24, 0);
	MPI_Type_create_struct(3, lengths, bytes, mixed, &t);
	known(t, "a structure", 0, 32, 2);
	MPI_Type_create_struct(3, lengths, next, mixed, &t);
	known(t, "a structure without gaps", 0, 32, 0);
	MPI_Type_create_struct(3, lengths, even, same, &t);
	known(t, "a structure of equal members", 1, 8, 0);
	MPI_Type_dup(MPI_SHORT_INT, &t);
	known(t, "a pair with a hole", 0, 6, 2);
	known(nested(STRIDES_LOOPS), "as many loops as there is room for", STRIDES_LOOPS, 1, 0);
	known(nested(STRIDES_LOOPS + 3), "more loops", 3, 1 << STRIDES_LOOPS, 1);
}

int main(int argc, char **argv)
{
	unsigned long compared = 0;

	MPI_Init(&argc, &argv);
	native.Type_get_contents = PMPI_Type_get_contents;
	native.Type_get_envelope = PMPI_Type_get_envelope;
	native.Type_get_extent = PMPI_Type_get_extent;
	native.Type_get_true_extent = PMPI_Type_get_true_extent;
	native.Type_size_x = PMPI_Type_size_x;
	native.Type_free = PMPI_Type_free;
#ifdef HAVE_MPI_SEND_C
	native.Type_get_contents_c = PMPI_Type_get_contents_c;
	native.Type_get_envelope_c = PMPI_Type_get_envelope_c;
#endif
	if (argc > 1)
		seed = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		types = strtoul(argv[2], NULL, 10);
	loops_known();
	lists_known();
	for (number = 1; number <= types; number++) {
		MPI_Datatype t;

		state = seed << 32 | number;
		t = type_draw();
		compared += (unsigned long)type_compare(t);
		MPI_Type_free(&t);
	}
	CHECK(compared >= types / 2, "only %lu of %lu types have data, and fit", compared, types);
	printf("%lu types, %lu of them compared: all packed alike\n", types, compared);
	MPI_Finalize();
	return 0;
}
