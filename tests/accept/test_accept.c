/*
 * test_accept.c - faults of a modelled fabric are named, and nothing else is.
 *
 * The model: a cell's rate is that of its slowest part (sender, receiver, pair, link above a leaf
 * switch), with noise of 3 %.  Time is added up: pairs of a round at once, cells of a pair in turn.
 */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accept/accept.h"
#include "random.h"

enum { NODES = 64, RAILS = 2, LEAF = 8, SEEDS = 100, ENOUGH = 95, NODES_MAX = 512 };

#define LEVEL 12000.0
#define NOISE 0.03
#define CELL_NS UINT64_C(55000000)
#define DEAD_NS UINT64_C(1100000000)

struct model {
	int nodes;
	/* Shares of the level by node and rail; 0: dead. */
	double out[NODES_MAX][RAILS], in[NODES_MAX][RAILS];
	int dead_node, dead_rail, dead_from;	/* dead from this round on; -1: none */
	int pair_rail;			/* -1: no slow pair; else a pair of round 0 */
	double pair_share;
	struct accept_pair pair;
	int leaf_rail, leaf;		/* rail -1: no slow leaf */
	double leaf_share;
	bool in_company_only;
	bool hiccups;			/* one cell in 100 is half as fast, for no reason */
	bool missing[NODES_MAX * RAILS];
	int leaf_of[NODES_MAX];
	bool leaves_known;
	/* Of a run. */
	struct accept *a;
	uint64_t random, clock_ns;
	int round, alone;
};

static struct model model_of(int nodes)
{
	struct model m = { .nodes = nodes, .dead_node = -1, .pair_rail = -1, .leaf_rail = -1 };

	for (int n = 0; n < nodes; n++) {
		m.leaf_of[n] = n / LEAF;
		for (int r = 0; r < RAILS; r++)
			m.out[n][r] = m.in[n][r] = 1;
	}
	return m;
}

static void both_set(struct model *m, int node, int rail, double share)
{
	m->out[node][rail] = m->in[node][rail] = share;
}

/* ---- Cells --------------------------------------------------------------------------------- */

