/* plan.c - cells, matchings, who leaves the rounds, the estimate. */
#include "accept/state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "accept/rounds.h"

enum {
	TRIES = 16,			/* partners that are drawn to find a new one */
	CHECK_CELLS = 2 * 3,		/* both directions between a suspect and two partners, and these */
	CHECK_DEAD = 2 * 2,
	SUSPECTS = 3,			/* suspects that noise makes: more are rare */
};

/* ---- The state ------------------------------------------------------------------------ */

static void *copy_of(const void *from, size_t bytes)
{
	void *copy = malloc(bytes + 1);

	if (copy)
		memcpy(copy, from, bytes);
	return copy;
}

static void ports_set(struct accept *a)
{
	for (int i = 0; i < a->shape.nodes * a->shape.rails; i++) {
		a->port[i] = (struct accept_port){
			.missing = a->shape.missing && a->shape.missing[i],
			.failed_in = -1, .group = -1, .effect = { NAN, NAN }, .both = NAN,
		};
	}
	for (int r = 0; r < a->shape.rails; r++)
		a->rail[r].level = NAN;
	a->shape.missing = NULL;
}

struct accept *accept_new(const struct accept_shape *shape)
{
	size_t nodes = (size_t)shape->nodes, ports = nodes * (size_t)shape->rails;
	struct accept *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->shape = *shape;
	a->least = -log1p(-(shape->least > 0 ? fmin(shape->least, 1) : ACCEPT_LEAST));
	a->random = shape->seed;
	a->port = calloc(ports + 1, sizeof(a->port[0]));
	a->rail = calloc((size_t)shape->rails + 1, sizeof(a->rail[0]));
	a->pair = calloc(nodes + 1, sizeof(a->pair[0]));
	a->order = calloc(nodes + 1, sizeof(a->order[0]));
	a->past = calloc((size_t)accept_rounds(shape) * (nodes / 2) + 1, sizeof(a->past[0]));
	a->past_count = calloc((size_t)accept_rounds(shape) + 1, sizeof(a->past_count[0]));
	a->met = calloc(nodes * nodes + 1, 1);
	if (shape->leaf)
		a->leaf = copy_of(shape->leaf, nodes * sizeof(a->leaf[0]));
	if (!a->port || !a->rail || !a->pair || !a->past || !a->past_count || !a->order || !a->met ||
	    (shape->leaf && !a->leaf)) {
		accept_free(a);
		return NULL;
	}
	ports_set(a);
	return a;
}

void accept_free(struct accept *a)
{
	if (!a)
		return;
	for (int i = 0; i < a->group_count; i++)
		free(a->group[i].member);
	free(a->group);
	free(a->check);
	free(a->fault);
	free(a->cell);
	free(a->rest);
	free(a->met);
	free(a->order);
	free(a->pair);
	free(a->past);
	free(a->past_count);
	free(a->leaf);
	free(a->rail);
	free(a->port);
	free(a);
}

void *accept_grow(struct accept *a, void *list, int count, int *room, size_t bytes)
{
	int more = *room ? 2 * *room : 64;

	if (count < *room)
		return list;
	list = realloc(list, (size_t)more * bytes);
	if (list)
		*room = more;
	else
		a->out_of_memory = true;
	return list;
}

/* ---- Cells -------------------------------------------------------------------------------- */

static void port_fails(struct accept_port *p, int round)
{
	if (p->failed_in != round)
		p->fails++;
	p->failed_in = round;
}

int accept_add(struct accept *a, const struct accept_cell *cell)
{
	struct accept_cell *list = accept_grow(a, a->cell, a->cell_count, &a->cell_room,
					       sizeof(a->cell[0]));

	if (!list)
		return -ENOMEM;
	a->cell = list;
	a->cell[a->cell_count++] = *cell;
	if (cell->state == ACCEPT_DOWN) {
		port_of(a, cell->from, cell->rail)->dead[OUT]++;
		port_of(a, cell->to, cell->rail)->dead[IN]++;
	}
	if (cell->state != ACCEPT_OK && cell->round != ACCEPT_ALONE) {
		port_fails(port_of(a, cell->from, cell->rail), cell->round);
		port_fails(port_of(a, cell->to, cell->rail), cell->round);
	}
	return 0;
}

bool accept_takes(const struct accept *a, int node, int rail)
{
	const struct accept_port *p = port_of(a, node, rail);

	return !p->missing && !p->left;
}

int accept_fails(const struct accept *a, int node, int rail)
{
	return port_of(a, node, rail)->fails;
}

