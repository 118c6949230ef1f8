/* plan.c - draws communicators, messages, and what goes on between them. */
#include "programs.h"

#include <string.h>

int member_of(const struct plan *p, int comm, int world)
{
	int i;

	for (i = 0; i < p->comm[comm].size; i++)
		if (p->comm[comm].member[i] == world)
			return i;
	return -1;
}

/* ---- Communicators ------------------------------------------------------------------------ */

/* Some of the parent's members, in another order. */
static void some_members(struct comm_plan *c, struct draw *d)
{
	int i, k, m;

	for (i = c->size - 1; i > 0; i--) {
		k = (int)draw(d, (unsigned)i + 1);
		m = c->member[i];
		c->member[i] = c->member[k];
		c->member[k] = m;
	}
	if (c->size > 2 && draw_chance(d, 50))
		c->size--;
	if (draw_chance(d, 10))
		c->size = 1;
}

static void comm_draw(struct plan *p, int index, struct draw *d)
{
	static const enum comm_maker often[] = {
	    COMM_DUP,    COMM_DUP_INFO,     COMM_DUP_INFO, COMM_SPLIT, COMM_SPLIT,
	    COMM_CREATE, COMM_CREATE_GROUP, COMM_CART,     COMM_IDUP,  COMM_INTER,
	};
	struct comm_plan *c = &p->comm[index];
	enum comm_maker maker;
	int parent;

	do
		parent = (int)draw(d, (unsigned)index);
	while (p->comm[parent].maker == COMM_INTER);
	maker = often[draw(d, sizeof(often) / sizeof(often[0]))];
	if (LIBRARY_LOSES_ORDER && (maker == COMM_INTER || maker == COMM_IDUP))
		maker = COMM_DUP;
	if (maker == COMM_INTER && p->comm[parent].size < 2)
		maker = COMM_DUP;
	*c = p->comm[parent];
	c->maker = maker;
	c->parent = parent;
	if (maker == COMM_SPLIT || maker == COMM_CREATE || maker == COMM_CREATE_GROUP)
		some_members(c, d);
	if (maker == COMM_INTER)
		c->left = 1 + (int)draw(d, (unsigned)c->size - 1);
}

void plan_comms(struct plan *p, uint64_t seed, unsigned long block, int ranks)
{
	struct draw d = {mix(seed) ^ mix(block * 7919 + (unsigned)ranks)};
	int i;

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	p->ranks = ranks;
	p->comm[0].maker = COMM_BASE;
	p->comm[0].size = ranks;
	for (i = 0; i < ranks; i++)
		p->comm[0].member[i] = i;
	p->comms = 2 + (int)draw(&d, COMMS_MAX - 1);
	for (i = 1; i < p->comms; i++)
		comm_draw(p, i, &d);
}

/* ---- Sizes and types ------------------------------------------------------------------------ */

/* Most are short, some around the limits of the transport, few long, up to 8 MB. */
static size_t draw_bytes(struct draw *d, size_t *budget)
{
	unsigned which = draw(d, 1000);
	size_t bytes;

	if (which < 60)
		bytes = 0;
	else if (which < 600)
		bytes = draw(d, 128);
	else if (which < 780)
		bytes = draw(d, 5000);
	else if (which < 880)
		bytes = 8000 + draw(d, 500);
	else if (which < 940)
		bytes = draw(d, 70000);
	else if (which < 965)
		bytes = draw(d, 1000);
	else if (which < 998)
		bytes = (size_t)1 << (15 + draw(d, 4)), bytes += draw(d, (unsigned)bytes);
	else
		bytes = (1 << 20) + draw(d, BYTES_MAX - (1 << 20) + 1);
	if (bytes > *budget)
		bytes = draw(d, 100);
	*budget -= bytes;
	return bytes;
}

