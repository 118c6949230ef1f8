/*
 * leaf.c - suspects of one leaf switch: slow to all others, and well among themselves where the link
 * above the switch is at fault.
 *
 * Known leaves: most nodes of a leaf are suspects.  Unknown ones: three or more suspects of a rail
 * whose cells with each other are well, which cables of their own would not be.
 */
#include "accept/state.h"

#include <math.h>
#include <stdlib.h>

#include "stats/stats.h"

enum { LEAF_LEAST = 2, UNKNOWN_LEAST = 3 };
#define LEAF_SHARE 0.75
#define ALIKE_RANGE 0.04	/* logarithm: effects of nodes that one link slows */

/* Suspects of a rail: work of one call. */
struct crowd {
	int rail, count;
	int *node;
	int *set;			/* number of the set that a suspect belongs to */
	double *sum;			/* by suspect * count + suspect: cells among them */
	int *cells;
};

static struct accept_group *group_new(struct accept *a, int rail, int members)
{
	struct accept_group *g = realloc(a->group, ((size_t)a->group_count + 1) * sizeof(*g));
	int *member = malloc((size_t)members * sizeof(member[0]));

	if (g)
		a->group = g;
	if (!g || !member) {
		a->out_of_memory = true;
		free(member);
		return NULL;
	}
	g += a->group_count++;
	*g = (struct accept_group){ .rail = rail, .member = member };
	return g;
}

static void group_add(struct accept *a, struct accept_group *g, int node)
{
	struct accept_port *p = port_of(a, node, g->rail);

	p->group = (int)(g - a->group);
	g->low = (g->low * g->count - p->both) / (g->count + 1);
	g->member[g->count++] = node;
}

/* ---- Known leaves ---------------------------------------------------------------------------- */

static void leaf_judge(struct accept *a, int rail, int leaf)
{
	struct accept_group *g;
	int nodes = 0, suspects = 0;

	for (int n = 0; n < a->shape.nodes; n++) {
		nodes += a->leaf[n] == leaf;
		suspects += a->leaf[n] == leaf && port_of(a, n, rail)->suspect;
	}
	if (suspects < LEAF_LEAST || suspects < LEAF_SHARE * nodes || nodes == a->shape.nodes)
		return;
	g = group_new(a, rail, suspects);
	for (int n = 0; g && n < a->shape.nodes; n++)
		if (a->leaf[n] == leaf && port_of(a, n, rail)->suspect)
			group_add(a, g, n);
}

static void known_leaves(struct accept *a, int rail)
{
	for (int n = 0; n < a->shape.nodes; n++) {
		int first = 0;

		while (a->leaf[first] != a->leaf[n])
			first++;
		if (first == n && a->leaf[n] >= 0)
			leaf_judge(a, rail, a->leaf[n]);
	}
}

/* ---- Unknown leaves --------------------------------------------------------------------------- */

static int crowd_find(struct accept *a, int rail, struct crowd *c)
{
	size_t n = (unsigned)a->shape.nodes;

	*c = (struct crowd){ .rail = rail, .node = calloc(n, sizeof(c->node[0])),
			     .set = calloc(n, sizeof(c->set[0])) };
	for (int i = 0; c->node && i < a->shape.nodes; i++)
		if (port_of(a, i, rail)->suspect && port_of(a, i, rail)->group < 0)
			c->node[c->count++] = i;
	n = (unsigned)c->count;
	c->sum = calloc(n * n + 1, sizeof(c->sum[0]));
	c->cells = calloc(n * n + 1, sizeof(c->cells[0]));
	if (c->node && c->set && c->sum && c->cells)
		return 0;
	a->out_of_memory = true;
	return -1;
}

static void crowd_free(struct crowd *c)
{
	free(c->node);
	free(c->set);
	free(c->sum);
	free(c->cells);
}

static int place_in(const struct crowd *c, int node)
{
	for (int i = 0; i < c->count; i++)
		if (c->node[i] == node)
			return i;
	return -1;
}

static void crowd_cells(const struct accept *a, struct crowd *c)
{
	for (int i = 0; i < a->cell_count; i++) {
		const struct accept_cell *cell = &a->cell[i];
		int from = place_in(c, cell->from), to = place_in(c, cell->to);
		int at = (from < to ? from : to) * c->count + (from < to ? to : from);

		if (cell->rail != c->rail || cell->round == ACCEPT_ALONE ||
		    cell->state == ACCEPT_DOWN || from < 0 || to < 0)
			continue;
		c->sum[at] += log(cell->rate) - a->rail[c->rail].level;
		c->cells[at]++;
	}
}

/* 1: the cells of two suspects are well; -1: they are slow; 0: there are none. */
static int evidence(const struct accept *a, const struct crowd *c, int i, int k)
{
	int at = (i < k ? i : k) * c->count + (i < k ? k : i);
	double low = (port_of(a, c->node[i], c->rail)->both +
		      port_of(a, c->node[k], c->rail)->both) / 2;

	if (!c->cells[at])
		return 0;
	return c->sum[at] / c->cells[at] > low / 2 ? 1 : -1;
}

static void sets_join(struct crowd *c, int from, int to)
{
	for (int i = 0; i < c->count; i++)
		if (c->set[i] == from)
			c->set[i] = to;
}

static int set_size(const struct crowd *c, int set)
{
	int size = 0;

	for (int i = 0; i < c->count; i++)
		size += c->set[i] == set;
	return size;
}

static int largest_set(const struct crowd *c)
{
	int best = 0;

	for (int i = 1; i < c->count; i++)
		if (set_size(c, c->set[i]) > set_size(c, c->set[best]))
			best = i;
	return c->count ? c->set[best] : -1;
}

/* May a suspect belong to the set: no slow cell with it, and an effect like its members'? */
static bool may_join(const struct accept *a, const struct crowd *c, int i, int set)
{
	double sum = 0;

	for (int k = 0; k < c->count; k++) {
		if (c->set[k] != set)
			continue;
		if (evidence(a, c, i, k) < 0)
			return false;
		sum += port_of(a, c->node[k], c->rail)->both;
	}
	return fabs(sum / set_size(c, set) - port_of(a, c->node[i], c->rail)->both) < ALIKE_RANGE;
}

static void sets_find(const struct accept *a, struct crowd *c)
{
	int best;

	for (int i = 0; i < c->count; i++)
		c->set[i] = i;
	for (int i = 0; i < c->count; i++)
		for (int k = i + 1; k < c->count; k++)
			if (evidence(a, c, i, k) > 0)
				sets_join(c, c->set[i], c->set[k]);
	best = largest_set(c);
	if (set_size(c, best) < UNKNOWN_LEAST)
		return;
	for (int i = 0; i < c->count; i++)
		if (c->set[i] != best && may_join(a, c, i, best))
			c->set[i] = best;
}

static void unknown_leaves(struct accept *a, int rail)
{
	struct accept_group *g;
	struct crowd c;
	int best, size;

	if (crowd_find(a, rail, &c) == 0) {
		crowd_cells(a, &c);
		sets_find(a, &c);
		best = largest_set(&c);
		size = set_size(&c, best);
		g = size >= UNKNOWN_LEAST ? group_new(a, rail, size) : NULL;
		for (int i = 0; g && i < c.count; i++)
			if (c.set[i] == best)
				group_add(a, g, c.node[i]);
	}
	crowd_free(&c);
}

void accept_leaves(struct accept *a)
{
	for (int r = 0; r < a->shape.rails; r++) {
		if (a->leaf)
			known_leaves(a, r);
		unknown_leaves(a, r);
	}
}