bool accept_has_left(const struct accept *a, int node, int rail)
{
	return port_of(a, node, rail)->left;
}

void accept_leave(struct accept *a)
{
	for (int i = 0; i < a->shape.nodes * a->shape.rails; i++)
		a->port[i].left = a->port[i].fails >= ACCEPT_FAILS;
}

/* ---- Matchings --------------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t draw(struct accept *a, uint64_t below)
{
	uint64_t z = a->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % below;
}

static void exchange(int *order, int i, int k)
{
	int other = order[i];

	order[i] = order[k];
	order[k] = other;
}

static bool is_busy(const struct accept *a, int node)
{
	for (int r = 0; r < a->shape.rails; r++)
		if (accept_takes(a, node, r))
			return true;
	return false;
}

static bool share_rail(const struct accept *a, int x, int y)
{
	for (int r = 0; r < a->shape.rails; r++)
		if (accept_takes(a, x, r) && accept_takes(a, y, r))
			return true;
	return false;
}

static unsigned char *met(struct accept *a, int x, int y)
{
	return &a->met[x < y ? x * a->shape.nodes + y : y * a->shape.nodes + x];
}

static int pair_add(struct accept *a, int count, int x, int y)
{
	if (!share_rail(a, x, y))
		return count;
	*met(a, x, y) = 1;
	a->pair[count] = (struct accept_pair){ x < y ? x : y, x < y ? y : x };
	return count + 1;
}

static int order_draw(struct accept *a)
{
	int count = 0;

	for (int n = 0; n < a->shape.nodes; n++)
		if (is_busy(a, n))
			a->order[count++] = n;
	for (int i = count - 1; i > 0; i--)
		exchange(a->order, i, (int)draw(a, (uint64_t)i + 1));
	return count;
}

/* A random matching; pairs that have met are avoided where a few draws find others. */
static int round_draw(struct accept *a)
{
	int nodes = order_draw(a), pairs = 0;

	for (int i = 0; i + 1 < nodes; i += 2) {
		for (int t = 0; t < TRIES && *met(a, a->order[i], a->order[i + 1]); t++)
			exchange(a->order, i + 1, i + 1 + (int)draw(a, (uint64_t)(nodes - i - 1)));
		pairs = pair_add(a, pairs, a->order[i], a->order[i + 1]);
	}
	return pairs;
}

static int round_of_tournament(struct accept *a, int round)
{
	int pairs = 0;

	for (int n = 0; n < a->shape.nodes; n++) {
		int other = rounds_opponent(a->shape.nodes, round, n);

		if (other > n)
			pairs = pair_add(a, pairs, n, other);
	}
	return pairs;
}

int accept_round_make(struct accept *a, int round)
{
	int pairs = a->shape.rounds ? round_draw(a) : round_of_tournament(a, round);

	memcpy(a->past + (size_t)round * (size_t)(a->shape.nodes / 2), a->pair,
	       (size_t)pairs * sizeof(a->pair[0]));
	a->past_count[round] = pairs;
	return pairs;
}

int accept_rounds(const struct accept_shape *shape)
{
	return shape->rounds ? shape->rounds : rounds_count(shape->nodes);
}

/* ---- Time ----------------------------------------------------------------------------------- */

uint64_t accept_limit_ns(const uint64_t *took_ns, int done, int pairs, unsigned patience)
{
	return 2 * done < pairs || !done ? 0 : patience * took_ns[(pairs - 1) / 2];
}

static uint64_t least(uint64_t x, uint64_t y)
{
	return x < y ? x : y;
}

/*
 * A bad port holds up ACCEPT_FAILS rounds, each for as long as a round waits or its cells take.
 * Alone its cells fail once, or are all measured.
 */
struct accept_estimate accept_estimate(const struct accept_shape *shape,
				       const struct accept_costs *costs)
{
	uint64_t rails = (uint64_t)shape->rails, pair_ns = 2 * rails * costs->cell_ns;
	uint64_t held_ns = least((ACCEPT_PATIENCE - 1) * pair_ns, 2 * costs->dead_ns);
	uint64_t check_ns = CHECK_CELLS * ACCEPT_REPEATS * (costs->cell_ns + costs->round_ns);

	return (struct accept_estimate){
		.rounds_ns = (uint64_t)accept_rounds(shape) * (pair_ns + costs->round_ns),
		.suspects_ns = SUSPECTS * check_ns,
		.bad_port_ns = ACCEPT_FAILS * held_ns + CHECK_DEAD * costs->dead_ns + check_ns,
	};
}
