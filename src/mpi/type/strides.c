/* strides.c - see strides.h: from the constructors of a type to its loops and lists. */
#include "mpi/type/strides.h"

#include <errno.h>
#include <stdlib.h>

#include "mpi/abi/native.h"
#include "mpi/type/contents.h"

/* ---- Memory of lists ------------------------------------------------------------------ */

struct strides_memory {
	struct strides_memory *next;
	_Alignas(max_align_t) unsigned char bytes[];
};

/* A type on its way. */
struct making {
	struct strides_memory *memory;
	int error;
};

static void *remember(struct making *m, size_t bytes)
{
	struct strides_memory *one = malloc(sizeof(*one) + bytes);

	if (!one) {
		m->error = -ENOMEM;
		return NULL;
	}
	one->next = m->memory;
	m->memory = one;
	return one->bytes;
}

static void memory_free(struct strides_memory *one)
{
	struct strides_memory *next;

	for (; one; one = next) {
		next = one->next;
		free(one);
	}
}

void strides_free(struct strides *s)
{
	memory_free(s->memory);
	s->memory = NULL;
}

/* A list has room for the part after the last, too. */
static struct strides_list *list_make(struct making *m, size_t parts)
{
	struct strides_list *list = remember(m, sizeof(*list) + (parts + 1) * sizeof(list->part[0]));

	if (list) {
		list->parts = 0;
		list->part[0].from = 0;
	}
	return list;
}

/* The bytes of data in the list so far. */
static size_t list_bytes(const struct strides_list *list)
{
	return list->part[list->parts].from;
}

static void strides_list_add(struct strides_list *list, MPI_Aint at, size_t bytes,
			     const struct strides *of)
{
	struct strides_part *p = &list->part[list->parts], *last = list->parts ? p - 1 : NULL;

	if (last && !of && !last->of && at == last->at + (MPI_Aint)(p->from - last->from)) {
		p->from += bytes;
		return;
	}
	p->at = at;
	p->of = of;
	p[1].from = p->from + bytes;
	list->parts++;
}

/* ---- Loops --------------------------------------------------------------------------- */

/*
 * Set the bytes in a turn of each loop.  The loop over elements needs its stride for several
 * elements.
 */
static void settle(struct strides *s)
{
	unsigned i;

	s->loop[0].bytes = s->block;
	for (i = 0; i < s->loops; i++)
		s->loop[i + 1].bytes = s->loop[i].bytes * s->loop[i].count;
	s->loop[s->loops].stride = 0;
}

static const struct strides *copy_of(struct making *m, const struct strides *s)
{
	struct strides *copy = remember(m, sizeof(*copy));

	if (copy) {
		*copy = *s;
		settle(copy);
	}
	return copy;
}

/* *s becomes what is in the list. */
static bool list_take(struct strides *s, const struct strides_list *list)
{
	const struct strides_part *p = list->part;
	const size_t each = p[1].from;
	const MPI_Aint stride = list->parts > 1 ? p[1].at - p->at : 0;
	size_t i;

	if (list->parts == 1 && p->of) {
		*s = *p->of;
		s->first += p->at;
		return true;
	}
	for (i = 0; i < list->parts; i++)
		if (p[i].of || p[i + 1].from - p[i].from != each ||
		    (i && p[i].at - p[i - 1].at != stride))
			break;
	if (i < list->parts) {
		*s = (struct strides){.block = list_bytes(list), .list = list};
		return true;
	}
	*s = (struct strides){.block = each, .first = p->at};
	if (list->parts > 1) {
		s->loops = 1;
		s->loop[0] = (struct strides_loop){.count = list->parts, .stride = stride};
	}
	return true;
}

/* All loops become a list of one part, to make room for another loop. */
static bool wrap(struct making *m, struct strides *s)
{
	const struct strides *inner = copy_of(m, s);
	struct strides_list *list = inner ? list_make(m, 1) : NULL;

	if (!list)
		return false;
	strides_list_add(list, 0, inner->loop[inner->loops].bytes, inner);
	*s = (struct strides){.block = list_bytes(list), .list = list};
	return true;
}

