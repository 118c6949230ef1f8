/*
 * acceptance.h - a tournament, or random matchings, on queue pairs of their own (src/accept).
 *
 *	acceptance.c		the order of events
 *	acceptance_rails.c	the ports of all nodes as rails
 *	acceptance_round.c	rounds: orders of rank 0, cells of the nodes, their answers
 *	acceptance_record.c	the record: nodes, ports, faults, the list to drain
 *
 * The first rank of each node measures.  Rank 0 tells each what to measure and until when; it
 * measures itself, too, and hears answers whenever it waits.
 */
#ifndef BENCH_ACCEPTANCE_H
#define BENCH_ACCEPTANCE_H

#include "accept/accept.h"
#include "bench/job.h"

enum { ACCEPTANCE_RAILS_MAX = 8 };

/* Ports of a rank's node, as they were at the start. */
struct acceptance_ports {
	int count;
	char leaf[96];			/* name of the leaf switch, by Slurm; "": not known */
	struct { char name[72]; int active; } port[BENCH_PORTS_MAX];
};

struct acceptance {
	struct accept *a;		/* rank 0 */
	struct acceptance_ports *ports;	/* per rank */
	int rails;
	char rail[ACCEPTANCE_RAILS_MAX][72];	/* name of most nodes' port */
	int *port;			/* per node * rails + rail: number of its port; -1: none */
	bool *missing;			/* the same: missing or down at the start */
	uint64_t *errors, *retries;	/* this node's at the start, by port */
	/* Rounds. */
	uint64_t serial;		/* cells so far */
	uint64_t pair_ns;		/* of the last round: time of the median pair */
	uint64_t begun_ns, took_ns;
	char estimate[160];		/* for people */
	struct accept_estimate estimates;
	uint64_t cell_ns;		/* measured before the first round */
	uint64_t *latency;		/* per cell with one, in ns, and their rails */
	int *latency_rail;
	int latency_count, latency_room;
};

/* Is this a job of cells?  Where ways are asked for, MPI carries the messages. */
static inline bool acceptance_is(const struct bench_job *job)
{
	return job->def->acceptance && job->opt.over.count == 0;
}

/* Find the rails of all nodes, as ways: after ways_open, which opens none. */
int acceptance_open(struct bench_job *job);
/* All rounds, the verdict.  *end: members of the end record, at rank 0. */
int acceptance_run(struct bench_job *job, uint64_t bytes, json_t **end);
void acceptance_close(struct bench_job *job);

/* ---- Steps, for the files of this room ---- */

/* Find the ports of nodes on rails, once nodes are known. */
void acceptance_ports_assign(struct bench_job *job);
/* Leaf switches by node, by --leaf or by what Slurm knows: free() it; NULL: not known. */
int *acceptance_leaves(const struct bench_job *job);
/* The name of a node: its host's, or "node3" for a virtual one. */
void acceptance_node_name(const struct bench_job *job, int node, char *text, size_t size);
/* The rounds that are asked for; 0: a tournament. */
int acceptance_rounds(const struct bench_job *job);
/* For accept_run, at rank 0; user: the job. */
extern const struct accept_ops acceptance_ops;
/* Measure a first cell of each two nodes, for the estimate. */
void acceptance_try(struct bench_job *job);
/* Carry out rank 0's orders until its last one: at all other ranks. */
void acceptance_serve(struct bench_job *job);
void acceptance_dismiss(struct bench_job *job);
/* Collective over the ranks that measure, and rank 0.  NULL but at rank 0. */
json_t *acceptance_record(struct bench_job *job);

#endif
