/*
 * accept.h - the acceptance of a fabric: who measures whom, what the cells say, who is accused.
 *
 * Pure: no clock, no messages.  The caller measures (struct accept_ops), on queue pairs or in a
 * model.
 *
 * A *cell* is one direction of one pair of nodes over one rail.  Cells are measured in *rounds*, in
 * which all nodes are busy, each with one other: either in every pairing of a tournament, or in a
 * number of random perfect matchings, so that the cost does not depend on the number of nodes.  A
 * (node, rail) whose cells fail in three rounds leaves the rounds.  Afterwards each suspect is
 * measured *alone*, with nothing else under way, against two good partners.
 *
 * The logarithm of a cell's rate is taken as the sum of a rail's level, an effect of the sender, an
 * effect of the receiver and an effect of the pair; the first three are fitted by Huber's estimator
 * (Huber, Robust Statistics, 1981) in turns, as in a median polish (Tukey, Exploratory Data
 * Analysis, 1977), and the residuals are the pairs'.
 */
#ifndef ACCEPT_H
#define ACCEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ACCEPT_ROUNDS = 16,		/* random matchings unless asked otherwise */
	ACCEPT_TOURNAMENT_MAX = 32,	/* nodes up to which every pair meets */
	ACCEPT_FAILS = 3,		/* rounds with failed cells, after which a (node, rail) leaves */
	ACCEPT_REPEATS = 8,		/* cells of a pair that is measured alone, in each direction */
	ACCEPT_PATIENCE = 4,		/* median pairs that a round waits, unless asked otherwise */
};

enum accept_state {
	ACCEPT_OK,
	ACCEPT_CUT,			/* ended before its time; its rate is what it moved until then */
	ACCEPT_DOWN,			/* moved nothing */
};

struct accept_cell {
	int from, to, rail;
	int round;			/* ACCEPT_ALONE: alone */
	enum accept_state state;
	double rate;			/* in any unit, > 0 unless the cell is down */
};
enum { ACCEPT_ALONE = -1 };

struct accept_pair { int a, b; };

struct accept_shape {
	int nodes, rails;
	int rounds;			/* random matchings; 0: every pair meets once */
	uint64_t seed;			/* of the matchings */
	bool alike;			/* rails should be equal: a slow one is named */
	/* The least share that is called slow; 0: 0.025; 1: nothing is slow, only down. */
	double least;
	/* The number of each node's leaf switch, -1 if not known.  NULL: none is known.  Copied. */
	const int *leaf;
	/* Ports missing or down at the start, [node * rails + rail].  NULL: none.  Copied. */
	const bool *missing;
};

struct accept;
struct accept *accept_new(const struct accept_shape *shape);	/* NULL: no memory */
void accept_free(struct accept *a);

/* ---- Measurement ------------------------------------------------------------------- */

struct accept_ops {
	/*
	 * Measure the cells of all pairs at once, in both directions, over each rail that both
	 * nodes have in the rounds (accept_takes), and add them.  0, or -errno, which ends
	 * accept_run.  A round that is measured again has a number above all others.
	 */
	int (*round)(void *user, int round, const struct accept_pair *pair, int count);
	/* Measure one cell alone and add it. */
	int (*alone)(void *user, int from, int to, int rail);
};

/* All rounds, all measurements alone, the verdict.  0 or -errno. */
int accept_run(struct accept *a, const struct accept_ops *ops, void *user);
bool accept_takes(const struct accept *a, int node, int rail);
int accept_add(struct accept *a, const struct accept_cell *cell);	/* 0 or -ENOMEM */
int accept_rounds(const struct accept_shape *shape);

/*
 * The time that a round waits: `patience` times the median of its pairs.  took_ns: times of the
 * pairs that are done, in ascending order.  0: not known yet, as fewer than half are done.
 */
uint64_t accept_limit_ns(const uint64_t *took_ns, int done, int pairs, unsigned patience);

struct accept_costs {
	uint64_t cell_ns;		/* a good cell, with its queue pairs */
	uint64_t dead_ns;		/* a dead one */
	uint64_t round_ns;		/* between rounds */
};
struct accept_estimate {
	uint64_t rounds_ns;		/* rounds without faults */
	uint64_t suspects_ns;		/* suspects that noise makes, measured alone: at most */
	uint64_t bad_port_ns;		/* added by a bad port at most */
};
struct accept_estimate accept_estimate(const struct accept_shape *shape,
				       const struct accept_costs *costs);

/* ---- Results --------------------------------------------------------------------------- */

enum accept_direction { ACCEPT_BOTH, ACCEPT_OUT, ACCEPT_IN };

enum accept_kind {
	ACCEPT_PORT_MISSING,		/* (node, rail): missing or down at the start */
	ACCEPT_PORT_DOWN,		/* (node, rail): down alone, too */
	ACCEPT_PORT_SLOW,		/* (node, rail): slow alone, too: cable or port */
	ACCEPT_NODE_DOWN,		/* a node on all of several rails */
	ACCEPT_NODE_SLOW,
	ACCEPT_PATH_DOWN,		/* a pair whose ends are good */
	ACCEPT_PATH_SLOW,
	ACCEPT_LEAF_SLOW,		/* nodes that are slow to others and good among themselves */
	ACCEPT_RAIL_SLOW,		/* a rail as a whole */
	ACCEPT_ROUTING,			/* slow in company only: a node, a pair or a leaf */
};

struct accept_fault {
	enum accept_kind kind;
	int node, other;		/* -1: none; other: the far end of a pair */
	int rail;			/* -1: all */
	enum accept_direction direction;	/* as node sees it */
	double low;			/* share below the level of the rail: 0.22; 1: down */
	int failed_rounds;		/* ACCEPT_ROUTING of failures: their number; else 0 */
	const int *member;		/* a leaf's nodes; they belong to the struct accept */
	int member_count;
};

/* After accept_run: this port is down by now; accuses it unless it is accused already. */
void accept_port_down(struct accept *a, int node, int rail);

int accept_fault_count(const struct accept *a);
const struct accept_fault *accept_fault(const struct accept *a, int i);
/* Should the fault's node take no more jobs?  The reason is then at the node itself. */
bool accept_drains(const struct accept_fault *fault);

/*
 * The rate of a node in a direction relative to its rail's level, without its partners' effects:
 * 0.78.  0: nothing moved; NaN: not measured.
 */
double accept_relative(const struct accept *a, int node, int rail, enum accept_direction direction);
/* The level of a rail, in the unit of the cells; NaN: not measured. */
double accept_level(const struct accept *a, int rail);
/* Rounds in which a cell of the (node, rail) failed; has it left the rounds? */
int accept_fails(const struct accept *a, int node, int rail);
bool accept_has_left(const struct accept *a, int node, int rail);

/* ---- Words ------------------------------------------------------------------------------- */

struct accept_names {
	const char *const *node;	/* per node */
	/* Names of ports, as "mlx5_1:1", [node * rails + rail]. */
	const char *const *port;
	const char *const *rail;	/* per rail, for all nodes */
	/* Retries over the job, [node * rails + rail]; NULL, or UINT64_MAX: not counted. */
	const uint64_t *retries;
	int rails;
};

/* "cable or port: n14 mlx5_1:1, 22 % low, 1287 retries" */
void accept_text(const struct accept_fault *fault, const struct accept_names *names, char *text,
		 size_t size);

#endif