/* All that there is so far, so many times. */
static bool repeat(struct making *m, struct strides *s, MPI_Count count, MPI_Aint stride)
{
	struct strides_loop *last = &s->loop[s->loops];

	if (count == 1)
		return true;
	if (strides_are_solid(s) && stride == (MPI_Aint)s->block) {
		s->block *= (size_t)count;
		return true;
	}
	if (s->loops && stride == last[-1].stride * (MPI_Aint)last[-1].count) {
		last[-1].count *= (size_t)count;
		return true;
	}
	if (s->loops == STRIDES_LOOPS) {
		if (!wrap(m, s))
			return false;
		last = s->loop;
	}
	*last = (struct strides_loop){.count = (size_t)count, .stride = stride};
	s->loops++;
	return true;
}

/* ---- Lists of displacements ------------------------------------------------------------ */

/* Elements of s, which is made of `extent` each, at displacements in units of bytes. */
struct places {
	MPI_Aint extent;
	size_t blocks;
	const MPI_Count *length;	/* length of each block, or one for all */
	bool each;
	const MPI_Count *at;
	MPI_Aint unit;
};

/* The next run: a block that begins at the end of the block before joins it.  False: no more. */
static bool run_next(const struct places *p, size_t *i, MPI_Aint *place, MPI_Count *run)
{
	MPI_Count n;

	for (*place = *run = 0; *i < p->blocks; ++*i) {
		n = p->length[p->each ? *i : 0];
		if (n == 0)
			continue;
		if (*run == 0)
			*place = (MPI_Aint)p->at[*i] * p->unit;
		else if ((MPI_Aint)p->at[*i] * p->unit != *place + (MPI_Aint)*run * p->extent)
			break;
		*run += n;
	}
	return *run;
}

/* Are all runs alike and at even distances?  *first, *stride, *run, *count: then. */
static bool places_even(const struct places *p, MPI_Aint *first, MPI_Aint *stride, MPI_Count *run,
			MPI_Count *count)
{
	MPI_Aint place, before = 0;
	MPI_Count n;
	size_t i = 0;

	for (*count = 0, *stride = 0; run_next(p, &i, &place, &n); ++*count) {
		if (*count == 0) {
			*first = place;
			*run = n;
		} else if (*count == 1) {
			*stride = place - before;
		}
		if (n != *run || (*count && place - before != *stride))
			return false;
		before = place;
	}
	return true;
}

static bool places_list(struct making *m, struct strides *s, const struct places *p)
{
	const bool plain = strides_are_solid(s) && (MPI_Aint)s->block == p->extent;
	struct strides_list *list = list_make(m, p->blocks);
	const struct strides *of = NULL;
	MPI_Count n, before = 0;
	struct strides some;
	MPI_Aint place;
	size_t i = 0;

	while (list && run_next(p, &i, &place, &n)) {
		if (plain) {
			strides_list_add(list, place + s->first, (size_t)n * s->block, NULL);
			continue;
		}
		if (n != before) {
			some = *s;
			of = repeat(m, &some, n, p->extent) ? copy_of(m, &some) : NULL;
			before = n;
		}
		if (!of)
			return false;
		strides_list_add(list, place, of->loop[of->loops].bytes, of);
	}
	return list && list_take(s, list);
}

static bool repeat_at(struct making *m, struct strides *s, const struct places *p)
{
	MPI_Aint first = 0, stride;
	MPI_Count run = 0, count;

	if (!places_even(p, &first, &stride, &run, &count))
		return places_list(m, s, p);
	s->first += first;
	return repeat(m, s, run, p->extent) && repeat(m, s, count, stride);
}

/* ---- Parts of arrays ------------------------------------------------------------------- */

static bool subarray(struct making *m, struct strides *s, MPI_Aint extent, const struct contents *c)
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
		if (!repeat(m, s, part[k], stride))
			return false;
		stride *= (MPI_Aint)size[k];
	}
	return true;
}

