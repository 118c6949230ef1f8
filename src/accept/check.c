/*
 * check.c - suspects measured alone, with two good partners, in turns with the partners themselves.
 *
 * What is slow in company only is the fabric's routing, not the suspect's.
 */
#include "accept/state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stats/stats.h"

enum {
	CHECKS_MAX = 64,		/* suspects that are measured alone; the worst of them */
	PER_LEAF = 2,			/* nodes that stand for their leaf */
	PATHS_MAX = 8,			/* pairs that did not fail: some machines make many */
};
/* The share of the effect in company that must be seen alone. */
#define CONFIRMED 0.5
/* ... and must be clear of the noise alone, in standard errors. */
#define CLEAR_ALONE 3.0
#define MAD 1.4826
/* In place of a loss that is not known, of failures in company: a logarithm. */
#define FAILED_LOW 0.08
/* A port whose one direction alone has less than this share of the other's loss is one-sided. */
#define ONE_SIDED 0.4

int accept_check_add(struct accept *a, const struct accept_check *check)
{
	struct accept_check *list = accept_grow(a, a->check, a->check_count, &a->check_room,
						sizeof(a->check[0]));

	if (!list)
		return -ENOMEM;
	a->check = list;
	a->check[a->check_count++] = *check;
	return 0;
}

/* ---- Partners --------------------------------------------------------------------------------- */

static bool same_leaf(const struct accept *a, int x, int y)
{
	return a->leaf && a->leaf[x] >= 0 && a->leaf[x] == a->leaf[y];
}

static bool is_good(const struct accept *a, const struct accept_check *c, int node)
{
	const struct accept_port *p = port_of(a, node, c->rail);

	return node != c->node && node != c->other && !p->missing && !p->left && !p->suspect &&
	       !(c->kind == CHECK_LEAF && same_leaf(a, c->node, node));
}

/* Lower is better: failures first, then the distance from the level. */
static double badness(const struct accept *a, int node, int rail)
{
	const struct accept_port *p = port_of(a, node, rail);

	return p->fails + (isfinite(p->both) ? fmin(fabs(p->both), 0.5) : 0.5);
}

static void partners_choose(const struct accept *a, struct accept_check *c)
{
	c->partner[0] = c->partner[1] = -1;
	for (int k = 0; k < 2; k++)
		for (int n = 0; n < a->shape.nodes; n++)
			if (is_good(a, c, n) && n != c->partner[0] &&
			    (c->partner[k] < 0 ||
			     badness(a, n, c->rail) < badness(a, c->partner[k], c->rail)))
				c->partner[k] = n;
}

/* ---- Cells -------------------------------------------------------------------------------------- */

struct line { int from, to; bool over; };

static int lines_of(const struct accept_check *c, struct line line[2 * 3])
{
	int n = 0;

	if (c->kind == CHECK_PATH) {
		line[n++] = (struct line){ c->node, c->other, false };
		line[n++] = (struct line){ c->other, c->node, false };
	}
	for (int k = 0; k < 2 && c->kind != CHECK_PATH && c->partner[k] >= 0; k++) {
		line[n++] = (struct line){ c->node, c->partner[k], false };
		line[n++] = (struct line){ c->partner[k], c->node, false };
	}
	if (c->partner[1] >= 0) {
		line[n++] = (struct line){ c->partner[0], c->partner[1], false };
		line[n++] = (struct line){ c->partner[1], c->partner[0], false };
	}
	return n;
}

/* A cell that is dead or cut says enough: it is not measured again. */
static int check_measure(struct accept *a, struct accept_check *c, const struct accept_ops *ops,
			 void *user)
{
	struct line line[2 * 3];
	int lines = lines_of(c, line), rc = 0;

	c->first_cell = a->cell_count;
	for (int repeat = 0; repeat < ACCEPT_REPEATS; repeat++)
		for (int i = 0; i < lines; i++) {
			if (line[i].over)
				continue;
			rc = ops->alone(user, line[i].from, line[i].to, c->rail);
			if (rc)
				return rc;
			line[i].over = a->cell[a->cell_count - 1].state != ACCEPT_OK;
		}
	c->end_cell = a->cell_count;
	c->done = lines > 0;
	return 0;
}

