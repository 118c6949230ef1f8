/* strides.c - see strides.h. */
#include "strides.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "copy.h"

/* ---- What a type was made of ------------------------------------------------------ */

/*
 * The arguments of its constructor: integers, then addresses, then large counts.  A constructor of
 * large counts has all its numbers among the latter, in the same order.
 */
struct contents {
	int combiner;
	size_t numbers, large, types;
	MPI_Count *number;
	MPI_Datatype *type;
};

#ifdef HAVE_MPI_SEND_C
static bool envelope(MPI_Datatype handle, MPI_Count n[4], int *combiner)
{
	return native.Type_get_envelope_c(handle, &n[0], &n[1], &n[2], &n[3], combiner) ==
	       MPI_SUCCESS;
}

static bool arguments(MPI_Datatype handle, const MPI_Count n[4], int integers[],
		      MPI_Aint addresses[], MPI_Count counts[], MPI_Datatype types[])
{
	return native.Type_get_contents_c(handle, n[0], n[1], n[2], n[3], integers, addresses,
					  counts, types) == MPI_SUCCESS;
}
#else
static bool envelope(MPI_Datatype handle, MPI_Count n[4], int *combiner)
{
	int integers, addresses, types, rc;

	rc = native.Type_get_envelope(handle, &integers, &addresses, &types, combiner);
	n[0] = integers;
	n[1] = addresses;
	n[2] = 0;
	n[3] = types;
	return rc == MPI_SUCCESS;
}

static bool arguments(MPI_Datatype handle, const MPI_Count n[4], int integers[],
		      MPI_Aint addresses[], MPI_Count counts[], MPI_Datatype types[])
{
	return native.Type_get_contents(handle, (int)n[0], (int)n[1], (int)n[3], integers,
					addresses, types) == MPI_SUCCESS;
}
#endif

