/*
 * strides.c - types that librailmpi packs without the MPI library (src/mpi/strides.h), beside
 * the library's MPI_Pack and MPI_Unpack: which ones are recognised, and what their bytes are.
 *
 *	strides [SEED [TYPES]]	on one rank: so many drawn types (1, 5000)
 */
#include "strides.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What strides.c calls; the layer has all of it (native.c). */
struct native native;

enum { AREA = 1 << 16, MIDDLE = AREA / 2, GUARD = 64, PARTS = 5, DEPTH = 4, COUNT_MAX = 5 };

static unsigned char area[AREA], other[AREA];
static unsigned char packed[AREA + GUARD], wanted[AREA + GUARD];
static unsigned char position[2][AREA];		/* each byte of an area: the low and the high half */
static int at[AREA];				/* of each packed byte, its place in an area */
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
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (unsigned)((z ^ z >> 31) >> 33) % n;
}

static int between(int low, int high)
{
	return low + (int)draw((unsigned)(high - low + 1));
}

/* ---- Types ------------------------------------------------------------------------------- */

/* No MPI_LONG_DOUBLE: MPICH copies its ten bytes that have a meaning, of 16. */
static MPI_Datatype basic(void)
{
	const MPI_Datatype of[] = {
		MPI_BYTE, MPI_PACKED, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_DOUBLE,
		MPI_C_DOUBLE_COMPLEX, MPI_DOUBLE_INT, MPI_SHORT_INT,
	};
	MPI_Datatype t;

	MPI_Type_dup(of[draw(sizeof(of) / sizeof(*of))], &t);
	return t;
}

static MPI_Datatype vector(MPI_Datatype of, MPI_Aint extent)
{
	int count = between(1, 5), length = between(draw(20) ? 1 : 0, 3), stride = between(-5, 5);
	MPI_Datatype t;

#ifdef HAVE_MPI_SEND_C
	if (draw(4) == 0) {
		MPI_Type_vector_c(count, length, stride, of, &t);
		return t;
	}
	if (draw(4) == 0) {
		MPI_Type_create_hvector_c(count, length, stride * extent + between(-8, 8), of, &t);
		return t;
	}
#endif
	if (draw(2))
		MPI_Type_vector(count, length, stride, of, &t);
	else
		MPI_Type_create_hvector(count, length, stride * extent + between(-8, 8), of, &t);
	return t;
}

/* Lists of displacements: mostly at even distances. */
enum { LIST = 6 };

static MPI_Datatype list(MPI_Datatype of, MPI_Aint extent)
{
	int n = between(1, LIST), length = between(1, 3), first = between(-3, 3);
	int step = between(-4, 4), lengths[LIST], places[LIST], i;
	MPI_Datatype same[LIST], t;
	MPI_Aint bytes[LIST];

	for (i = 0; i < n; i++) {
		lengths[i] = draw(30) ? length : between(0, 3);
		places[i] = first + i * step + (draw(30) ? 0 : 1);
		bytes[i] = places[i] * extent;
		same[i] = of;
	}
	switch (draw(5)) {
	case 0:
		MPI_Type_indexed(n, lengths, places, of, &t);
		break;
	case 1:
		MPI_Type_create_hindexed(n, lengths, bytes, of, &t);
		break;
	case 2:
		MPI_Type_create_indexed_block(n, length, places, of, &t);
		break;
	case 3:
		MPI_Type_create_hindexed_block(n, length, bytes, of, &t);
		break;
	default:
		MPI_Type_create_struct(draw(4) ? 1 : n, lengths, bytes, same, &t);
	}
	return t;
}

