/*
 * fit.c - levels of rails and effects of (node, rail, direction) from the cells in company.
 *
 * log rate = level + effect of the sender + effect of the receiver + rest.  The effects of senders
 * have the median 0 on each rail, those of receivers, too; so a fault of fewer than half of the
 * nodes is theirs.
 */
#include "accept/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"

#define MAD 1.4826		/* of a normal distribution: deviation / median of distances */
#define HUBER 1.345		/* deviations up to which a value counts in full: 95 % efficient */
#define ERROR_OF_HUBER 1.1	/* its standard error, and that of the partners' effects */
#define SIGMA_LEAST 0.002

enum { SWEEPS = 12, STEPS = 5 };

/* A list of cell numbers for each (node, direction) of a rail. */
struct index { int *begin, *cell; double *work; };

double accept_location(double *values, int count, double sigma)
{
	double at = stats_median_of(values, (size_t)count);

	for (int step = 0; step < STEPS && count > 2; step++) {
		double sum = 0, weights = 0;

		for (int i = 0; i < count; i++) {
			double far = fabs(values[i] - at) / (HUBER * sigma);
			double weight = far > 1 ? 1 / far : 1;

			sum += weight * values[i];
			weights += weight;
		}
		at = sum / weights;
	}
	return at;
}

static bool counts(const struct accept_cell *c, int rail)
{
	return c->rail == rail && c->round != ACCEPT_ALONE && c->state != ACCEPT_DOWN;
}

static int node_of(const struct accept_cell *c, int direction)
{
	return direction == OUT ? c->from : c->to;
}

/* ---- Lists --------------------------------------------------------------------------------- */

static void index_free(struct index *x)
{
	free(x->begin);
	free(x->cell);
	free(x->work);
}

static int index_make(struct accept *a, struct index *x)
{
	size_t lists = (size_t)a->shape.nodes * DIRECTIONS, cells = (size_t)a->cell_count;

	x->begin = calloc(lists + 1, sizeof(x->begin[0]));
	x->cell = calloc(cells * DIRECTIONS + 1, sizeof(x->cell[0]));
	x->work = calloc(cells + lists + 1, sizeof(x->work[0]));
	if (x->begin && x->cell && x->work)
		return 0;
	a->out_of_memory = true;
	return -1;
}

/* Sort the cells of a rail by (direction, node).  Returns their number. */
static int index_fill(const struct accept *a, int rail, struct index *x)
{
	int lists = a->shape.nodes * DIRECTIONS, at = 0;

	memset(x->begin, 0, ((size_t)lists + 1) * sizeof(x->begin[0]));
	for (int i = 0; i < a->cell_count; i++)
		for (int d = 0; d < DIRECTIONS && counts(&a->cell[i], rail); d++)
			x->begin[d * a->shape.nodes + node_of(&a->cell[i], d)]++;
	for (int i = 0; i < lists; i++) {
		at += x->begin[i];
		x->begin[i] = at;
	}
	x->begin[lists] = at;
	for (int i = a->cell_count; i-- > 0; )
		for (int d = 0; d < DIRECTIONS && counts(&a->cell[i], rail); d++)
			x->cell[--x->begin[d * a->shape.nodes + node_of(&a->cell[i], d)]] = i;
	return at / DIRECTIONS;
}

/* ---- The fit --------------------------------------------------------------------------------- */

static double known(double effect)
{
	return isfinite(effect) ? effect : 0;
}

static double rest_of(const struct accept *a, const struct accept_cell *c)
{
	return log(c->rate) - a->rail[c->rail].level -
	       known(port_of(a, c->from, c->rail)->effect[OUT]) -
	       known(port_of(a, c->to, c->rail)->effect[IN]);
}

/* Deviation of the cells about the fit, as if no parameter had been fitted. */
static double sigma_of(const struct accept *a, int rail, double *work)
{
	int count = 0, spare = a->rail[rail].spare;
	double sigma;

	for (int i = 0; i < a->cell_count; i++)
		if (counts(&a->cell[i], rail))
			work[count++] = fabs(rest_of(a, &a->cell[i]));
	sigma = MAD * stats_median_of(work, (size_t)count);
	if (spare > 0)
		sigma *= sqrt((double)count / spare);
	return sigma > SIGMA_LEAST ? sigma : SIGMA_LEAST;
}

/* Move the median of a direction's effects into the level. */
static void centre(struct accept *a, int rail, int direction, double *work)
{
	double middle;
	int count = 0;

	for (int n = 0; n < a->shape.nodes; n++)
		if (isfinite(port_of(a, n, rail)->effect[direction]))
			work[count++] = port_of(a, n, rail)->effect[direction];
	middle = count ? stats_median_of(work, (size_t)count) : 0;
	a->rail[rail].level += middle;
	for (int n = 0; n < a->shape.nodes; n++)
		port_of(a, n, rail)->effect[direction] -= middle;
}