void shape_draw(struct draw *d, struct shape *shape, int unit, size_t bytes)
{
	static const enum layout_kind inside[] = {
	    LAYOUT_PLAIN, LAYOUT_CONTIGUOUS, LAYOUT_VECTOR, LAYOUT_INDEXED, LAYOUT_RESIZED,
	};
	size_t units_count = bytes / units[unit].bytes;

	memset(shape, 0, sizeof(*shape));
	shape->seed = mix(d->state);
	shape->grain = 1;
	shape->outer = shape->inner = LAYOUT_PLAIN;
	if (draw_chance(d, 40))
		return;
	shape->outer = (unsigned char)draw(d, LAYOUT_KINDS);
	if (unit < FIRST_MIXED && draw_chance(d, 40))
		shape->inner = (unsigned char)inside[draw(d, sizeof(inside) / sizeof(inside[0]))];
	if (unit < FIRST_MIXED && (bytes > 20000 || (bytes > 2000 && draw_chance(d, 80))))
		shape->grain = (unsigned)(units_count / (50 + draw(d, 200))) + 1;
	shape->columns = 1;
	if (shape->outer == LAYOUT_COLUMNS) {
		shape->grain = 1;
		shape->columns = (unsigned)units_count + 2 + draw(d, 3);
		if (units_count > 200)
			shape->outer = LAYOUT_VECTOR;
	}
}

/* Another type is taken in place of a type with longer elements. */
static size_t whole_elements(struct shape *shape, int unit, size_t units_count)
{
	struct layout l;

	layout_make(&l, shape, unit, false);
	if (l.units > units_count) {
		shape->outer = shape->inner = LAYOUT_PLAIN;
		shape->grain = 1;
		return units_count;
	}
	return units_count / l.units * l.units;
}

static enum origin draw_origin(struct draw *d)
{
	return draw_chance(d, 30) ? ORIGIN_MALLOC : (enum origin)draw(d, ORIGINS);
}

void side_draw(struct draw *d, struct side *side, int unit, size_t bytes)
{
	shape_draw(d, &side->shape, unit, bytes);
	side->origin = draw_origin(d);
	side->type_freed = draw_chance(d, 30);
}

/* ---- Messages ----------------------------------------------------------------------------------
 */

static int draw_unit(struct draw *d, size_t bytes)
{
	unsigned which = draw(d, 10);

	if (which < 4 || (which >= 8 && bytes > 20000))
		return 0;
	return (int)(which < 8 ? draw(d, FIRST_MIXED) : FIRST_MIXED + draw(d, UNITS - FIRST_MIXED));
}

/* All of a class are sequences of the same unit. */
static int class_unit(const struct plan *p, const struct message *m)
{
	struct draw d = {p->key ^
			 mix(((unsigned)m->comm * RANKS_MAX + (unsigned)m->to) * EPOCHS_MAX +
			     (unsigned)m->epoch)};

	return draw_unit(&d, 100);
}

static void draw_ends(struct plan *p, struct message *m, struct draw *d)
{
	const struct comm_plan *c;

	do
		m->comm = (int)draw(d, (unsigned)p->comms);
	while (p->comm[m->comm].size == 1 && draw_chance(d, 80));
	c = &p->comm[m->comm];
	m->from = (int)draw(d, (unsigned)c->size);
	do
		m->to = (int)draw(d, (unsigned)c->size);
	while (c->maker == COMM_INTER && (m->from < c->left) == (m->to < c->left));
}

static void draw_message(struct plan *p, int index, struct draw *d, size_t *budget)
{
	static const enum mode modes[] = {
	    MODE_STANDARD,    MODE_STANDARD, MODE_STANDARD, MODE_STANDARD, MODE_SYNCHRONOUS,
	    MODE_SYNCHRONOUS, MODE_BUFFERED, MODE_READY,    MODE_READY,
	};
	struct message *m = &p->message[index];
	size_t bytes;

	memset(m, 0, sizeof(*m));
	m->chain = m->receive = m->before = -1;
	draw_ends(p, m, d);
	m->tag = (int)draw(d, 4);
	m->epoch = index * p->epochs / p->messages;
	m->key = mix(p->key + (unsigned)index);
	bytes = draw_bytes(d, budget);
	m->unit = draw_unit(d, bytes);
	if (p->comm[m->comm].style == STYLE_WILD)
		m->unit = class_unit(p, m);
	if (m->unit >= FIRST_MIXED)
		bytes %= 100000;
	side_draw(d, &m->side, m->unit, bytes);
	m->units = whole_elements(&m->side.shape, m->unit, bytes / units[m->unit].bytes);
	m->mode = modes[draw(d, sizeof(modes) / sizeof(modes[0]))];
	if (m->mode == MODE_BUFFERED && bytes > 100000)
		m->mode = MODE_STANDARD;
	m->how = draw_chance(d, 35)   ? HOW_BLOCKING
		 : draw_chance(d, 75) ? HOW_NONBLOCKING
				      : HOW_PERSISTENT;
	m->request_freed = m->how == HOW_NONBLOCKING && draw_chance(d, 10);
}

