/* strides_copy.c - see strides.h: the bytes of types, gathered and scattered. */
#include "mpi/type/strides_copy.h"

#include <stdint.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/type/strides.h"
#include "util/copy.h"

/* ---- Whole turns --------------------------------------------------------------------------- */

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

/* Absolute addresses are counted from MPI_BOTTOM, to which C adds nothing. */
static inline char *moved(const void *data, MPI_Aint distance)
{
	return (char *)((uintptr_t)data + (uintptr_t)distance);
}

static void turns_copy(const struct strides *s, unsigned loop, size_t turns, char *data,
		       char *packed, bool pack);

static inline void piece_copy(char *data, char *packed, size_t bytes, bool pack)
{
	if (pack)
		rg_copy_short(packed, data, bytes);
	else
		rg_copy_short(data, packed, bytes);
}

static void list_copy(const struct strides_list *list, char *data, char *packed, bool pack)
{
	const struct strides_part *p, *end = list->part + list->parts;

	for (p = list->part; p < end; p++)
		if (!p->of)
			piece_copy(moved(data, p->at), packed + p->from, p[1].from - p->from, pack);
		else
			turns_copy(p->of, p->of->loops, 1, moved(data, p->at + p->of->first),
				   packed + p->from, pack);
}

static inline void innermost_copy(const struct strides *s, MPI_Aint stride, size_t turns, char *data,
				  char *packed, bool pack)
{
	if (!s->list && pack) {
		blocks_copy(packed, (MPI_Aint)s->block, data, stride, s->block, turns);
	} else if (!s->list) {
		blocks_copy(data, stride, packed, (MPI_Aint)s->block, s->block, turns);
	} else {
		for (; turns; turns--) {
			list_copy(s->list, data, packed, pack);
			data = moved(data, stride);
			packed += s->block;
		}
	}
}

/* Copy `turns` turns of a loop, the innermost loop at once, in either direction. */
static void turns_copy(const struct strides *s, unsigned loop, size_t turns, char *data,
		       char *packed, bool pack)
{
	const struct strides_loop *l;

	while (loop && turns == 1)
		turns = s->loop[--loop].count;
	l = &s->loop[loop];
	if (loop == 0) {
		innermost_copy(s, l->stride, turns, data, packed, pack);
		return;
	}
	for (; turns; turns--) {
		turns_copy(s, loop - 1, l[-1].count, data, packed, pack);
		data = moved(data, l->stride);
		packed += l->bytes;
	}
}

/* ---- From any byte on ------------------------------------------------------------------------ */

static void range_copy(const struct strides *s, unsigned loop, char *data, size_t from, char *packed,
		       size_t bytes, bool pack);

/* The part that holds a byte. */
static size_t strides_part_at(const struct strides_list *list, size_t from)
{
	size_t low = 0, high = list->parts, middle;

	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (list->part[middle].from <= from)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void list_range(const struct strides_list *list, char *data, size_t from, char *packed,
		       size_t bytes, bool pack)
{
	const struct strides_part *p = &list->part[strides_part_at(list, from)];
	size_t n;

	for (; bytes; bytes -= n, p++) {
		n = p[1].from - from < bytes ? p[1].from - from : bytes;
		if (!p->of)
			piece_copy(moved(data, p->at + (MPI_Aint)(from - p->from)), packed, n, pack);
		else
			range_copy(p->of, p->of->loops, moved(data, p->at + p->of->first),
				   from - p->from, packed, n, pack);
		packed += n;
		from += n;
	}
}

/* Within one turn of a loop. */
static void turn_range(const struct strides *s, unsigned loop, char *data, size_t from, char *packed,
		       size_t bytes, bool pack)
{
	if (loop)
		range_copy(s, loop - 1, data, from, packed, bytes, pack);
	else if (s->list)
		list_range(s->list, data, from, packed, bytes, pack);
	else
		piece_copy(moved(data, (MPI_Aint)from), packed, bytes, pack);
}

/* The end of a turn, whole turns, the beginning of another. */
static void range_copy(const struct strides *s, unsigned loop, char *data, size_t from, char *packed,
		       size_t bytes, bool pack)
{
	const struct strides_loop *l = &s->loop[loop];
	size_t n, whole;

	if (from >= l->bytes) {
		data = moved(data, (MPI_Aint)(from / l->bytes) * l->stride);
		from %= l->bytes;
	}
	if (from) {
		n = l->bytes - from < bytes ? l->bytes - from : bytes;
		turn_range(s, loop, data, from, packed, n, pack);
		data = moved(data, l->stride);
		packed += n;
		bytes -= n;
	}
	if (bytes >= l->bytes) {
		whole = bytes == l->bytes ? 1 : bytes / l->bytes;
		turns_copy(s, loop, whole, data, packed, pack);
		data = moved(data, (MPI_Aint)whole * l->stride);
		packed += whole * l->bytes;
		bytes -= whole * l->bytes;
	}
	if (bytes)
		turn_range(s, loop, data, 0, packed, bytes, pack);
}

/* ---- Messages ---------------------------------------------------------------------------------- */

static char *first_block(const struct strides *s, const void *buf)
{
	return moved(buf, s->first);
}

/* True: the bytes are one whole element, as in most messages. */
static inline bool is_element(const struct strides *s, size_t from, size_t bytes)
{
	return !from && bytes == s->loop[s->loops].bytes;
}

void strides_pack(const struct strides *s, const void *buf, size_t from, void *packed, size_t bytes)
{
	if (is_element(s, from, bytes))
		turns_copy(s, s->loops, 1, first_block(s, buf), packed, true);
	else
		range_copy(s, s->loops, first_block(s, buf), from, packed, bytes, true);
}

void strides_unpack(const struct strides *s, const void *packed, size_t bytes, void *buf, size_t from)
{
	if (is_element(s, from, bytes))
		turns_copy(s, s->loops, 1, first_block(s, buf), (char *)(uintptr_t)packed, false);
	else
		range_copy(s, s->loops, first_block(s, buf), from, (char *)(uintptr_t)packed, bytes,
			   false);
}