static void effects_sweep(struct accept *a, int rail, int direction, const struct index *x)
{
	for (int n = 0; n < a->shape.nodes; n++) {
		struct accept_port *p = port_of(a, n, rail);
		int begin = x->begin[direction * a->shape.nodes + n];
		int count = x->begin[direction * a->shape.nodes + n + 1] - begin;

		p->cells[direction] = count;
		for (int i = 0; i < count; i++)
			x->work[i] = rest_of(a, &a->cell[x->cell[begin + i]]) +
				     known(p->effect[direction]);
		p->effect[direction] = count ? accept_location(x->work, count,
							       a->rail[rail].sigma) : NAN;
	}
	centre(a, rail, direction, x->work);
}

static double spread_of(const struct accept *a, int rail, int direction, double *work)
{
	int count = 0;

	for (int n = 0; n < a->shape.nodes; n++)
		if (isfinite(port_of(a, n, rail)->effect[direction]))
			work[count++] = fabs(port_of(a, n, rail)->effect[direction]);
	return count ? MAD * stats_median_of(work, (size_t)count) : 0;
}

static double greater(double x, double y)
{
	return x > y ? x : y;
}

/*
 * Standard errors: from the cells, or from the spread of all nodes' effects where nodes differ by
 * nature.
 */
static void errors_set(struct accept *a, int rail, double *work)
{
	double sigma = a->rail[rail].sigma, spread[DIRECTIONS];

	for (int d = 0; d < DIRECTIONS; d++)
		spread[d] = spread_of(a, rail, d, work);
	for (int n = 0; n < a->shape.nodes; n++) {
		struct accept_port *p = port_of(a, n, rail);
		double sum = 0, error;
		int cells = p->cells[OUT] + p->cells[IN];

		for (int d = 0; d < DIRECTIONS; d++) {
			error = greater(ERROR_OF_HUBER * sigma / sqrt(greater(p->cells[d], 1)), spread[d]);
			p->z[d] = p->effect[d] / error;
			sum += known(p->effect[d]) * p->cells[d];
		}
		error = greater(ERROR_OF_HUBER * sigma / sqrt(greater(cells, 1)),
				(spread[OUT] + spread[IN]) / 2 / sqrt(2));
		p->both = cells ? sum / cells : NAN;
		p->z_both = p->both / error;
	}
}

static void rail_fit(struct accept *a, int rail, int cells, const struct index *x)
{
	struct accept_rail *r = &a->rail[rail];

	r->fitted = a->shape.nodes > 2;
	r->spare = cells;
	for (int i = 0; i < DIRECTIONS * a->shape.nodes; i++)
		r->spare -= x->begin[i + 1] > x->begin[i];
	r->sigma = sigma_of(a, rail, x->work);
	for (int sweep = 0; sweep < SWEEPS && r->fitted; sweep++) {
		for (int d = 0; d < DIRECTIONS; d++)
			effects_sweep(a, rail, d, x);
		r->sigma = sigma_of(a, rail, x->work);
	}
	if (r->fitted)
		errors_set(a, rail, x->work);
}

static double level_first(const struct accept *a, int rail, double *work)
{
	int count = 0;

	for (int i = 0; i < a->cell_count; i++)
		if (counts(&a->cell[i], rail))
			work[count++] = log(a->cell[i].rate);
	return stats_median_of(work, (size_t)count);
}

static void rests_set(struct accept *a)
{
	for (int i = 0; i < a->cell_count; i++)
		a->rest[i] = counts(&a->cell[i], a->cell[i].rail) ? rest_of(a, &a->cell[i]) : NAN;
}

void accept_fit(struct accept *a)
{
	struct index x = { 0 };

	a->rest = calloc((size_t)a->cell_count + 1, sizeof(a->rest[0]));
	if (!a->rest)
		a->out_of_memory = true;
	if (index_make(a, &x) == 0 && a->rest) {
		for (int r = 0; r < a->shape.rails; r++) {
			int cells = index_fill(a, r, &x);

			a->rail[r].level = level_first(a, r, x.work);
			if (cells)
				rail_fit(a, r, cells, &x);
		}
		rests_set(a);
	}
	index_free(&x);
}

/* ---- Results ------------------------------------------------------------------------------- */

double accept_level(const struct accept *a, int rail)
{
	return exp(a->rail[rail].level);
}

static double value_of(int cells, int dead, double effect)
{
	return cells ? exp(effect) : dead ? 0 : NAN;
}

double accept_relative(const struct accept *a, int node, int rail, enum accept_direction direction)
{
	const struct accept_port *p = port_of(a, node, rail);
	int d = direction == ACCEPT_IN ? IN : OUT;

	if (p->missing || (p->down[d] && (direction != ACCEPT_BOTH || p->down[IN])))
		return 0;
	if (direction == ACCEPT_BOTH)
		return value_of(p->cells[OUT] + p->cells[IN], p->dead[OUT] + p->dead[IN], p->both);
	return value_of(p->cells[d], p->dead[d], p->effect[d]);
}
