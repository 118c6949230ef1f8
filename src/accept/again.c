/*
 * again.c - pairs that were slow in company and are well alone, measured in company again.
 *
 * A pair has few cells, and a machine's hiccup makes one slow.  Its round is repeated; routing is
 * accused if the pair is slow each time.
 */
#include "accept/state.h"

#include <math.h>

enum { TIMES = 3, PAIRS_MAX = 4 };
#define SEEN 0.5		/* share of the loss that is seen each time */

static double effect(const struct accept *a, int node, int rail, int direction)
{
	double e = port_of(a, node, rail)->effect[direction];

	return isfinite(e) ? e : 0;
}

/* The pair's slowest cell from `first` on, below what its ends explain. */
static double loss_since(const struct accept *a, const struct accept_check *c, int first)
{
	double loss = 0;

	for (int i = first; i < a->cell_count; i++) {
		const struct accept_cell *cell = &a->cell[i];
		bool back = cell->from == c->other;

		if (cell->rail != c->rail || cell->from != (back ? c->other : c->node) ||
		    cell->to != (back ? c->node : c->other))
			continue;
		if (cell->state == ACCEPT_DOWN)
			return INFINITY;
		loss = fmax(loss, a->rail[c->rail].level + effect(a, cell->from, c->rail, OUT) +
			    effect(a, cell->to, c->rail, IN) - log(cell->rate));
	}
	return loss;
}

static int repeat(struct accept *a, struct accept_check *c, int number,
		  const struct accept_ops *ops, void *user)
{
	const struct accept_pair *past = a->past + (size_t)c->round * (size_t)(a->shape.nodes / 2);

	c->again = true;
	for (int i = 0; i < TIMES && c->again; i++) {
		int first = a->cell_count;
		int rc = ops->round(user, number + i, past, a->past_count[c->round]);

		if (rc)
			return rc;
		c->again = loss_since(a, c, first) > SEEN * c->low;
	}
	return 0;
}

int accept_again(struct accept *a, const struct accept_ops *ops, void *user)
{
	int number = accept_rounds(&a->shape), pairs = 0, rc = 0;

	for (int i = 0; i < a->check_count && pairs < PAIRS_MAX && !rc; i++) {
		struct accept_check *c = &a->check[i];

		if (c->kind != CHECK_PATH || c->confirmed || !accept_is_clear(a, c))
			continue;
		rc = repeat(a, c, number + TIMES * pairs, ops, user);
		pairs++;
	}
	return rc;
}