/* A dimension of MPI_Type_create_darray [MPI 4.0, 5.1.4]: blocks of `of`, dealt to `ranks`. */
static bool dealt(struct making *m, struct strides *s, MPI_Count size, MPI_Count of, MPI_Count ranks,
		  MPI_Count rank, MPI_Aint stride)
{
	const MPI_Count first = rank * of, round = ranks * of;
	const MPI_Count blocks = (size - first + round - 1) / round;
	MPI_Count places[2] = {first, first + (blocks - 1) * round};
	MPI_Count lengths[2] = {of, size - places[1] < of ? size - places[1] : of};
	struct strides whole = *s, last = *s;
	const struct strides *copy[2];
	struct strides_list *list;

	if (blocks == 1 || lengths[1] == of) {
		s->first += (MPI_Aint)first * stride;
		return repeat(m, s, lengths[1], stride) &&
		       repeat(m, s, blocks, (MPI_Aint)round * stride);
	}
	if (!repeat(m, &whole, of, stride) ||
	    !repeat(m, &whole, blocks - 1, (MPI_Aint)round * stride) ||
	    !repeat(m, &last, lengths[1], stride))
		return false;
	copy[0] = copy_of(m, &whole);
	copy[1] = copy_of(m, &last);
	list = copy[0] && copy[1] ? list_make(m, 2) : NULL;
	for (int i = 0; i < 2 && list; i++)
		strides_list_add(list, (MPI_Aint)places[i] * stride,
				 copy[i]->loop[copy[i]->loops].bytes, copy[i]);
	return list && list_take(s, list);
}

static bool darray(struct making *m, struct strides *s, MPI_Aint extent, const struct contents *c)
{
	const MPI_Count *n = c->number;
	size_t dims = (size_t)n[2], i, k;
	/* With large counts the sizes of the array follow the integers. */
	const MPI_Count *size = c->large ? n + 4 + 3 * dims : n + 3;
	const MPI_Count *how = c->large ? n + 3 : size + dims, *arg = how + dims, *ranks = arg + dims;
	const bool fortran = ranks[dims] == MPI_ORDER_FORTRAN;
	MPI_Count below, at, of;
	MPI_Aint stride = extent;

	for (i = 0; i < dims; i++) {
		k = fortran ? i : dims - 1 - i;
		/*
		 * Places of ranks are counted as in C for both orders: the last dimension the
		 * fastest.
		 */
		below = 1;
		for (size_t j = k + 1; j < dims; j++)
			below *= ranks[j];
		at = n[1] / below % ranks[k];
		of = arg[k];
		if (how[k] == MPI_DISTRIBUTE_NONE)
			of = size[k];
		else if (of == MPI_DISTRIBUTE_DFLT_DARG)
			of = how[k] == MPI_DISTRIBUTE_CYCLIC ? 1 : (size[k] + ranks[k] - 1) / ranks[k];
		if (!dealt(m, s, size[k], of, how[k] == MPI_DISTRIBUTE_NONE ? 1 : ranks[k],
			   how[k] == MPI_DISTRIBUTE_NONE ? 0 : at, stride))
			return false;
		stride *= (MPI_Aint)size[k];
	}
	return true;
}

/* ---- All constructors ------------------------------------------------------------------ */

static bool strides_decode(struct making *m, MPI_Datatype handle, struct strides *s);

/* Members without data move bounds, if anything. */
static bool structure(struct making *m, struct strides *s, const struct contents *c)
{
	const MPI_Count *length = c->number + 1, *at = length + c->types;
	struct strides_list *list = list_make(m, c->types);
	const struct strides *of;
	MPI_Aint lb, extent;
	MPI_Count size;
	size_t i;

	for (i = 0; list && i < c->types; i++) {
		if (native.Type_size_x(c->type[i], &size))
			return false;
		if (!length[i] || !size)
			continue;
		if (!strides_decode(m, c->type[i], s) ||
		    native.Type_get_extent(c->type[i], &lb, &extent) ||
		    !repeat(m, s, length[i], extent))
			return false;
		if (strides_are_solid(s)) {
			strides_list_add(list, (MPI_Aint)at[i] + s->first, s->block, NULL);
			continue;
		}
		of = copy_of(m, s);
		if (!of)
			return false;
		strides_list_add(list, (MPI_Aint)at[i], of->loop[of->loops].bytes, of);
	}
	return list && list_take(s, list);
}