static MPI_Datatype subarray(MPI_Datatype of)
{
	int size[3], part[3], start[3], n = between(1, 3), k;
	int order = draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	MPI_Datatype t;

	for (k = 0; k < n; k++) {
		part[k] = between(1, 3);
		start[k] = between(0, 2);
		size[k] = start[k] + part[k] + between(0, 2);
	}
#ifdef HAVE_MPI_SEND_C
	if (draw(4) == 0) {
		MPI_Count s[3], p[3], b[3];

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

static MPI_Datatype around(MPI_Datatype of)
{
	MPI_Aint lb, extent;
	MPI_Datatype t;

	MPI_Type_get_extent(of, &lb, &extent);
	/* Open MPI's bounds of some types without data are no places of memory. */
	if (lb < -AREA || lb > AREA)
		lb = extent = 0;
	switch (draw(7)) {
	case 0:
		MPI_Type_contiguous(between(1, 4), of, &t);
		break;
	case 1:
	case 2:
		t = vector(of, extent);
		break;
	case 3:
		t = list(of, extent);
		break;
	case 4:
		t = subarray(of);
		break;
	case 5:
		/* Bounds that move elements apart, or into one another. */
		MPI_Type_create_resized(of, lb + between(-8, 8),
					draw(2) ? 8 * between(1, 4) : extent + between(0, 16), &t);
		break;
	default:
		MPI_Type_dup(of, &t);
	}
	return t;
}

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

/* In an area, whose middle MPI is told of; and what is packed, too: elements may overlap. */
static int fits(MPI_Datatype t, int count)
{
	MPI_Aint lb, extent, low, high;
	int size;

	MPI_Type_size(t, &size);
	if (!size)
		return 0;
	MPI_Type_get_extent(t, &lb, &extent);
	MPI_Type_get_true_extent(t, &low, &high);
	high += low;
	if (extent < 0)
		low += (count - 1) * extent;
	else
		high += (count - 1) * extent;
	return low >= -MIDDLE && high <= MIDDLE && size <= AREA / count;
}

/* ---- Bytes -------------------------------------------------------------------------------- */

static void pack(MPI_Datatype t, int count, const unsigned char *from, unsigned char *to, int size)
{
	int used = 0;

	CHECK(!MPI_Pack(from + MIDDLE, count, t, to, size, &used, MPI_COMM_SELF) && used == size,
	      "MPI_Pack: %d bytes of %d", used, size);
}

/* Fills at; do no two bytes lie at one place? */
static int places(MPI_Datatype t, int count, int size)
{
	int i, apart = 1;

	pack(t, count, position[0], packed, size);
	pack(t, count, position[1], wanted, size);
	memset(area, 0, AREA);
	for (i = 0; i < size; i++) {
		at[i] = packed[i] | wanted[i] << 8;
		apart = apart && !area[at[i]];
		area[at[i]] = 1;
	}
	return apart;
}

/* The type itself, or by absolute addresses, which MPICH packs but from MPI_BOTTOM. */
static void gathered(const struct strides *s, const void *from, MPI_Datatype t, int count, int size)
{
	int i;

	memset(packed, 0xee, sizeof(packed));
	memset(wanted, 0xee, sizeof(wanted));
	pack(t, count, area, wanted, size);
	strides_pack(s, from, (size_t)count, packed);
	for (i = 0; i < size + GUARD; i++)
		CHECK(packed[i] == wanted[i], "%d elements: packed byte %d of %d: %02x, not %02x", count,
		      i, size, packed[i], wanted[i]);
}

static void areas_compare(int bytes, int size)
{
	int i;

	for (i = 0; i < AREA && memcmp(area, other, AREA); i++)
		CHECK(area[i] == other[i], "%d of %d bytes: byte %d of the area: %02x, not %02x", bytes,
		      size, i - MIDDLE, area[i], other[i]);
}

static void scattered(const struct strides *s, void *to, MPI_Datatype t, int count, int size)
{
	int i, part, used = 0;

	for (i = 0; i < size; i++)
		packed[i] = (unsigned char)(draw(256));
	memset(area, 0xee, AREA);
	memset(other, 0xee, AREA);
	strides_unpack(s, packed, (size_t)size, to);
	MPI_Unpack(packed, size, &used, other + MIDDLE, count, t, MPI_COMM_SELF);
	areas_compare(size, size);
	for (part = 0; part < PARTS; part++) {
		int bytes = between(0, size);

		memset(area, 0xee, AREA);
		memset(other, 0xee, AREA);
		strides_unpack(s, packed, (size_t)bytes, to);
		for (i = 0; i < bytes; i++)
			other[at[i]] = packed[i];
		areas_compare(bytes, size);
	}
}

static void bytes_compare(const struct strides *s, void *place, MPI_Datatype t, int count, int size)
{
	int apart = places(t, count, size), i;

	for (i = 0; i < AREA; i++)
		area[i] = (unsigned char)draw(256);
	gathered(s, place, t, count, size);
	if (apart)
		scattered(s, place, t, count, size);
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

/* Is it regular? */
static int type_compare(MPI_Datatype t)
{
	int count = between(1, COUNT_MAX), size;
	struct strides s;
	MPI_Datatype there;

	MPI_Type_size(t, &size);
	if (!strides_of(t, &s))
		return 0;
	if (!fits(t, count))
		count = 1;
	CHECK(size > 0, "regular, and of no bytes");
	bytes_compare(&s, area + MIDDLE, t, count, size * count);
	if (draw(4))
		return 1;
	there = absolute(t);
	CHECK(strides_of(there, &s), "the same by its address");
	bytes_compare(&s, MPI_BOTTOM, t, 1, size);
	MPI_Type_free(&there);
	return 1;
}

/* ---- What must be recognised, and what must not ---------------------------------------------- */

static void known(MPI_Datatype t, const char *what, int regular, unsigned loops, size_t block)
{
	struct strides s;

	MPI_Type_commit(&t);
	CHECK(strides_of(t, &s) == regular, "%s", what);
	CHECK(!regular || (s.loops == loops && s.block == block), "%s: %u loops, blocks of %zu bytes",
	      what, s.loops, s.block);
	type_compare(t);
	MPI_Type_free(&t);
}

static void all_known(void)
{
	int sizes[] = {6, 5}, parts[] = {2, 3}, starts[] = {1, 1}, i;
	int lengths[] = {2, 2, 2}, places_[] = {4, 2, 0}, uneven[] = {0, 1, 5}, zeros[] = {0, 3, 0};
	MPI_Aint bytes[] = {0, 8, 64};
	MPI_Datatype mixed[] = {MPI_INT, MPI_DOUBLE, MPI_INT}, t, u;

	MPI_Type_contiguous(1000, MPI_INT, &t);
	known(t, "contiguous", 1, 0, 4000);
	MPI_Type_vector(7, 3, 5, MPI_INT, &t);
	known(t, "vector", 1, 1, 12);
	MPI_Type_vector(7, 3, 3, MPI_INT, &t);
	known(t, "vector without gaps", 1, 0, 84);
	MPI_Type_vector(7, 1, -2, MPI_DOUBLE, &t);
	known(t, "vector backwards", 1, 1, 8);
	MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t);
	known(t, "subarray", 1, 1, 12);
	MPI_Type_indexed(3, lengths, places_, MPI_INT, &t);
	known(t, "blocks in reverse", 1, 1, 8);
	MPI_Type_create_indexed_block(3, 1, uneven, MPI_INT, &t);
	known(t, "uneven distances", 0, 0, 0);
	MPI_Type_create_struct(3, zeros, bytes, mixed, &t);
	known(t, "a structure of one member", 1, 0, 24);
	for (i = 0; i < 3; i++)
		zeros[i] = 0;
	MPI_Type_create_struct(3, zeros, bytes, mixed, &t);
	known(t, "a structure of nothing", 0, 0, 0);
	MPI_Type_create_struct(3, lengths, bytes, mixed, &t);
	known(t, "a structure", 0, 0, 0);
	MPI_Type_dup(MPI_SHORT_INT, &t);
	known(t, "a pair with a hole", 0, 0, 0);
	MPI_Type_vector(4, 1, 10, MPI_DOUBLE, &u);
	MPI_Type_create_resized(u, 0, sizeof(double), &t);
	MPI_Type_free(&u);
	MPI_Type_contiguous(10, t, &u);
	MPI_Type_free(&t);
	known(u, "columns", 1, 2, 8);
}

int main(int argc, char **argv)
{
	unsigned long regular = 0, most;
	int i;

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
	for (i = 0; i < AREA; i++) {
		position[0][i] = (unsigned char)i;
		position[1][i] = (unsigned char)(i >> 8);
	}
	all_known();
	most = types / 2;
	for (number = 1; number <= types; number++) {
		MPI_Datatype t;

		state = seed << 32 | number;
		t = type_draw();
		if (fits(t, 1))
			regular += (unsigned long)type_compare(t);
		MPI_Type_free(&t);
	}
	CHECK(regular >= most, "%lu of %lu types are regular", regular, types);
	printf("%lu types, %lu of them regular: all packed alike\n", types, regular);
	MPI_Finalize();
	return 0;
}
