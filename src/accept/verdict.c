/* verdict.c - accusations, from what was confirmed alone. */
#include "accept/state.h"

#include <math.h>
#include <stdlib.h>

/* A suspect that is well alone is named only if company was clear: in standard errors. */
#define CLEAR_PORT 6.0
#define CLEAR_PATH 5.5
#define RAIL_LOW 0.1

static double share(double loss)
{
	return loss > 0 ? 1 - exp(-loss) : 0;
}

static void accuse(struct accept *a, const struct accept_fault *fault)
{
	struct accept_fault *list = accept_grow(a, a->fault, a->fault_count, &a->fault_room,
						sizeof(a->fault[0]));

	if (!list)
		return;
	a->fault = list;
	a->fault[a->fault_count++] = *fault;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static const struct accept_check *check_of(const struct accept *a, int node, int rail)
{
	for (int i = 0; i < a->check_count; i++)
		if (a->check[i].kind == CHECK_NODE && a->check[i].node == node &&
		    a->check[i].rail == rail)
			return &a->check[i];
	return NULL;
}

/* The loss alone, or, of a suspect that was not measured alone, in company. */
static double loss_of(const struct accept_check *c)
{
	if (!c->done)
		return c->low;
	return c->direction == ACCEPT_OUT ? c->alone[OUT] :
	       c->direction == ACCEPT_IN ? c->alone[IN] : c->alone_both;
}

static void missing_accuse(struct accept *a, int node, int rail)
{
	accuse(a, &(struct accept_fault){ .kind = ACCEPT_PORT_MISSING, .node = node, .other = -1,
					  .rail = rail, .low = 1 });
}

/* The heat map shows what was seen alone: a port that failed has few cells in company. */
static void port_mark(struct accept *a, const struct accept_check *c)
{
	struct accept_port *p = port_of(a, c->node, c->rail);

	p->down[OUT] = c->down && c->direction != ACCEPT_IN;
	p->down[IN] = c->down && c->direction != ACCEPT_OUT;
	for (int d = 0; d < DIRECTIONS && c->done; d++)
		if (isfinite(c->alone[d]))
			p->effect[d] = -c->alone[d];
	if (c->done)
		p->both = -c->alone_both;
}

static void port_accuse(struct accept *a, const struct accept_check *c)
{
	port_mark(a, c);
	accuse(a, &(struct accept_fault){
		.kind = c->down ? ACCEPT_PORT_DOWN : ACCEPT_PORT_SLOW, .node = c->node, .other = -1,
		.rail = c->rail, .direction = c->direction, .low = c->down ? 1 : share(loss_of(c)),
	});
}

/* Is a node bad in the same manner on all of several rails?  Then it is one fault. */
static bool node_accuse(struct accept *a, int node)
{
	const struct accept_check *c = check_of(a, node, 0);
	bool down = c && c->down;
	double low = 0;

	for (int r = 0; r < a->shape.rails; r++) {
		c = check_of(a, node, r);
		if (!c || !c->confirmed || c->down != down || c->direction != ACCEPT_BOTH)
			return false;
		low += share(loss_of(c)) / a->shape.rails;
	}
	for (int r = 0; r < a->shape.rails; r++)
		port_mark(a, check_of(a, node, r));
	if (a->shape.rails > 1)
		accuse(a, &(struct accept_fault){
			.kind = down ? ACCEPT_NODE_DOWN : ACCEPT_NODE_SLOW, .node = node,
			.other = -1, .rail = -1, .low = down ? 1 : low,
		});
	return a->shape.rails > 1;
}

/* Did whole rounds fail, by cells that moved nothing?  Where nothing is slow, only these count. */
static bool has_failed(const struct accept *a, const struct accept_check *c)
{
	const struct accept_port *p = port_of(a, c->node, c->rail);

	return c->failed && (isfinite(a->least) || p->dead[OUT] + p->dead[IN] >= ACCEPT_FAILS);
}

bool accept_is_clear(const struct accept *a, const struct accept_check *c)
{
	if (c->kind == CHECK_PATH)
		return c->z < -CLEAR_PATH && c->low > 2 * a->least && !c->failed;
	return has_failed(a, c) || (c->z < -CLEAR_PORT && c->low > 2 * a->least);
}

static void routing_accuse(struct accept *a, const struct accept_check *c)
{
	accuse(a, &(struct accept_fault){
		.kind = ACCEPT_ROUTING, .node = c->node, .other = c->other, .rail = c->rail,
		.direction = c->direction, .low = share(c->low),
		.failed_rounds = c->failed ? port_of(a, c->node, c->rail)->fails : 0,
	});
}

static void nodes_judge(struct accept *a)
{
	for (int n = 0; n < a->shape.nodes; n++) {
		bool whole = node_accuse(a, n);

		for (int r = 0; r < a->shape.rails; r++) {
			const struct accept_check *c = check_of(a, n, r);

			if (port_of(a, n, r)->missing)
				missing_accuse(a, n, r);
			else if (c && c->confirmed && !whole)
				port_accuse(a, c);
		}
	}
}

/* A node that failed is well alone: its partners failed it, if any of them is accused. */
static bool partner_is_bad(const struct accept *a, const struct accept_check *c)
{
	for (int i = 0; i < a->cell_count; i++) {
		const struct accept_cell *cell = &a->cell[i];
		int other = cell->from == c->node ? cell->to : cell->to == c->node ? cell->from : -1;
		const struct accept_check *of;

		if (other < 0 || cell->rail != c->rail || cell->state == ACCEPT_OK)
			continue;
		of = check_of(a, other, c->rail);
		if (of && of->confirmed)
			return true;
	}
	return false;
}

static void nodes_routing(struct accept *a)
{
	for (int i = 0; i < a->check_count; i++) {
		const struct accept_check *c = &a->check[i];
		bool by_path = c->failed && !port_of(a, c->node, c->rail)->left;

		if (c->kind == CHECK_NODE && !c->confirmed && accept_is_clear(a, c) && !by_path &&
		    !(c->failed && partner_is_bad(a, c)))
			routing_accuse(a, c);
	}
}

/* ---- Pairs, leaves, rails -------------------------------------------------------------------------- */

static bool is_accused(const struct accept *a, int node, int rail)
{
	const struct accept_check *c = check_of(a, node, rail);

	return c && c->confirmed;
}

static void paths_judge(struct accept *a)
{
	for (int i = 0; i < a->check_count; i++) {
		const struct accept_check *c = &a->check[i];

		if (c->kind != CHECK_PATH || is_accused(a, c->node, c->rail) ||
		    is_accused(a, c->other, c->rail))
			continue;
		if (!c->confirmed) {
			if (c->again)
				routing_accuse(a, c);
			continue;
		}
		accuse(a, &(struct accept_fault){
			.kind = c->down ? ACCEPT_PATH_DOWN : ACCEPT_PATH_SLOW, .node = c->node,
			.other = c->other, .rail = c->rail, .direction = c->direction,
			.low = c->down ? 1 : share(loss_of(c)),
		});
	}
}

/* A leaf is slow alone, too, if at least half of its nodes that were measured alone are. */
static bool leaf_is_confirmed(const struct accept *a, int group)
{
	int done = 0, confirmed = 0;

	for (int i = 0; i < a->check_count; i++)
		if (a->check[i].kind == CHECK_LEAF && a->check[i].group == group) {
			done++;
			confirmed += a->check[i].confirmed;
		}
	return 2 * confirmed >= done;
}

static void leaves_judge(struct accept *a)
{
	for (int i = 0; i < a->group_count; i++) {
		const struct accept_group *g = &a->group[i];

		accuse(a, &(struct accept_fault){
			.kind = leaf_is_confirmed(a, i) ? ACCEPT_LEAF_SLOW : ACCEPT_ROUTING,
			.node = -1, .other = -1, .rail = g->rail, .low = share(g->low),
			.member = g->member, .member_count = g->count,
		});
	}
}

static void rails_judge(struct accept *a)
{
	double best = -INFINITY;

	for (int r = 0; r < a->shape.rails; r++)
		best = fmax(best, a->rail[r].level);
	for (int r = 0; r < a->shape.rails && a->shape.alike; r++)
		if (share(best - a->rail[r].level) > fmax(RAIL_LOW, share(a->least)))
			accuse(a, &(struct accept_fault){
				.kind = ACCEPT_RAIL_SLOW, .node = -1, .other = -1, .rail = r,
				.low = share(best - a->rail[r].level),
			});
}

void accept_verdict(struct accept *a)
{
	nodes_judge(a);
	leaves_judge(a);
	paths_judge(a);
	rails_judge(a);
	nodes_routing(a);
}

void accept_port_down(struct accept *a, int node, int rail)
{
	struct accept_port *p = port_of(a, node, rail);

	if (p->missing || p->down[OUT] || p->down[IN])
		return;
	p->down[OUT] = p->down[IN] = true;
	accuse(a, &(struct accept_fault){ .kind = ACCEPT_PORT_DOWN, .node = node, .other = -1,
					  .rail = rail, .low = 1 });
}

/* ---- Results ------------------------------------------------------------------------------------------ */

int accept_fault_count(const struct accept *a)
{
	return a->fault_count;
}

const struct accept_fault *accept_fault(const struct accept *a, int i)
{
	return &a->fault[i];
}

bool accept_drains(const struct accept_fault *fault)
{
	return fault->kind <= ACCEPT_NODE_SLOW;
}