/* A message that a persistent request sends again, with other bytes. */
static void draw_again(struct plan *p, int index)
{
	const struct message *first = &p->message[index - 1];
	struct message *m = &p->message[index];

	*m = *first;
	m->chain = index - 1;
	m->epoch = index * p->epochs / p->messages;
	m->key = mix(p->key + (unsigned)index);
	if (p->comm[m->comm].style == STYLE_WILD)
		m->epoch = first->epoch;
}

static void draw_messages(struct plan *p, struct draw *d)
{
	size_t budget = 3 * (size_t)BYTES_MAX;
	int i, k;

	p->messages = 36 + (int)draw(d, 60);
	for (i = 0; i < p->messages; i++) {
		const struct message *last = &p->message[i ? i - 1 : 0];

		if (i && last->how == HOW_PERSISTENT &&
		    last->units * units[last->unit].bytes < 50000 && draw_chance(d, 60))
			draw_again(p, i);
		else
			draw_message(p, i, d, &budget);
		for (k = i - 1; k >= 0 && p->message[i].before < 0; k--)
			if (p->message[k].comm == p->message[i].comm &&
			    p->message[k].from == p->message[i].from &&
			    p->message[k].to == p->message[i].to)
				p->message[i].before = k;
	}
}

/* ---- What goes on between messages
 * ------------------------------------------------------------------ */

static bool other_fits(const struct plan *p, const struct other *o)
{
	const struct comm_plan *c = &p->comm[o->comm];

	if (c->maker == COMM_INTER)
		return false;
	if (is_collective(o) || o->kind == OTHER_DUP || o->kind == OTHER_NULL)
		return true;
	if (c->style != STYLE_TAGGED)
		return false;
	return o->kind != OTHER_CANCEL_SEND || c->size > 1;
}

static void draw_other(struct plan *p, struct other *o, struct draw *d)
{
	int size;

	do {
		o->kind = draw_chance(d, 60)
			      ? (enum other_kind)draw(d, COLLECTIVES)
			      : (enum other_kind)(COLLECTIVES + draw(d, OTHERS - COLLECTIVES));
		o->comm = (int)draw(d, (unsigned)p->comms);
	} while (!other_fits(p, o) || (o->kind == OTHER_DUP && draw_chance(d, 80)));
	size = p->comm[o->comm].size;
	o->root = o->from = (int)draw(d, (unsigned)size);
	o->to = size > 1 ? (o->from + 1 + (int)draw(d, (unsigned)size - 1)) % size : 0;
	o->shift = (int)draw(d, (unsigned)size + 1);
	o->wraps = draw_chance(d, 70);
	o->nonblocking = draw_chance(d, 30);
	o->in_place = draw_chance(d, 25);
	o->vector = draw_chance(d, 50);
	/*
	 * Open MPI 4.1: MPI_Ialltoallv in place takes a tag on those ranks alone that have bytes to
	 * send, so that the next nonblocking collective never ends.
	 */
	if (o->kind == OTHER_ALLTOALL && o->nonblocking && o->vector)
		o->in_place = false;
	o->op = draw(d, 60);
	o->units = draw_chance(d, 85) ? draw(d, 200) : draw(d, 9000);
	o->unit = (int)draw(d, o->kind == OTHER_BCAST || !is_collective(o) ? UNITS : FIRST_MIXED);
	o->origin = draw_origin(d);
	o->key = mix(p->key ^ mix((uint64_t)(o - p->other) + 500));
	shape_draw(d, &o->shape, o->unit, o->units * units[o->unit].bytes);
	if (o->kind == OTHER_BCAST || !is_collective(o))
		o->units = whole_elements(&o->shape, o->unit, o->units);
}

void plan_draw(struct plan *p, uint64_t seed, unsigned long number, int ranks)
{
	struct draw d;
	int i;

	plan_comms(p, seed, number / BLOCK, ranks);
	p->number = number;
	p->key = mix(mix(seed) + mix(number * 31 + (unsigned)ranks));
	d.state = p->key;
	for (i = 0; i < p->comms; i++)
		p->comm[i].style = (enum style)draw(&d, 3);
	p->epochs = 1 + (int)draw(&d, EPOCHS_MAX);
	draw_messages(p, &d);
	p->others = 14 + (int)draw(&d, 20);
	for (i = 0; i < p->others; i++)
		draw_other(p, &p->other[i], &d);
	plan_receives(p, &d);
	plan_order(p, &d);
}