/* s: of what the type is made of, on input. */
static bool construct(struct making *m, struct strides *s, MPI_Aint extent, const struct contents *c)
{
	const MPI_Count *n = c->number;
	const size_t blocks = (size_t)n[0];
	struct places p = {.extent = extent, .blocks = blocks, .length = n + 1, .unit = 1};

	switch (c->combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		return true;
	case MPI_COMBINER_CONTIGUOUS:
		return repeat(m, s, n[0], extent);
	case MPI_COMBINER_VECTOR:
		return repeat(m, s, n[1], extent) && repeat(m, s, n[0], (MPI_Aint)n[2] * extent);
	case MPI_COMBINER_HVECTOR:
		return repeat(m, s, n[1], extent) && repeat(m, s, n[0], (MPI_Aint)n[2]);
	case MPI_COMBINER_INDEXED:
		p.unit = extent;
		/* fall through */
	case MPI_COMBINER_HINDEXED:
		p.each = true;
		p.at = n + 1 + blocks;
		return repeat_at(m, s, &p);
	case MPI_COMBINER_INDEXED_BLOCK:
		p.unit = extent;
		/* fall through */
	case MPI_COMBINER_HINDEXED_BLOCK:
		p.at = n + 2;
		return repeat_at(m, s, &p);
	case MPI_COMBINER_SUBARRAY:
		return subarray(m, s, extent, c);
	case MPI_COMBINER_DARRAY:
		return darray(m, s, extent, c);
	default:
		return false;
	}
}

/* A pair such as MPI_SHORT_INT has a hole before its int, which is its end. */
static bool strides_of_named(struct making *m, MPI_Datatype handle, struct strides *s)
{
	struct strides_list *list;
	MPI_Aint lb, extent;
	MPI_Count size;

	if (native.Type_size_x(handle, &size) || size <= 0 ||
	    native.Type_get_true_extent(handle, &lb, &extent))
		return false;
	*s = (struct strides){.block = (size_t)size, .first = lb};
	if (size == extent)
		return true;
	list = size > (MPI_Count)sizeof(int) ? list_make(m, 2) : NULL;
	if (!list)
		return false;
	strides_list_add(list, lb, (size_t)size - sizeof(int), NULL);
	strides_list_add(list, lb + extent - (MPI_Aint)sizeof(int), sizeof(int), NULL);
	return list_take(s, list);
}

static bool strides_decode(struct making *m, MPI_Datatype handle, struct strides *s)
{
	struct contents c;
	MPI_Aint lb, extent;
	MPI_Count n[4];
	bool well;

	if (!contents_envelope(handle, n, &c.combiner))
		return false;
	if (contents_are_predefined(c.combiner))
		return strides_of_named(m, handle, s);
	if (!contents_get(handle, n, &c)) {
		m->error = -ENOMEM;
		return false;
	}
	if (c.combiner == MPI_COMBINER_STRUCT)
		well = structure(m, s, &c);
	else
		well = c.types == 1 && strides_decode(m, c.type[0], s) &&
		       !native.Type_get_extent(c.type[0], &lb, &extent) &&
		       construct(m, s, extent, &c);
	contents_free(&c);
	return well;
}

int strides_of(MPI_Datatype handle, struct strides *out)
{
	struct making m = {.error = -ENOTSUP};
	MPI_Aint lb, extent;
	struct strides s;
	MPI_Count size;

	if (!strides_decode(&m, handle, &s) || native.Type_get_extent(handle, &lb, &extent)) {
		memory_free(m.memory);
		return m.error;
	}
	settle(&s);
	s.loop[s.loops].stride = extent;
	s.memory = m.memory;
	if (native.Type_size_x(handle, &size) || (size_t)size != s.loop[s.loops].bytes) {
		strides_free(&s);
		return -ENOTSUP;
	}
	*out = s;
	return 0;
}

void strides_bounds(const struct strides *s, MPI_Aint *low, MPI_Aint *high)
{
	MPI_Aint from = 0, to = (MPI_Aint)s->block, first, last, way;
	size_t i;

	for (i = 0; s->list && i < s->list->parts; i++) {
		const struct strides_part *p = &s->list->part[i];

		first = 0;
		last = (MPI_Aint)(p[1].from - p->from);
		if (p->of)
			strides_bounds(p->of, &first, &last);
		from = !i || p->at + first < from ? p->at + first : from;
		to = !i || p->at + last > to ? p->at + last : to;
	}
	for (i = 0; i < s->loops; i++) {
		way = s->loop[i].stride * (MPI_Aint)(s->loop[i].count - 1);
		if (way < 0)
			from += way;
		else
			to += way;
	}
	*low = s->first + from;
	*high = s->first + to;
}