/* ---- Judgement ------------------------------------------------------------------------------------ */

enum role { REFERENCE, SENDS, RECEIVES };

static enum role role_of(const struct accept_check *c, const struct accept_cell *cell)
{
	return cell->from == c->node ? SENDS : cell->to == c->node ? RECEIVES : REFERENCE;
}

/* The median logarithm of a role's cells; NaN: none has a rate. */
static double middle(const struct accept *a, const struct accept_check *c, enum role role)
{
	double value[2 * 2 * ACCEPT_REPEATS];
	int count = 0;

	for (int i = c->first_cell; i < c->end_cell; i++)
		if (role_of(c, &a->cell[i]) == role && a->cell[i].state != ACCEPT_DOWN)
			value[count++] = log(a->cell[i].rate);
	return count ? accept_location(value, count, a->rail[c->rail].sigma) : NAN;
}

static int dead_of(const struct accept *a, const struct accept_check *c, enum role role)
{
	int dead = 0;

	for (int i = c->first_cell; i < c->end_cell; i++)
		dead += role_of(c, &a->cell[i]) == role && a->cell[i].state == ACCEPT_DOWN;
	return dead;
}

static int cells_of(const struct accept *a, const struct accept_check *c, enum role role)
{
	int cells = 0;

	for (int i = c->first_cell; i < c->end_cell; i++)
		cells += role_of(c, &a->cell[i]) == role && a->cell[i].state != ACCEPT_DOWN;
	return cells;
}

/* Deviation of the cells alone about the middles of their roles. */
static double sigma_alone(const struct accept *a, const struct accept_check *c,
			  const double middles[3])
{
	double far[3 * 2 * 2 * ACCEPT_REPEATS];
	int count = 0;

	for (int i = c->first_cell; i < c->end_cell; i++)
		if (a->cell[i].state != ACCEPT_DOWN)
			far[count++] = fabs(log(a->cell[i].rate) - middles[role_of(c, &a->cell[i])]);
	return fmax(a->rail[c->rail].sigma, count ? MAD * stats_median_of(far, (size_t)count) : 0);
}

/* The loss that noise alone may show. */
static double doubt(const struct accept *a, const struct accept_check *c, const double middles[3])
{
	int sends = cells_of(a, c, SENDS), receives = cells_of(a, c, RECEIVES);
	int suspect = c->failed || c->kind == CHECK_PATH || c->direction != ACCEPT_BOTH ?
		      (sends > receives ? sends : receives) : sends + receives;
	int reference = cells_of(a, c, REFERENCE);

	/* A cell that was cut is one for many: its loss is far beyond noise. */
	return CLEAR_ALONE * sigma_alone(a, c, middles) *
	       sqrt(1.0 / fmax(suspect, 1) + 1.0 / fmax(reference, 1));
}

static double or_zero(double x)
{
	return isfinite(x) ? x : 0;
}

static enum accept_direction worse_direction(double out, double in)
{
	return in < ONE_SIDED * out ? ACCEPT_OUT : out < ONE_SIDED * in ? ACCEPT_IN : ACCEPT_BOTH;
}

static void dead_judge(const struct accept *a, struct accept_check *c)
{
	int ends = c->kind == CHECK_PATH ? 1 : 2;
	int out = dead_of(a, c, SENDS), in = dead_of(a, c, RECEIVES);

	c->down = out >= ends || in >= ends;
	if (c->down)
		c->direction = worse_direction(out, in);
	c->confirmed = c->confirmed || c->down;
}

