/* suspect.c - what is slow, or has failed, in company. */
#include "accept/state.h"

#include <math.h>
#include <stdlib.h>

/*
 * Standard errors from which a port is a suspect, by both directions and by one.  With 128 ports
 * noise alone makes a suspect in one of 50 acceptances, which is then cleared alone.
 */
#define PORT_BOTH 4.0
#define PORT_ONE 4.2
/*
 * Pairs that noise alone makes suspects in an acceptance, by both directions or by one, whatever the
 * number of nodes: cleared alone, too.
 */
#define PATHS_BY_NOISE 0.5
#define PATH_LEAST 0.08
/* Few cells: no deviation is known well. */
enum { SPARE_FEW = 10 };
#define FEW_LEAST 0.1
/* The other direction is well if it has less than this share of the effect. */
#define ONE_SIDED 0.4

/* ---- Ports ------------------------------------------------------------------------------- */

static double least_effect(const struct accept *a, const struct accept_rail *r)
{
	return r->spare < SPARE_FEW ? fmax(FEW_LEAST, a->least) : a->least;
}

/* The spread of a few nodes' effects is not known well. */
static double strictness(int nodes)
{
	return 1 + 4.0 / nodes;
}

static bool direction_is_slow(const struct accept_port *p, int d, double strict, double least)
{
	return p->cells[d] && p->z[d] < -PORT_ONE * strict && p->effect[d] < -least;
}

static bool is_slow(const struct accept_port *p, double strict, double least)
{
	return direction_is_slow(p, OUT, strict, least) || direction_is_slow(p, IN, strict, least) ||
	       (p->z_both < -PORT_BOTH * strict && p->both < -least);
}

static enum accept_direction slow_direction(const struct accept_port *p)
{
	if (p->effect[IN] > ONE_SIDED * p->effect[OUT])
		return ACCEPT_OUT;
	if (p->effect[OUT] > ONE_SIDED * p->effect[IN])
		return ACCEPT_IN;
	return ACCEPT_BOTH;
}

static void ports_find(struct accept *a)
{
	for (int n = 0; n < a->shape.nodes; n++)
		for (int r = 0; r < a->shape.rails; r++) {
			struct accept_port *p = port_of(a, n, r);

			if (p->missing || p->left || !a->rail[r].fitted ||
			    !is_slow(p, strictness(a->shape.nodes), least_effect(a, &a->rail[r])))
				continue;
			p->suspect = true;
			p->direction = slow_direction(p);
		}
}

/* ---- Pairs -------------------------------------------------------------------------------- */

/* The cells of a pair on a rail, in company. */
struct path {
	int a, b, rail;
	int cells, failed;
	int round;			/* the last */
	int by[DIRECTIONS];		/* cells from a, to a */
	double sum[DIRECTIONS];
};

static int compare_paths(const void *x, const void *y)
{
	const struct path *p = x, *q = y;

	return p->rail != q->rail ? p->rail - q->rail : p->a != q->a ? p->a - q->a : p->b - q->b;
}

static struct path path_of(const struct accept *a, int i)
{
	const struct accept_cell *c = &a->cell[i];
	struct path p = { .a = c->from, .b = c->to, .rail = c->rail, .cells = 1,
			  .failed = c->state != ACCEPT_OK, .round = c->round };
	int d = c->from < c->to ? OUT : IN;

	if (d == IN) {
		p.a = c->to;
		p.b = c->from;
	}
	if (isfinite(a->rest[i])) {
		p.by[d] = 1;
		p.sum[d] = a->rest[i];
	}
	return p;
}

static bool is_explained(const struct accept *a, int node, int rail)
{
	const struct accept_port *p = port_of(a, node, rail);

	return p->missing || p->left || p->suspect;
}

/* Paths of cells in company; adds up cells of equal paths.  Returns their number. */
static int paths_list(const struct accept *a, struct path *list)
{
	int cells = 0, paths = 0;

	for (int i = 0; i < a->cell_count; i++) {
		const struct accept_cell *c = &a->cell[i];

		if (c->round != ACCEPT_ALONE && !is_explained(a, c->from, c->rail) &&
		    !is_explained(a, c->to, c->rail))
			list[cells++] = path_of(a, i);
	}
	qsort(list, (size_t)cells, sizeof(list[0]), compare_paths);
	for (int i = 0; i < cells; i++) {
		struct path *p = &list[paths > 0 ? paths - 1 : 0];

		if (!paths || compare_paths(p, &list[i])) {
			list[paths++] = list[i];
			continue;
		}
		p->round = list[i].round > p->round ? list[i].round : p->round;
		p->cells += list[i].cells;
		p->failed += list[i].failed;
		for (int d = 0; d < DIRECTIONS; d++) {
			p->by[d] += list[i].by[d];
			p->sum[d] += list[i].sum[d];
		}
	}
	return paths;
}

/* The mean rest in standard errors; 0: no cell. */
static double z_of(double sum, int cells, double sigma)
{
	return cells ? sum / sqrt(cells) / sigma : 0;
}

/*
 * Standard errors below which so many of all values of a normal distribution lie: Hastings's
 * approximation (Abramowitz and Stegun, 26.2.23), to 5e-4.
 */
static double quantile(double share)
{
	double t = sqrt(-2 * log(share));

	return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
	       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

static void path_judge(struct accept *a, const struct path *p, int paths)
{
	double clear_both = quantile(PATHS_BY_NOISE / (paths + 1));
	double clear_one = quantile(PATHS_BY_NOISE / 2 / (2 * paths + 1));
	const struct accept_rail *r = &a->rail[p->rail];
	int cells = p->by[OUT] + p->by[IN];
	double out = z_of(p->sum[OUT], p->by[OUT], r->sigma);
	double in = z_of(p->sum[IN], p->by[IN], r->sigma);
	double both = z_of(p->sum[OUT] + p->sum[IN], cells, r->sigma);
	double mean = cells ? (p->sum[OUT] + p->sum[IN]) / cells : 0;
	double worst = fmin(p->by[OUT] ? p->sum[OUT] / p->by[OUT] : 0,
			    p->by[IN] ? p->sum[IN] / p->by[IN] : 0);
	double least = fmax(PATH_LEAST, a->least);
	bool slow = r->fitted && r->spare >= SPARE_FEW &&
		    ((both < -clear_both && mean < -least) ||
		     (fmin(out, in) < -clear_one && worst < -least));

	if (!slow && !p->failed)
		return;
	accept_check_add(a, &(struct accept_check){
		.kind = CHECK_PATH, .node = p->a, .other = p->b, .rail = p->rail, .group = -1,
		.failed = p->failed > 0, .low = -fmin(mean, both < -clear_both ? mean : worst),
		.z = fmin(both, fmin(out, in)), .round = p->round,
		.direction = in > ONE_SIDED * out ? ACCEPT_OUT :
			     out > ONE_SIDED * in ? ACCEPT_IN : ACCEPT_BOTH,
	});
}

static void paths_find(struct accept *a)
{
	struct path *list = calloc((size_t)a->cell_count + 1, sizeof(list[0]));
	int paths;

	if (!list || !a->rest) {
		a->out_of_memory = true;
		free(list);
		return;
	}
	paths = paths_list(a, list);
	for (int i = 0; i < paths; i++)
		path_judge(a, &list[i], paths);
	free(list);
}

void accept_suspects(struct accept *a)
{
	ports_find(a);
	paths_find(a);
}
