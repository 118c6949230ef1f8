/*
 * state.h - the internal interface of src/accept.
 *
 *	run.c		the order of events
 *	plan.c		cells, matchings, who leaves the rounds, the estimate
 *	rounds.c	the pairs of each round of a tournament
 *	fit.c		levels and effects from cells
 *	suspect.c	what is slow or failed in company
 *	leaf.c		suspects of one leaf switch
 *	check.c		suspects measured alone
 *	again.c		pairs that are well alone, in company again
 *	verdict.c	accusations
 *	words.c		accusations as text
 */
#ifndef ACCEPT_STATE_H
#define ACCEPT_STATE_H

#include "accept/accept.h"

enum { OUT, IN, DIRECTIONS };

/* The share of the level below which nothing is accused, unless asked otherwise. */
#define ACCEPT_LEAST 0.025

/* A (node, rail). */
struct accept_port {
	bool missing, left, suspect;
	bool down[DIRECTIONS];		/* by the verdict */
	int fails;			/* rounds */
	int failed_in;			/* the last of them */
	int cells[DIRECTIONS];		/* with a rate, in company */
	int dead[DIRECTIONS];		/* without, in company or alone */
	double effect[DIRECTIONS];	/* logarithms; NaN: no cell */
	double z[DIRECTIONS];		/* in standard errors */
	double both, z_both;
	enum accept_direction direction;	/* of a suspect */
	int group;			/* of suspects of a leaf; -1: none */
};

struct accept_rail {
	bool fitted;
	double level;			/* logarithm of the rate */
	double sigma;			/* per cell */
	int spare;			/* cells less parameters */
};

/* A suspect that is measured alone: a node, a pair, or one node for its leaf. */
enum check_kind { CHECK_NODE, CHECK_PATH, CHECK_LEAF };
struct accept_check {
	enum check_kind kind;
	int node, other, rail, group;
	bool failed;			/* in company: cells failed */
	double low, z;			/* in company */
	enum accept_direction direction;
	int partner[2];			/* -1: none */
	int round;			/* of a pair: the last one that it met in */
	bool again;			/* slow in company whenever that round was measured again */
	/* Alone. */
	int first_cell, end_cell;	/* in the list of cells */
	bool done, down, confirmed;
	double alone[DIRECTIONS];	/* below the good partners; NaN: not known */
	double alone_both;
};

struct accept_group { int rail, *member, count; double low; };

struct accept {
	struct accept_shape shape;
	double least;			/* as a logarithm; infinite: nothing is slow */
	int *leaf;
	struct accept_port *port;	/* node * rails + rail */
	struct accept_rail *rail;
	struct accept_cell *cell;
	double *rest;			/* residuals of cells in company, by cell; NaN: none */
	int cell_count, cell_room;
	struct accept_pair *pair;	/* of the round */
	struct accept_pair *past;	/* round * (nodes / 2): those of all rounds */
	int *past_count;		/* by round */
	int *order;			/* work of the matchings */
	unsigned char *met;		/* node * nodes + node: have they met? */
	uint64_t random;
	struct accept_check *check;
	int check_count, check_room;
	struct accept_group *group;
	int group_count;
	struct accept_fault *fault;
	int fault_count, fault_room;
	bool out_of_memory;
};

static inline struct accept_port *port_of(const struct accept *a, int node, int rail)
{
	return &a->port[node * a->shape.rails + rail];
}

/* A list with room for one more element; returns the list, or NULL with the old one in place. */
void *accept_grow(struct accept *a, void *list, int count, int *room, size_t bytes);

/* Fill a->pair and a->past; returns the number of pairs. */
int accept_round_make(struct accept *a, int round);
void accept_leave(struct accept *a);		/* those that have failed in too many rounds */

/* The location of values by Huber's estimator; sigma: their deviation.  Sorts them. */
double accept_location(double *values, int count, double sigma);
void accept_fit(struct accept *a);
void accept_suspects(struct accept *a);
void accept_leaves(struct accept *a);
int accept_check_add(struct accept *a, const struct accept_check *check);
int accept_checks(struct accept *a, const struct accept_ops *ops, void *user);
/* Is a suspect so clear that it is named even if it is well alone? */
bool accept_is_clear(const struct accept *a, const struct accept_check *c);
int accept_again(struct accept *a, const struct accept_ops *ops, void *user);
void accept_verdict(struct accept *a);

#endif