static void check_judge(const struct accept *a, struct accept_check *c)
{
	const double middles[] = { middle(a, c, REFERENCE), middle(a, c, SENDS),
				   middle(a, c, RECEIVES) };
	double good = isfinite(middles[REFERENCE]) ? middles[REFERENCE] :
		      a->rail[c->rail].level, seen;

	c->alone[OUT] = good - middles[SENDS];
	c->alone[IN] = good - middles[RECEIVES];
	c->alone_both = (or_zero(c->alone[OUT]) + or_zero(c->alone[IN])) / 2;
	seen = c->failed || c->kind == CHECK_PATH ? fmax(c->alone[OUT], c->alone[IN]) :
	       c->direction == ACCEPT_OUT ? c->alone[OUT] :
	       c->direction == ACCEPT_IN ? c->alone[IN] : c->alone_both;
	c->confirmed = c->done && seen >= a->least && seen >= CONFIRMED * c->low &&
		       seen >= doubt(a, c, middles);
	if (c->failed || (c->kind == CHECK_PATH && c->confirmed))
		c->direction = worse_direction(or_zero(c->alone[OUT]), or_zero(c->alone[IN]));
	dead_judge(a, c);
}

/* ---- All of them ------------------------------------------------------------------------------------ */

static double loss_of(const struct accept_port *p)
{
	return -(p->direction == ACCEPT_OUT ? p->effect[OUT] :
		 p->direction == ACCEPT_IN ? p->effect[IN] : p->both);
}

static void port_check_add(struct accept *a, int node, int rail, enum check_kind kind)
{
	const struct accept_port *p = port_of(a, node, rail);

	accept_check_add(a, &(struct accept_check){
		.kind = kind, .node = node, .other = -1, .rail = rail, .group = p->group,
		.failed = p->left || !p->suspect, .low = p->suspect ? loss_of(p) : FAILED_LOW,
		.z = fmin(p->z_both, fmin(p->z[OUT], p->z[IN])), .direction = p->direction,
	});
}

static void suspects_add(struct accept *a)
{
	for (int n = 0; n < a->shape.nodes; n++)
		for (int r = 0; r < a->shape.rails; r++) {
			const struct accept_port *p = port_of(a, n, r);

			if (p->left || (p->suspect && p->group < 0))
				port_check_add(a, n, r, CHECK_NODE);
		}
	for (int g = 0; g < a->group_count; g++)
		for (int i = 0; i < a->group[g].count && i < PER_LEAF; i++)
			port_check_add(a, a->group[g].member[i], a->group[g].rail, CHECK_LEAF);
}

static bool is_checked(const struct accept *a, int node, int rail)
{
	for (int i = 0; i < a->check_count; i++)
		if (a->check[i].kind != CHECK_PATH && a->check[i].node == node &&
		    a->check[i].rail == rail)
			return true;
	return false;
}

/* A pair that is bad alone, too: are its ends?  Port failures late in the rounds look like this. */
static void ends_add(struct accept *a, int check)
{
	const struct accept_check c = a->check[check];
	const int end[] = { c.node, c.other };

	for (int i = 0; c.kind == CHECK_PATH && c.confirmed && (c.failed || c.down) && i < 2; i++)
		if (!is_checked(a, end[i], c.rail))
			port_check_add(a, end[i], c.rail, CHECK_NODE);
}

/* Failures first, then the worst. */
static int compare_checks(const void *x, const void *y)
{
	const struct accept_check *c = x, *d = y;

	if (c->failed != d->failed)
		return c->failed ? -1 : 1;
	return c->z != d->z ? c->z < d->z ? -1 : 1 :
	       c->node != d->node ? c->node - d->node : c->rail - d->rail;
}

/* Is this one of the slow pairs that are left out? */
static bool is_beyond(const struct accept_check *c, int *paths)
{
	return c->kind == CHECK_PATH && !c->failed && ++*paths > PATHS_MAX;
}

int accept_checks(struct accept *a, const struct accept_ops *ops, void *user)
{
	int rc = 0, paths = 0;

	suspects_add(a);
	if (a->check_count)
		qsort(a->check, (size_t)a->check_count, sizeof(a->check[0]), compare_checks);
	for (int i = 0; i < a->check_count && !rc; i++) {
		struct accept_check *c = &a->check[i];

		if (is_beyond(c, &paths)) {
			c->z = 0;
			continue;
		}
		if (i >= CHECKS_MAX) {
			c->confirmed = true;
			continue;
		}
		partners_choose(a, c);
		rc = check_measure(a, c, ops, user);
		check_judge(a, c);
		ends_add(a, i);
	}
	return rc;
}
