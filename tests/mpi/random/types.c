/*
 * types.c - derived types, and where their bytes are.  Each constructor is here twice: MPI's, and
 * our own list of pieces, by the standard's text and without the library.
 */
#include "programs.h"

#include <limits.h>
#include <string.h>

enum { BYTE, CHAR, SHORT, INT, LONG_LONG, FLOAT, DOUBLE };

const struct unit units[UNITS] = {
    {"BYTE", 1, 1, 1, {BYTE}},
    {"CHAR", 1, 1, 1, {CHAR}},
    {"SHORT", 1, 2, 2, {SHORT}},
    {"INT", 1, 4, 4, {INT}},
    {"LONG_LONG", 1, 8, 8, {LONG_LONG}},
    {"FLOAT", 1, 4, 4, {FLOAT}},
    {"DOUBLE", 1, 8, 8, {DOUBLE}},
    {"{DOUBLE,INT}", 2, 12, 8, {DOUBLE, INT}},
    {"{CHAR,SHORT,LONG_LONG}", 3, 11, 8, {CHAR, SHORT, LONG_LONG}},
    {"{INT,BYTE,BYTE,FLOAT}", 4, 10, 8, {INT, BYTE, BYTE, FLOAT}},
};

const char *const layout_names[LAYOUT_KINDS] = {
    "plain",         "contiguous", "vector",   "hvector", "indexed", "hindexed",
    "indexed_block", "struct",     "subarray", "resized", "dup",     "columns",
};

MPI_Datatype basic(int which)
{
	switch (which) {
	case CHAR:
		return MPI_CHAR;
	case SHORT:
		return MPI_SHORT;
	case INT:
		return MPI_INT;
	case LONG_LONG:
		return MPI_LONG_LONG;
	case FLOAT:
		return MPI_FLOAT;
	case DOUBLE:
		return MPI_DOUBLE;
	default:
		return MPI_BYTE;
	}
}

static void layout_begin(struct layout *l)
{
	l->type = MPI_DATATYPE_NULL;
	l->units = l->pieces = 0;
	l->lb = l->low = PTRDIFF_MAX;
	l->ub = l->high = PTRDIFF_MIN;
}

static void append(struct layout *l, ptrdiff_t at, unsigned bytes)
{
	struct piece *last = &l->piece[l->pieces ? l->pieces - 1 : 0];

	if (l->pieces && last->at + (ptrdiff_t)last->bytes == at) {
		last->bytes += bytes;
		return;
	}
	CHECK(l->pieces < PIECES_MAX, "a type of more than %d pieces", PIECES_MAX);
	l->piece[l->pieces++] = (struct piece){at, bytes};
}

static ptrdiff_t extent(const struct layout *l)
{
	return l->ub - l->lb;
}

/* Append n elements of type `of` to l. */
static void place(struct layout *l, const struct layout *of, unsigned n, ptrdiff_t at)
{
	unsigned i, k;

	for (i = 0; i < n; i++, at += extent(of)) {
		for (k = 0; k < of->pieces; k++)
			append(l, of->piece[k].at + at, of->piece[k].bytes);
		l->lb = of->lb + at < l->lb ? of->lb + at : l->lb;
		l->ub = of->ub + at > l->ub ? of->ub + at : l->ub;
		l->low = of->low + at < l->low ? of->low + at : l->low;
		l->high = of->high + at > l->high ? of->high + at : l->high;
		l->units += of->units;
	}
}

/* Fields with holes between them: MPI's own pair type has others than the structure. */
static void unit_make(struct layout *l, int unit, struct draw *d, bool typed)
{
	const struct unit *u = &units[unit];
	int lengths[4] = {1, 1, 1, 1};
	MPI_Datatype types[4], open;
	bool pair = unit == FIRST_MIXED && draw_chance(d, 40);
	MPI_Aint at[4];
	unsigned i;

	layout_begin(l);
	l->units = 1;
	l->lb = l->low = 0;
	l->ub = 0;
	for (i = 0; i < u->fields; i++) {
		ptrdiff_t bytes = units[u->field[i]].bytes;

		l->ub = (l->ub + bytes - 1) / bytes * bytes;
		if (u->fields > 1 && !pair)
			l->ub += (ptrdiff_t)draw(d, 3) * bytes;
		if (i == 0)
			l->low = l->ub;
		at[i] = l->ub;
		types[i] = basic(u->field[i]);
		append(l, l->ub, (unsigned)bytes);
		l->ub += bytes;
	}
	l->high = l->ub;
	l->ub = (l->ub + u->align - 1) / u->align * u->align;
	if (!typed)
		return;
	if (pair) {
		MPI_Type_dup(MPI_DOUBLE_INT, &l->type);
	} else if (u->fields == 1) {
		MPI_Type_dup(types[0], &l->type);
	} else {
		MPI_Type_create_struct((int)u->fields, lengths, at, types, &open);
		MPI_Type_create_resized(open, 0, l->ub, &l->type);
		MPI_Type_free(&open);
	}
}