static double uniform(struct model *m)
{
	return ((double)(random_next(&m->random) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct model *m)
{
	return sqrt(-2 * log(uniform(m))) * cos(2 * M_PI * uniform(m));
}

static bool is_dead_by_now(const struct model *m, int node, int rail)
{
	return node == m->dead_node && rail == m->dead_rail && m->round >= m->dead_from;
}

static double share_of(const struct model *m, int from, int to, int rail, bool alone)
{
	double share = fmin(m->out[from][rail], m->in[to][rail]);

	if (alone && m->in_company_only)
		return 1;
	if (is_dead_by_now(m, from, rail) || is_dead_by_now(m, to, rail))
		return 0;
	if (rail == m->pair_rail && (from < to ? from : to) == m->pair.a &&
	    (from < to ? to : from) == m->pair.b)
		share = fmin(share, m->pair_share);
	if (rail == m->leaf_rail && m->leaf_of[from] != m->leaf_of[to] &&
	    (m->leaf_of[from] == m->leaf || m->leaf_of[to] == m->leaf))
		share = fmin(share, m->leaf_share);
	return share;
}

/* The time that the cell takes: one that is slow beyond measure is cut, as a dead one is. */
static uint64_t cell_make(struct model *m, int from, int to, int rail, int round,
			  struct accept_cell *out)
{
	double share = share_of(m, from, to, rail, round == ACCEPT_ALONE);

	*out = (struct accept_cell){ .from = from, .to = to, .rail = rail, .round = round };
	out->state = share <= 0 ? ACCEPT_DOWN : share < 0.1 ? ACCEPT_CUT : ACCEPT_OK;
	if (m->hiccups && uniform(m) < 0.01)
		share /= 2;
	out->rate = share * LEVEL * exp(NOISE * normal(m));
	return out->state == ACCEPT_OK ? CELL_NS : DEAD_NS;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

enum { CELLS_OF_PAIR = 2 * RAILS };
struct timed { struct accept_cell cell; uint64_t ns; };

static int pair_cells(struct model *m, int round, const struct accept_pair *p,
		      struct timed cell[CELLS_OF_PAIR])
{
	int count = 0;

	for (int r = 0; r < RAILS; r++)
		for (int back = 0; back < 2; back++)
			if (accept_takes(m->a, p->a, r) && accept_takes(m->a, p->b, r)) {
				cell[count].ns = cell_make(m, back ? p->b : p->a, back ? p->a : p->b,
							   r, round, &cell[count].cell);
				count++;
			}
	return count;
}

/* Add a pair's cells up to the limit, which cuts one of them.  Returns the pair's time. */
static uint64_t pair_add(struct model *m, struct timed *cell, int count, uint64_t limit_ns)
{
	uint64_t ns = 0;

	for (int i = 0; i < count && ns < limit_ns; i++) {
		ns += cell[i].ns;
		if (ns > limit_ns && cell[i].cell.state == ACCEPT_OK)
			cell[i].cell.state = ACCEPT_CUT;
		assert_int_equal(accept_add(m->a, &cell[i].cell), 0);
	}
	return ns < limit_ns ? ns : limit_ns;
}

static uint64_t between_rounds_ns(const struct model *m)
{
	return 2000000 + 10000 * (uint64_t)m->nodes;
}

static int model_round(void *user, int round, const struct accept_pair *pair, int count)
{
	static struct timed cell[NODES_MAX / 2][CELLS_OF_PAIR];
	static int cells[NODES_MAX / 2];
	uint64_t took[NODES_MAX / 2], longest = 0, limit;
	struct model *m = user;

	m->round = round;
	if (round == 0 && m->pair_rail >= 0)	/* the first time */
		m->pair = pair[count / 3];
	for (int p = 0; p < count; p++) {
		cells[p] = pair_cells(m, round, &pair[p], cell[p]);
		took[p] = 0;
		for (int i = 0; i < cells[p]; i++)
			took[p] += cell[p][i].ns;
	}
	qsort(took, (size_t)count, sizeof(took[0]), compare_ns);
	limit = accept_limit_ns(took, count, count, ACCEPT_PATIENCE);
	for (int p = 0; p < count; p++) {
		uint64_t ns = pair_add(m, cell[p], cells[p], limit);

		longest = ns > longest ? ns : longest;
	}
	m->clock_ns += longest + between_rounds_ns(m);
	return 0;
}

static int model_alone(void *user, int from, int to, int rail)
{
	struct model *m = user;
	struct accept_cell cell;

	m->alone++;
	m->clock_ns += cell_make(m, from, to, rail, ACCEPT_ALONE, &cell) + between_rounds_ns(m);
	return accept_add(m->a, &cell);
}

static const struct accept_ops ops = { model_round, model_alone };

static void model_run(struct model *m, uint64_t seed, int rounds)
{
	struct accept_shape shape = { .nodes = m->nodes, .rails = RAILS, .rounds = rounds,
				      .seed = seed, .alike = true, .missing = m->missing,
				      .leaf = m->leaves_known ? m->leaf_of : NULL };

	m->random = ~seed;
	m->clock_ns = 0;
	m->alone = 0;
	m->a = accept_new(&shape);
	assert_non_null(m->a);
	assert_int_equal(accept_run(m->a, &ops, m), 0);
}

/* ---- What is named ------------------------------------------------------------------------------ */

static void print_faults(const struct model *m, uint64_t seed)
{
	for (int i = 0; i < accept_fault_count(m->a); i++) {
		const struct accept_fault *f = accept_fault(m->a, i);

		print_message("seed %d: kind %d, node %d, other %d, rail %d, direction %d, "
			      "%.1f %% low, %d members\n", (int)seed, f->kind, f->node, f->other,
			      f->rail, f->direction, 100 * f->low, f->member_count);
	}
	if (!accept_fault_count(m->a))
		print_message("seed %d: nothing\n", (int)seed);
}

static bool is_fault(const struct accept_fault *f, const struct accept_fault *wanted)
{
	return f->kind == wanted->kind && f->node == wanted->node && f->other == wanted->other &&
	       f->rail == wanted->rail && f->direction == wanted->direction &&
	       f->member_count == wanted->member_count && fabs(f->low - wanted->low) < 0.04;
}

/* Are exactly these named?  A fault of a slow pair is at the model's pair. */
static bool are_named(const struct model *m, const struct accept_fault *wanted, int count)
{
	if (accept_fault_count(m->a) != count)
		return false;
	for (int w = 0; w < count; w++) {
		struct accept_fault fault = wanted[w];
		bool found = false;

		if (fault.other >= 0) {
			fault.node = m->pair.a;
			fault.other = m->pair.b;
		}
		for (int i = 0; i < count; i++)
			found = found || is_fault(accept_fault(m->a, i), &fault);
		if (!found)
			return false;
	}
	return true;
}

/* Run all seeds; of 100 at least 95 name what is wanted and nothing else. */
static void named(struct model m, const struct accept_fault *wanted, int count)
{
	int right = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		model_run(&m, seed, ACCEPT_ROUNDS);
		if (are_named(&m, wanted, count))
			right++;
		else
			print_faults(&m, seed);
		accept_free(m.a);
	}
	print_message("%d of %d\n", right, SEEDS);
	assert_in_range(right, ENOUGH, SEEDS);
}

static void port_named(struct model m, enum accept_kind kind, int node, int rail,
		       enum accept_direction direction, double low)
{
	named(m, &(struct accept_fault){ .kind = kind, .node = node, .other = -1, .rail = rail,
					 .direction = direction, .low = low }, 1);
}

static void test_nothing(void **state)
{
	(void)state;
	named(model_of(NODES), NULL, 0);
}

static void test_hiccups(void **state)
{
	struct model m = model_of(NODES);

	(void)state;
	m.hiccups = true;
	named(m, NULL, 0);
	both_set(&m, 14, 1, 0.88);
	port_named(m, ACCEPT_PORT_SLOW, 14, 1, ACCEPT_BOTH, 0.12);
}

static void test_missing(void **state)
{
	struct model m = model_of(NODES);

	(void)state;
	m.missing[14 * RAILS + 1] = true;
	both_set(&m, 14, 1, 0);
	port_named(m, ACCEPT_PORT_MISSING, 14, 1, ACCEPT_BOTH, 1);
}

static void dead_from(int round)
{
	struct model m = model_of(NODES);

	m.dead_node = 14;
	m.dead_rail = 1;
	m.dead_from = round;
	port_named(m, ACCEPT_PORT_DOWN, 14, 1, ACCEPT_BOTH, 1);
}

static void test_down_before(void **state)
{
	(void)state;
	dead_from(0);
}

static void test_down_during(void **state)
{
	(void)state;
	dead_from(7);
	dead_from(ACCEPT_ROUNDS - 1);
}

static void test_loss(void **state)
{
	struct model m = model_of(NODES);

	(void)state;
	both_set(&m, 14, 1, 0.02);
	port_named(m, ACCEPT_PORT_SLOW, 14, 1, ACCEPT_BOTH, 0.98);
}

static void slow_by(double low)
{
	struct model m = model_of(NODES);

	both_set(&m, 14, 1, 1 - low);
	port_named(m, ACCEPT_PORT_SLOW, 14, 1, ACCEPT_BOTH, low);
}

static void test_slow_12(void **state)
{
	(void)state;
	slow_by(0.12);
}

static void test_slow_5(void **state)
{
	(void)state;
	slow_by(0.05);
}

static void test_direction(void **state)
{
	struct model m = model_of(NODES);

	(void)state;
	m.out[14][1] = 0.88;
	port_named(m, ACCEPT_PORT_SLOW, 14, 1, ACCEPT_OUT, 0.12);
	m.out[14][1] = 1;
	m.in[63][0] = 0.88;
	port_named(m, ACCEPT_PORT_SLOW, 63, 0, ACCEPT_IN, 0.12);
}

static void test_dead_direction(void **state)
{
	struct model m = model_of(NODES);

	(void)state;
	m.in[3][0] = 0;
	port_named(m, ACCEPT_PORT_DOWN, 3, 0, ACCEPT_IN, 1);
}

static void test_pair(void **state)
{
	struct model m = model_of(NODES);

	(void)state;
	m.pair_rail = 1;
	m.pair_share = 0.88;
	named(m, &(struct accept_fault){ .kind = ACCEPT_PATH_SLOW, .other = 0, .rail = 1,
					 .low = 0.12 }, 1);
	m.pair_share = 0;
	named(m, &(struct accept_fault){ .kind = ACCEPT_PATH_DOWN, .other = 0, .rail = 1,
					 .low = 1 }, 1);
}

static void test_leaf(void **state)
{
	const struct accept_fault wanted = { .kind = ACCEPT_LEAF_SLOW, .node = -1, .other = -1,
					     .member_count = LEAF, .low = 0.12 };
	struct model m = model_of(NODES);

	(void)state;
	m.leaf_rail = 0;
	m.leaf = 2;
	m.leaf_share = 0.88;
	m.leaves_known = true;
	named(m, &wanted, 1);
	m.leaves_known = false;
	named(m, &wanted, 1);
}

static void test_node(void **state)
{
	struct model m = model_of(NODES);

	(void)state;
	both_set(&m, 14, 0, 0.88);
	both_set(&m, 14, 1, 0.88);
	port_named(m, ACCEPT_NODE_SLOW, 14, -1, ACCEPT_BOTH, 0.12);
	both_set(&m, 14, 0, 0);
	both_set(&m, 14, 1, 0);
	port_named(m, ACCEPT_NODE_DOWN, 14, -1, ACCEPT_BOTH, 1);
}

static void test_routing(void **state)
{
	struct model m = model_of(NODES);

	(void)state;
	both_set(&m, 14, 1, 0.88);
	m.in_company_only = true;
	port_named(m, ACCEPT_ROUTING, 14, 1, ACCEPT_BOTH, 0.12);
	both_set(&m, 14, 1, 1);
	m.pair_rail = 1;
	m.pair_share = 0.7;
	named(m, &(struct accept_fault){ .kind = ACCEPT_ROUTING, .other = 0, .rail = 1,
					 .low = 0.3 }, 1);
	m.pair_rail = -1;
	m.leaf_rail = 0;
	m.leaf = 2;
	m.leaf_share = 0.8;
	named(m, &(struct accept_fault){ .kind = ACCEPT_ROUTING, .node = -1, .other = -1,
					 .member_count = LEAF, .low = 0.2 }, 1);
}

static void test_several(void **state)
{
	const struct accept_fault wanted[] = {
		{ .kind = ACCEPT_PORT_SLOW, .node = 5, .other = -1, .rail = 0, .low = 0.22 },
		{ .kind = ACCEPT_PORT_DOWN, .node = 14, .other = -1, .rail = 1, .low = 1 },
		{ .kind = ACCEPT_PORT_SLOW, .node = 40, .other = -1, .rail = 1, .low = 0.12,
		  .direction = ACCEPT_OUT },
	};
	struct model m = model_of(NODES);

	(void)state;
	both_set(&m, 5, 0, 0.78);
	both_set(&m, 14, 1, 0);
	m.out[40][1] = 0.88;
	named(m, wanted, 3);
}

static void test_rail(void **state)
{
	struct model m = model_of(NODES);

	(void)state;
	for (int n = 0; n < NODES; n++)
		both_set(&m, n, 1, 0.8);
	named(m, &(struct accept_fault){ .kind = ACCEPT_RAIL_SLOW, .node = -1, .other = -1,
					 .rail = 1, .low = 0.2 }, 1);
}

/* ---- Tournaments of a few nodes: every pair once --------------------------------------------------- */

static void in_tournament(int nodes, double share)
{
	struct model m = model_of(nodes);
	int right = 0;

	both_set(&m, 1, 0, share);
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		model_run(&m, seed, 0);
		right += accept_fault_count(m.a) == 1 && accept_fault(m.a, 0)->node == 1 &&
			 accept_fault(m.a, 0)->rail == 0;
		accept_free(m.a);
	}
	print_message("%d nodes, %.2f: %d of %d\n", nodes, share, right, SEEDS);
	assert_in_range(right, ENOUGH, SEEDS);
}

static void test_tournament(void **state)
{
	(void)state;
	in_tournament(32, 0.88);
	in_tournament(16, 0.78);
	in_tournament(8, 0.5);
	in_tournament(8, 0);
	in_tournament(4, 0);
}

/* ---- The plan ------------------------------------------------------------------------------------------ */

static int met[NODES_MAX][NODES_MAX];

static int plan_round(void *user, int round, const struct accept_pair *pair, int count)
{
	struct model *m = user;
	bool seen[NODES_MAX] = { false };

	(void)round;
	assert_int_equal(count, m->nodes / 2);
	for (int i = 0; i < count; i++) {
		assert_true(pair[i].a < pair[i].b && pair[i].b < m->nodes);
		assert_false(seen[pair[i].a] || seen[pair[i].b]);
		seen[pair[i].a] = seen[pair[i].b] = true;
		met[pair[i].a][pair[i].b]++;
	}
	m->round++;
	return 0;
}

static void test_matchings(void **state)
{
	const struct accept_ops plan = { plan_round, model_alone };

	(void)state;
	for (int nodes = 2; nodes <= 65; nodes += 9) {
		struct accept_shape shape = { .nodes = nodes, .rails = 1, .rounds = 16, .seed = 3 };
		struct model m = model_of(nodes);
		int most = 0;

		memset(met, 0, sizeof(met));
		m.a = accept_new(&shape);
		assert_int_equal(accept_run(m.a, &plan, &m), 0);
		assert_int_equal(m.round, 16);
		for (int i = 0; i < nodes * nodes; i++)
			most = met[i / nodes][i % nodes] > most ? met[i / nodes][i % nodes] : most;
		if (nodes > 32)
			assert_in_range(most, 1, 2);
		assert_int_equal(accept_fault_count(m.a), 0);
		accept_free(m.a);
	}
}

static void test_leaves_the_rounds(void **state)
{
	struct model m = model_of(NODES);

	(void)state;
	both_set(&m, 14, 1, 0);
	model_run(&m, 1, ACCEPT_ROUNDS);
	assert_int_equal(accept_fails(m.a, 14, 1), ACCEPT_FAILS);
	assert_true(accept_has_left(m.a, 14, 1));
	assert_int_equal(accept_fails(m.a, 14, 0), 0);
	assert_false(accept_has_left(m.a, 14, 0));
	assert_true(accept_relative(m.a, 14, 1, ACCEPT_OUT) == 0);
	assert_true(fabs(accept_relative(m.a, 14, 0, ACCEPT_BOTH) - 1) < 0.05);
	assert_true(fabs(accept_level(m.a, 0) / LEVEL - 1) < 0.01);
	/*
	 * Both directions with two partners, once each: dead; the partners in full.  The rest are
	 * pairs that noise made suspects.
	 */
	assert_in_range(m.alone, 4 + 2 * ACCEPT_REPEATS, 4 + (2 + 3 * 4) * ACCEPT_REPEATS);
	assert_int_equal((m.alone - 4 - 2 * ACCEPT_REPEATS) % (4 * ACCEPT_REPEATS), 0);
	accept_free(m.a);
}

static void test_limit(void **state)
{
	const uint64_t took[] = { 10, 20, 30, 40 };

	(void)state;
	assert_int_equal(accept_limit_ns(took, 0, 4, ACCEPT_PATIENCE), 0);
	assert_int_equal(accept_limit_ns(took, 1, 4, ACCEPT_PATIENCE), 0);
	assert_int_equal(accept_limit_ns(took, 2, 4, ACCEPT_PATIENCE), 80);
	assert_int_equal(accept_limit_ns(took, 4, 4, ACCEPT_PATIENCE), 80);
	assert_int_equal(accept_limit_ns(took, 1, 1, ACCEPT_PATIENCE), 40);
	assert_int_equal(accept_limit_ns(took, 2, 3, ACCEPT_PATIENCE), 80);
}

/* ---- Time -------------------------------------------------------------------------------------------------- */

static void within_estimate(struct model m, const struct accept_estimate *e, uint64_t good_ns)
{
	uint64_t most_ns = e->rounds_ns + e->suspects_ns + e->bad_port_ns;

	model_run(&m, 1, ACCEPT_ROUNDS);
	assert_int_equal(accept_fault_count(m.a), 1);
	assert_int_equal(accept_fault(m.a, 0)->node, 300);
	accept_free(m.a);
	print_message("%.2f s of %.2f s\n", (double)m.clock_ns / 1e9,
		      (double)most_ns / 1e9);
	assert_in_range(m.clock_ns, e->rounds_ns, most_ns);
	assert_in_range(m.clock_ns - good_ns, 0, UINT64_C(60000000000));
}

static void test_time(void **state)
{
	struct model m = model_of(NODES_MAX), bad;
	struct accept_shape shape = { .nodes = NODES_MAX, .rails = RAILS, .rounds = ACCEPT_ROUNDS };
	const struct accept_costs costs = { CELL_NS, DEAD_NS, between_rounds_ns(&m) };
	struct accept_estimate e = accept_estimate(&shape, &costs);

	(void)state;
	model_run(&m, 1, ACCEPT_ROUNDS);
	accept_free(m.a);
	assert_in_range(m.clock_ns, e.rounds_ns, e.rounds_ns + e.suspects_ns);
	assert_in_range(e.bad_port_ns, 0, UINT64_C(60000000000));
	for (int i = 0; i < 4; i++) {
		static const double share[] = { 0, 0.02, 0.88, 0.95 };

		bad = m;
		both_set(&bad, 300, 1, share[i]);
		within_estimate(bad, &e, m.clock_ns);
	}
	/* Twice the nodes, the same rounds. */
	shape.nodes *= 2;
	assert_int_equal(accept_estimate(&shape, &costs).rounds_ns, e.rounds_ns);
}

/* ---- Words ----------------------------------------------------------------------------------------------------- */

static void is_text(const struct accept_fault *f, const char *expected)
{
	const char *const node[] = { "n13", "n14", "n15" }, *const rail[] = { "mlx5_0:1", "mlx5_1:1" };
	const char *const port[] = { "mlx5_0:1", "mlx5_1:1", "mlx5_0:1", "mlx5_1:1", "mlx5_0:1",
				     "mlx5_1:1" };
	const uint64_t retries[] = { 0, 0, 0, 1287, UINT64_MAX, 5 };
	const struct accept_names names = { node, port, rail, retries, RAILS };
	char text[256];

	accept_text(f, &names, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void test_words(void **state)
{
	static const int members[] = { 0, 1, 2 };

	(void)state;
	is_text(&(struct accept_fault){ ACCEPT_PORT_SLOW, 1, -1, 1, ACCEPT_BOTH, 0.22, 0, NULL, 0 },
		"cable or port: n14 mlx5_1:1, 22 % low, 1287 retries");
	is_text(&(struct accept_fault){ ACCEPT_PORT_SLOW, 2, -1, 0, ACCEPT_IN, 0.123, 0, NULL, 0 },
		"cable or port: n15 mlx5_0:1, 12 % low receiving");
	is_text(&(struct accept_fault){ ACCEPT_PORT_DOWN, 2, -1, 1, ACCEPT_BOTH, 1, 0, NULL, 0 },
		"cable or port: n15 mlx5_1:1, down, 5 retries");
	is_text(&(struct accept_fault){ ACCEPT_PORT_MISSING, 2, -1, 1, ACCEPT_BOTH, 1, 0, NULL, 0 },
		"cable or port: n15 mlx5_1:1, missing or down at the start");
	is_text(&(struct accept_fault){ ACCEPT_NODE_SLOW, 0, -1, -1, ACCEPT_BOTH, 0.3, 0, NULL, 0 },
		"node: n13, 30 % low on all rails");
	is_text(&(struct accept_fault){ ACCEPT_PATH_DOWN, 0, 2, 1, ACCEPT_BOTH, 1, 0, NULL, 0 },
		"path: n13 - n15, mlx5_1:1, down");
	is_text(&(struct accept_fault){ ACCEPT_PATH_SLOW, 0, 2, 1, ACCEPT_IN, 0.5, 0, NULL, 0 },
		"path: n13 <- n15, mlx5_1:1, 50 % low");
	is_text(&(struct accept_fault){ ACCEPT_LEAF_SLOW, -1, -1, 0, ACCEPT_BOTH, 0.2, 0, members, 3 },
		"leaf switch: n[13-15], mlx5_0:1, 20 % low");
	is_text(&(struct accept_fault){ ACCEPT_RAIL_SLOW, -1, -1, 1, ACCEPT_BOTH, 0.2, 0, NULL, 0 },
		"rail: mlx5_1:1, 20 % low as a whole");
	is_text(&(struct accept_fault){ ACCEPT_ROUTING, 0, -1, 0, ACCEPT_OUT, 0.2, 0, NULL, 0 },
		"routing: n13 mlx5_0:1, 20 % low sending, 0 retries, in company only");
	is_text(&(struct accept_fault){ ACCEPT_ROUTING, 0, -1, 0, ACCEPT_BOTH, 0.2, 3, NULL, 0 },
		"routing: n13 mlx5_0:1, failed in 3 rounds, 0 retries, well alone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_hiccups),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_down_before),
		cmocka_unit_test(test_down_during),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_slow_12),
		cmocka_unit_test(test_slow_5),
		cmocka_unit_test(test_direction),
		cmocka_unit_test(test_dead_direction),
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_leaf),
		cmocka_unit_test(test_node),
		cmocka_unit_test(test_routing),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_rail),
		cmocka_unit_test(test_tournament),
		cmocka_unit_test(test_matchings),
		cmocka_unit_test(test_leaves_the_rounds),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