/* These may not be freed, whoever returns them. */
static bool is_predefined(int combiner)
{
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
	if (combiner == MPI_COMBINER_VALUE_INDEX)
		return true;
#endif
	return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
	       combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

static void contents_free(struct contents *c)
{
	MPI_Count n[4];
	int combiner;
	size_t i;

	for (i = 0; i < c->types; i++)
		if (envelope(c->type[i], n, &combiner) && !is_predefined(combiner))
			native.Type_free(&c->type[i]);
	free(c->number);
	free(c->type);
}

/* All in one list.  n: of the envelope. */
static bool contents_get(MPI_Datatype handle, const MPI_Count n[4], struct contents *c)
{
	size_t integers = (size_t)n[0], addresses = (size_t)n[1], i;
	int *integer = calloc(integers + 1, sizeof(*integer));
	MPI_Aint *address = calloc(addresses + 1, sizeof(*address));
	bool well;

	c->large = (size_t)n[2];
	c->numbers = integers + addresses + c->large;
	c->number = calloc(c->numbers + 1, sizeof(*c->number));
	c->type = calloc((size_t)n[3] + 1, sizeof(*c->type));
	c->types = 0;
	well = integer && address && c->number && c->type &&
	       arguments(handle, n, integer, address, c->number + integers + addresses, c->type);
	if (well) {
		c->types = (size_t)n[3];
		for (i = 0; i < integers; i++)
			c->number[i] = integer[i];
		for (i = 0; i < addresses; i++)
			c->number[integers + i] = address[i];
	}
	free(integer);
	free(address);
	if (!well)
		contents_free(c);
	return well;
}

/* ---- From arguments to loops -------------------------------------------------------- */

/* All that there is so far, so many times. */
static bool repeat(struct strides *s, MPI_Count count, MPI_Aint stride)
{
	struct strides_loop *last = &s->loop[s->loops];

	if (count < 1)
		return false;
	if (count == 1)
		return true;
	if (s->loops == 0 && stride == (MPI_Aint)s->block) {
		s->block *= (size_t)count;
		return true;
	}
	if (s->loops && stride == last[-1].stride * (MPI_Aint)last[-1].count) {
		last[-1].count *= (size_t)count;
		return true;
	}
	if (s->loops == STRIDES_LOOPS)
		return false;
	*last = (struct strides_loop){.count = (size_t)count, .stride = stride};
	s->loops++;
	return true;
}

/*
 * Elements of the type at displacements, in units of bytes; lengths: of each block, or one for
 * all.  Blocks that go on where the one before ends are one block.
 */
static bool repeat_at(struct strides *s, MPI_Aint extent, size_t blocks, const MPI_Count *length,
		      bool each, const MPI_Count *at, MPI_Aint unit)
{
	MPI_Aint first = 0, begin = 0, end = 0, stride = 0, place;
	MPI_Count count = 0, equal = 0, run = 0, n;
	size_t i;

	for (i = 0; i < blocks; i++) {
		n = length[each ? i : 0];
		place = (MPI_Aint)at[i] * unit;
		if (n == 0)
			continue;
		if (run && place == end) {
			run += n;
		} else {
			if (count == 1)
				equal = run;
			else if (count && run != equal)
				return false;
			if (count == 0)
				first = place;
			else if (count == 1)
				stride = place - begin;
			else if (place - begin != stride)
				return false;
			count++;
			begin = place;
			run = n;
		}
		end = begin + (MPI_Aint)run * extent;
	}
	if (count > 1 && run != equal)
		return false;
	s->first += first;
	return repeat(s, run, extent) && repeat(s, count, stride);
}

static bool subarray(struct strides *s, MPI_Aint extent, const struct contents *c)
{
	size_t n = (size_t)c->number[0], i, k;
	const MPI_Count *size, *part, *start;
	MPI_Aint stride = extent;
	MPI_Count order;

	/* With large counts the integers are two: the dimensions and the order. */
	size = c->number + (c->large ? 2 : 1);
	part = size + n;
	start = part + n;
	order = c->large ? c->number[1] : start[n];
	for (i = 0; i < n; i++) {
		k = order == MPI_ORDER_FORTRAN ? i : n - 1 - i;
		s->first += (MPI_Aint)start[k] * stride;
		if (!repeat(s, part[k], stride))
			return false;
		stride *= (MPI_Aint)size[k];
	}
	return true;
}

static bool decode(MPI_Datatype handle, struct strides *s);

/* A structure of one member that has data; members without move bounds, if anything. */
static bool structure(struct strides *s, const struct contents *c)
{
	const MPI_Count *length = c->number + 1, *at = length + c->types;
	size_t i, member = c->types;
	MPI_Aint lb, extent;
	MPI_Count size;

	for (i = 0; i < c->types; i++) {
		if (native.Type_size_x(c->type[i], &size))
			return false;
		if (!length[i] || !size)
			continue;
		if (member < c->types)
			return false;
		member = i;
	}
	return member < c->types && decode(c->type[member], s) &&
	       !native.Type_get_extent(c->type[member], &lb, &extent) &&
	       repeat_at(s, extent, 1, &length[member], true, &at[member], 1);
}

/* s: of what the type is made of, on input. */
static bool construct(struct strides *s, MPI_Aint extent, const struct contents *c)
{
	const MPI_Count *n = c->number;
	size_t blocks = (size_t)n[0];

	switch (c->combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		return true;
	case MPI_COMBINER_CONTIGUOUS:
		return repeat(s, n[0], extent);
	case MPI_COMBINER_VECTOR:
		return repeat(s, n[1], extent) && repeat(s, n[0], (MPI_Aint)n[2] * extent);
	case MPI_COMBINER_HVECTOR:
		return repeat(s, n[1], extent) && repeat(s, n[0], (MPI_Aint)n[2]);
	case MPI_COMBINER_INDEXED:
		return repeat_at(s, extent, blocks, n + 1, true, n + 1 + blocks, extent);
	case MPI_COMBINER_HINDEXED:
		return repeat_at(s, extent, blocks, n + 1, true, n + 1 + blocks, 1);
	case MPI_COMBINER_INDEXED_BLOCK:
		return repeat_at(s, extent, blocks, n + 1, false, n + 2, extent);
	case MPI_COMBINER_HINDEXED_BLOCK:
		return repeat_at(s, extent, blocks, n + 1, false, n + 2, 1);
	case MPI_COMBINER_SUBARRAY:
		return subarray(s, extent, c);
	default:
		return false;
	}
}

/* Pairs such as MPI_SHORT_INT have a hole: not in one piece. */
static bool named(MPI_Datatype handle, struct strides *s)
{
	MPI_Aint lb, extent;
	MPI_Count size;

	if (native.Type_size_x(handle, &size) || size <= 0 ||
	    native.Type_get_true_extent(handle, &lb, &extent) || size != extent)
		return false;
	*s = (struct strides){.block = (size_t)size, .first = lb};
	return true;
}

static bool decode(MPI_Datatype handle, struct strides *s)
{
	struct contents c;
	MPI_Aint lb, extent;
	MPI_Count n[4];
	bool regular;

	if (!envelope(handle, n, &c.combiner))
		return false;
	if (is_predefined(c.combiner))
		return c.combiner == MPI_COMBINER_NAMED && named(handle, s);
	if (!contents_get(handle, n, &c))
		return false;
	if (c.combiner == MPI_COMBINER_STRUCT)
		regular = structure(s, &c);
	else
		regular = c.types == 1 && decode(c.type[0], s) &&
			  !native.Type_get_extent(c.type[0], &lb, &extent) &&
			  construct(s, extent, &c);
	contents_free(&c);
	return regular;
}

/* What the loops say of the type is what the library says: else it is not understood. */
static bool agrees(const struct strides *s, MPI_Datatype handle)
{
	MPI_Aint low = s->first, high = s->first + (MPI_Aint)s->block, way, lb, extent;
	MPI_Count size;
	unsigned i;

	for (i = 0; i < s->loops; i++) {
		way = s->loop[i].stride * (MPI_Aint)(s->loop[i].count - 1);
		if (way < 0)
			low += way;
		else
			high += way;
	}
	return !native.Type_size_x(handle, &size) && (size_t)size == s->loop[s->loops].bytes &&
	       !native.Type_get_true_extent(handle, &lb, &extent) && lb == low &&
	       extent == high - low;
}

bool strides_of(MPI_Datatype handle, struct strides *s)
{
	MPI_Aint lb, extent;
	unsigned i;

	if (!decode(handle, s) || native.Type_get_extent(handle, &lb, &extent))
		return false;
	s->loop[s->loops].stride = extent;
	s->loop[0].bytes = s->block;
	for (i = 0; i < s->loops; i++)
		s->loop[i + 1].bytes = s->loop[i].bytes * s->loop[i].count;
	return agrees(s, handle);
}

/* ---- Copies ------------------------------------------------------------------------------ */

/* The length is a constant where this is called: then a copy is a load and a store. */
static inline __attribute__((always_inline)) char *
blocks_of(char *to, MPI_Aint to_stride, const char *from, MPI_Aint from_stride, size_t bytes,
	  size_t count)
{
	for (; count >= 4; count -= 4) {
		memcpy(to, from, bytes);
		memcpy(to + to_stride, from + from_stride, bytes);
		memcpy(to + 2 * to_stride, from + 2 * from_stride, bytes);
		memcpy(to + 3 * to_stride, from + 3 * from_stride, bytes);
		to += 4 * to_stride;
		from += 4 * from_stride;
	}
	for (; count; count--) {
		memcpy(to, from, bytes);
		to += to_stride;
		from += from_stride;
	}
	return to;
}

static inline __attribute__((always_inline)) void
blocks_copy(char *to, MPI_Aint to_stride, const char *from, MPI_Aint from_stride, size_t bytes,
	    size_t count)
{
	switch (bytes) {
	case 1:
		blocks_of(to, to_stride, from, from_stride, 1, count);
		break;
	case 2:
		blocks_of(to, to_stride, from, from_stride, 2, count);
		break;
	case 4:
		blocks_of(to, to_stride, from, from_stride, 4, count);
		break;
	case 8:
		blocks_of(to, to_stride, from, from_stride, 8, count);
		break;
	case 16:
		blocks_of(to, to_stride, from, from_stride, 16, count);
		break;
	default:
		for (; count; count--) {
			rg_copy_short(to, from, bytes);
			to += to_stride;
			from += from_stride;
		}
	}
}

/* So many turns of a loop, the innermost one at once; either way. */
static void turns_copy(const struct strides *s, unsigned loop, size_t turns, char *data,
		       char *packed, bool pack)
{
	const struct strides_loop *l;

	while (loop && turns == 1)
		turns = s->loop[--loop].count;
	l = &s->loop[loop];
	if (loop == 0 && pack) {
		blocks_copy(packed, (MPI_Aint)s->block, data, l->stride, s->block, turns);
	} else if (loop == 0) {
		blocks_copy(data, l->stride, packed, (MPI_Aint)s->block, s->block, turns);
	} else {
		for (; turns; turns--) {
			turns_copy(s, loop - 1, l[-1].count, data, packed, pack);
			data += l->stride;
			packed += l->bytes;
		}
	}
}

/* The address may be MPI_BOTTOM, to which C adds nothing. */
static char *first_block(const struct strides *s, const void *buf)
{
	return (char *)((uintptr_t)buf + (uintptr_t)s->first);
}

void strides_pack(const struct strides *s, const void *buf, size_t count, void *packed)
{
	turns_copy(s, s->loops, count, first_block(s, buf), packed, true);
}

void strides_unpack(const struct strides *s, const void *packed, size_t bytes, void *buf)
{
	char *from = (char *)(uintptr_t)packed, *to = first_block(s, buf);
	unsigned loop = s->loops + 1;
	size_t turns;

	/* Whole turns of the outer loop, then of the one inside it what is left, and so on. */
	while (bytes && loop--) {
		const struct strides_loop *l = &s->loop[loop];

		if (bytes < l->bytes)
			continue;
		turns = bytes == l->bytes ? 1 : bytes / l->bytes;
		turns_copy(s, loop, turns, to, from, false);
		from += turns * l->bytes;
		to += (MPI_Aint)turns * l->stride;
		bytes -= turns * l->bytes;
	}
	memcpy(to, from, bytes);
}