enum { BLOCKS = 4 };
struct blocks {
	int n, length[BLOCKS], start[BLOCKS];
	MPI_Aint byte[BLOCKS];
};

/* Blocks that do not meet, in any order; some are empty; an offset may be negative. */
static void blocks_draw(struct blocks *b, const struct layout *of, struct draw *d, bool equal)
{
	int i, k, at = -(int)draw(d, 3), length = 1 + (int)draw(d, 3);

	b->n = 2 + (int)draw(d, BLOCKS - 1);
	for (i = 0; i < b->n; i++) {
		b->length[i] = equal ? length : (int)draw(d, 4);
		b->start[i] = at;
		at += b->length[i] + (int)draw(d, 3);
	}
	if (!equal && !b->length[0]) /* keeps a length above zero, and moves nothing else */
		b->length[0] = 1, b->start[0] -= 1;
	for (i = b->n - 1; i > 0 && draw_chance(d, 50); i--) {
		int s = b->start[i], l = b->length[i];

		k = (int)draw(d, (unsigned)i + 1);
		b->start[i] = b->start[k], b->length[i] = b->length[k];
		b->start[k] = s, b->length[k] = l;
	}
	for (i = 0; i < b->n; i++)
		b->byte[i] = b->start[i] * extent(of);
}

static void blocks_make(struct layout *l, const struct layout *of, enum layout_kind kind,
			struct draw *d, bool typed)
{
	MPI_Datatype same[BLOCKS] = {of->type, of->type, of->type, of->type}, open;
	struct blocks b;
	int i;

	blocks_draw(&b, of, d, kind == LAYOUT_INDEXED_BLOCK);
	for (i = 0; i < b.n; i++)
		place(l, of, (unsigned)b.length[i], b.byte[i]);
	if (!typed)
		return;
	switch (kind) {
	case LAYOUT_INDEXED:
		MPI_Type_indexed(b.n, b.length, b.start, of->type, &l->type);
		break;
	case LAYOUT_HINDEXED:
		MPI_Type_create_hindexed(b.n, b.length, b.byte, of->type, &l->type);
		break;
	case LAYOUT_INDEXED_BLOCK:
		MPI_Type_create_indexed_block(b.n, b.length[0], b.start, of->type, &l->type);
		break;
	default: /* a structure may be rounded up to what its fields want */
		MPI_Type_create_struct(b.n, b.length, b.byte, same, &open);
		MPI_Type_create_resized(open, l->lb, extent(l), &l->type);
		MPI_Type_free(&open);
	}
}

static void strided_make(struct layout *l, const struct layout *of, enum layout_kind kind,
			 struct draw *d, bool typed)
{
	unsigned i, n = 2 + draw(d, 4), length = 1 + draw(d, 3), stride = length + draw(d, 3);
	ptrdiff_t bytes = (ptrdiff_t)stride * extent(of);

	if (kind == LAYOUT_HVECTOR) /* the alignment of all basic types */
		bytes += 8 * draw(d, 3);
	/* With gaps: Open MPI 4.1 is wrong about where bytes in reverse without gaps begin. */
	if (kind == LAYOUT_HVECTOR && draw_chance(d, 30))
		bytes = -bytes - 8;
	for (i = 0; i < n; i++)
		place(l, of, length, (ptrdiff_t)i * bytes);
	if (typed && kind == LAYOUT_HVECTOR)
		MPI_Type_create_hvector((int)n, (int)length, bytes, of->type, &l->type);
	else if (typed)
		MPI_Type_vector((int)n, (int)length, (int)stride, of->type, &l->type);
}

static void subarray_make(struct layout *l, const struct layout *of, struct draw *d, bool typed)
{
	int size[2], sub[2], start[2], row, k;

	for (k = 0; k < 2; k++) {
		sub[k] = 1 + (int)draw(d, 3);
		start[k] = (int)draw(d, 3);
		size[k] = start[k] + sub[k] + (int)draw(d, 2);
	}
	for (row = 0; row < sub[0]; row++)
		place(l, of, (unsigned)sub[1],
		      (ptrdiff_t)((start[0] + row) * size[1] + start[1]) * extent(of));
	l->lb = 0;
	l->ub = (ptrdiff_t)size[0] * size[1] * extent(of);
	if (typed)
		MPI_Type_create_subarray(2, size, sub, start, MPI_ORDER_C, of->type, &l->type);
}

/* Bounds that move elements apart, or (columns) into one another. */
static void resized_make(struct layout *l, const struct layout *of, const struct shape *shape,
			 enum layout_kind kind, struct draw *d, bool typed)
{
	unsigned n = 1 + draw(d, 3), rows = 2 + draw(d, 3), i;
	ptrdiff_t lb = -8 * (ptrdiff_t)draw(d, 3), more = 8 * (ptrdiff_t)draw(d, 4);
	MPI_Datatype open;

	if (kind == LAYOUT_COLUMNS) {
		for (i = 0; i < rows; i++)
			place(l, of, 1, (ptrdiff_t)i * shape->columns * extent(of));
		l->ub = l->lb + extent(of);
		if (typed)
			MPI_Type_vector((int)rows, 1, (int)shape->columns, of->type, &open);
	} else {
		place(l, of, n, 0);
		l->lb += lb;
		l->ub += more;
		if (typed)
			MPI_Type_contiguous((int)n, of->type, &open);
	}
	if (typed) {
		MPI_Type_create_resized(open, l->lb, extent(l), &l->type);
		MPI_Type_free(&open);
	}
}

static void make(struct layout *l, const struct layout *of, const struct shape *shape,
		 enum layout_kind kind, struct draw *d, bool typed)
{
	unsigned n;

	layout_begin(l);
	switch (kind) {
	case LAYOUT_PLAIN:
	case LAYOUT_DUP:
		place(l, of, 1, 0);
		if (typed)
			MPI_Type_dup(of->type, &l->type);
		break;
	case LAYOUT_CONTIGUOUS:
		n = 1 + draw(d, 4);
		place(l, of, n, 0);
		if (typed)
			MPI_Type_contiguous((int)n, of->type, &l->type);
		break;
	case LAYOUT_VECTOR:
	case LAYOUT_HVECTOR:
		strided_make(l, of, kind, d, typed);
		break;
	case LAYOUT_SUBARRAY:
		subarray_make(l, of, d, typed);
		break;
	case LAYOUT_RESIZED:
	case LAYOUT_COLUMNS:
		resized_make(l, of, shape, kind, d, typed);
		break;
	default:
		blocks_make(l, of, kind, d, typed);
	}
}

/* Check that the library describes a type as the plan does. */
static void compare(const struct layout *l, int unit)
{
	MPI_Aint lb, ext, low, ext_true;
	int size;

	MPI_Type_get_extent(l->type, &lb, &ext);
	MPI_Type_get_true_extent(l->type, &low, &ext_true);
	MPI_Type_size(l->type, &size);
	CHECK(
	    lb == l->lb && ext == extent(l) && low == l->low && ext_true == l->high - l->low,
	    "a type begins at %ld (true: %ld), not %ld (%ld), and extends %ld (%ld), not %ld (%ld)",
	    (long)lb, (long)low, (long)l->lb, (long)l->low, (long)ext, (long)ext_true,
	    (long)extent(l), (long)(l->high - l->low));
	CHECK((unsigned)size == l->units * units[unit].bytes, "a type of %d bytes, not %u", size,
	      l->units * units[unit].bytes);
}

void layout_make(struct layout *l, const struct shape *shape, int unit, bool typed)
{
	static struct layout one, grain, inner;
	struct draw d = {shape->seed};

	unit_make(&one, unit, &d, typed);
	layout_begin(&grain);
	place(&grain, &one, 1, 0);
	if (shape->grain > 1) { /* a piece of any length: units of one field */
		grain.units = shape->grain;
		grain.piece[0].bytes *= shape->grain;
		grain.ub = grain.high = (ptrdiff_t)grain.piece[0].bytes;
	}
	if (typed)
		MPI_Type_contiguous((int)shape->grain, one.type, &grain.type);
	make(&inner, &grain, shape, shape->inner, &d, typed);
	make(l, &inner, shape, shape->outer, &d, typed);
	if (!typed)
		return;
	MPI_Type_free(&one.type);
	MPI_Type_free(&grain.type);
	MPI_Type_free(&inner.type);
	MPI_Type_commit(&l->type);
	compare(l, unit);
}

void layout_span(const struct layout *l, size_t count, ptrdiff_t *low, ptrdiff_t *high)
{
	*low = l->low;
	*high = l->high + (ptrdiff_t)(count - 1) * extent(l);
	if (!count)
		*low = *high = 0;
}

void layout_scatter(const struct layout *l, unsigned char *at, const unsigned char *data,
		    size_t bytes)
{
	unsigned k;

	for (; bytes; at += extent(l))
		for (k = 0; k < l->pieces && bytes; k++) {
			size_t n = l->piece[k].bytes < bytes ? l->piece[k].bytes : bytes;

			memcpy(at + l->piece[k].at, data, n);
			data += n;
			bytes -= n;
		}
}
