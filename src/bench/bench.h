/*
 * bench.h - the definition of a benchmark program; the harness does everything else.
 *
 * A program is one `const struct bench_def bench_def` and no main().  It defines one
 * sample (run), the number of messages in it (messages) and the data that must have
 * arrived (expect).  The harness owns main(): options, MPI, ways, buffers, warm-up,
 * timing, validation, statistics, output.
 *
 * There are four layouts with samples:
 *	BENCH_ALL	all ranks call run together, for collectives
 *	BENCH_PAIRS	ranks of different nodes form pairs, which call run at the same
 *			time; a rank has a side (0 or 1) and a peer
 *	BENCH_STAR	rank 0 is the master (side 0), all others are its slaves (side 1), of
 *			which the first one, two, ... take part in a row
 *	BENCH_TOURNAMENT  pairs that change: the first rank of each node is paired with
 *			that of each other node, in rounds in which all nodes are busy,
 *			over each rail alone and in both directions; the result is a matrix
 *
 * The fifth layout, BENCH_APP, has no message sizes and no samples.  A computation is timed
 * as a whole over each way, and reports which part of it was communication (struct
 * bench_app).
 *
 * A program of BENCH_ALL with a struct bench_tune measures several collectives over one
 * way, each by all its algorithms, and writes a table of the quickest.
 *
 * Buffers consist of blocks of b->count bytes:
 *	BENCH_ALL	sblocks(b) and rblocks(b) of them, one behind the other
 *	the others	the messages of a window; message i is at sbuf + i * b->step.
 *			When timed, all are at the same place (step 0), so that a
 *			window does not measure the caches.  When validated, or where
 *			the program asks for it (apart), each has a place of its own
 *			(step = count).
 */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/opt.h"

enum bench_metric {
	BENCH_LATENCY,		/* us: time of a sample / messages */
	BENCH_BANDWIDTH,	/* MB/s: messages * count / time, all pairs together */
	BENCH_RATE,		/* messages / second, all pairs together */
	BENCH_MOPS,		/* BENCH_APP: operations / 1e6 / time of the slowest rank */
};

enum bench_layout { BENCH_ALL, BENCH_PAIRS, BENCH_STAR, BENCH_TOURNAMENT, BENCH_APP };

struct bench {
	/* For the whole job. */
	int rank, size;		/* in comm */
	/* Not BENCH_ALL; in a tournament they change by the round, in a star by the row. */
	int pair;		/* the pair of this rank, counted from 0; -1: none */
	int side;		/* 0 or 1; side 0 measures the time */
	int peer;		/* rank of the other side */
	int peers;		/* peer and those behind it: at a master the slaves of the row, else 1 */
	MPI_Request *request;	/* 2 * --window of them, for run's use */
	/* For one size and way. */
	MPI_Comm comm;		/* of the way */
	int count;		/* bytes of a block: the message size */
	int window;		/* not BENCH_ALL: messages per window */
	size_t step;		/* not BENCH_ALL: see above */
	unsigned char *sbuf, *rbuf;
	int way;		/* enum railmpi_way, or RAILMPI_SINGLE_RAIL + N */
	int variant;		/* value of the column's variant, where the program has some */
	bool validating;
	/* If bench_def.lists is set: by rank, a block's size and place in units. */
	int *counts, *displs;
};

enum { BENCH_TAG = 1, BENCH_ACK_TAG = 2 };

/* The origin of a block: block `block` of the send buffer of rank `rank`. */
struct bench_origin { int rank, block; };
/*
 * In place of a rank: the sum of that block over all ranks, in MPI_UINT32_T; a block that was lost
 * on its way, where a carrier may do so, and is not looked at.
 */
enum { BENCH_SUM = -1, BENCH_LOST = -2 };

/* Samples of a row, and untimed ones before them. */
struct bench_counts { uint64_t iterations, warmup; };

/* ---- BENCH_APP ----------------------------------------------------------- */

/* One computation over one way, as this rank sees it. */
struct bench_turn {
	MPI_Comm comm;			/* of the way */
	int rank, size;			/* in comm */
	/*
	 * The error that verification found on this rank, as text; "" if none.  Verification
	 * succeeds if it is "" on all ranks.
	 */
	char wrong[160];
	/* Set by the harness: since bench_turn_begin. */
	uint64_t begin_ns, total_ns, communication_ns, sent_bytes;
};

/* The problem, as set by the options. */
struct bench_problem {
	const char *class;		/* "A" */
	char size[48];			/* "256x256x128" */
	uint64_t bytes;			/* of the problem's data, all ranks */
	int iterations;
	double operations;		/* of all of them */
	const char *operation;		/* "keys ranked" */
};

struct bench_app {
	/* Printed with every result: whose problem it is, and that the code is not theirs. */
	const char *remark;
	/*
	 * Is the problem possible on so many ranks, each of which can allocate `available`
	 * bytes?  0, or -EINVAL with a whole line in why that names what is accepted.  The
	 * same on all ranks.  Called before open, and before anything is allocated.
	 */
	int (*check)(int ranks, uint64_t available, char *why, size_t why_size);
	void (*problem)(struct bench_problem *out);
	/* Memory for all turns.  0 or -ENOMEM, on this rank. */
	int (*open)(int rank, int ranks);
	/*
	 * One turn: the untimed part, bench_turn_begin, the timed part, bench_turn_end,
	 * verification.  In the timed part calls of MPI stand between
	 * bench_communication_begin and bench_communication_end.
	 */
	void (*run)(struct bench_turn *t);
	void (*close)(void);		/* also after a failed open */
};

void bench_turn_begin(struct bench_turn *t);	/* all ranks together */
void bench_turn_end(struct bench_turn *t);
/*
 * Communication, including waiting for other ranks.  bytes: sent to other ranks; for a
 * reduction its vector once, if there are other ranks.
 */
uint64_t bench_communication_begin(void);
void bench_communication_end(struct bench_turn *t, uint64_t begun, uint64_t bytes);
/*
 * Memory that the devices of the transport know, aligned to a cache line, in large pages
 * if the machine has them.  NULL: out of memory.  Only in open.
 */
void *bench_alloc(size_t bytes);
void bench_free(void *memory);			/* NULL: nothing */

/* ---- Messages that are not MPI's ------------------------------------------- */

struct railmpi_ledger;

/* Messages of this rank: those that were to arrive here, and those of them that did not. */
struct bench_arrivals { uint64_t expected, lost; };

/*
 * What carries the messages of a program in place of MPI: queue pairs (src/vbench).  MPI starts
 * the job and exchanges addresses, and the transport opens the rails.  Layout BENCH_PAIRS or
 * BENCH_STAR.
 *
 * Functions that can fail return 0 or -errno after one error line; all ranks call them, those
 * without a pair too (b->pair is -1), at the same point.
 */
struct bench_carrier {
	/* The transport's options that mean something to it; NULL-ended. */
	const char *const *options;
	/* Its ways, by name, with its own help; `single` is the default.  Values are not used. */
	const struct opt_choice *ways;
	/* Do the program's options agree with each other?  Before MPI_Init. */
	int (*check)(void);
	/* And with a way? */
	int (*check_way)(int way);
	/* Over rails 0 to rails - 1. */
	int (*open)(const struct bench *b, int rails);
	/* Messages that it can carry, since it is open, and the reason for the limits. */
	const char *(*sizes)(struct opt_range *out);
	/* The buffers of all sizes; they stay until close. */
	int (*memory)(const struct bench *b, size_t sbuf_bytes, size_t rbuf_bytes);
	/* To all peers; the only one of these that sends messages. */
	int (*connect)(const struct bench *b);
	/*
	 * Around `runs` runs of ranks with a pair: sets up what is posted ahead, and completes what
	 * is left, so that buffers may be filled and looked at outside.  end returns false if
	 * something arrived that is wrong, beyond what the harness sees in rbuf.
	 */
	void (*begin)(struct bench *b, uint64_t runs);
	bool (*end)(struct bench *b, struct bench_arrivals *out);
	void (*close)(void);				/* also after a failed open */
	/* As railmpi_ledger. */
	int (*ledger)(int rail, struct railmpi_ledger *out);
	/* What is measured, for the heading: "RC, 1 queue pair on each rail, ..." */
	void (*describe)(char *text, size_t size);
};

/* ---- Coordinates other than the message size ---------------------------------- */

/* Rows at several values of something else, all of one message size. */
struct bench_axis {
	const char *name, *unit, *title;	/* as struct report_axis */
	/* The i-th value, from 0; false: there are no more. */
	bool (*value)(int i, double *out);
	/* Before anything is done at this value; first, to size the buffers, at each of them. */
	void (*set)(double value);
};

/* For bench_def.axis, of BENCH_STAR: slaves that take part, from one to all. */
const struct bench_axis *bench_slaves(void);

/* ---- Calibration ----------------------------------------------------------- */

enum { BENCH_CANDIDATES = 8 };	/* algorithms of one collective at most */

struct bench_tune {
	const struct opt_choice *collectives;		/* as --coll names them */
	void (*const *run)(struct bench *b);		/* by the choice's value */
	const struct opt_list *only;			/* an option's value; none: all */
	const char *const *out;				/* an option's value: the table's file */
};

/* The check of an option that names a file: refuses an empty name. */
int bench_check_path(const char *text, char *why, size_t why_size);

/* ---- The program ------------------------------------------------------------ */

struct bench_def {
	const char *name;		/* "bw" in rg_bw.c */
	const char *summary;		/* "Uni-directional bandwidth": heading, title, --help */
	enum bench_metric metric;
	const char *quantity;		/* of BENCH_LATENCY, where it is another time: "CPU time" */
	enum bench_layout layout;
	int min_ranks;
	int unit;			/* bytes; sizes are multiples of it; 0: 1 */
	bool lists;			/* BENCH_ALL: b->counts and b->displs are set */
	/* What a value is, where the summary leaves that open: the last paragraph of --help. */
	const char *about;
	/* The messages of one pair, or of a master, in one sample; NULL: one. */
	int (*messages)(const struct bench *b);
	/* Blocks of the buffers of this rank; NULL: none. */
	int (*sblocks)(const struct bench *b);
	int (*rblocks)(const struct bench *b);
	/* Messages have places of their own when they are timed, too; NULL: they have none. */
	bool (*apart)(void);
	/* Before the first run of each size and way; may be NULL. */
	void (*prepare)(struct bench *b);
	/*
	 * One sample.  On return all its operations are complete and sbuf may be
	 * written again.  It is timed, so it contains nothing but communication.
	 */
	void (*run)(struct bench *b);
	/* What counts of the run that has just ended, in ns; NULL: all of it. */
	uint64_t (*took)(void);
	/* The origin of block `block` of rbuf after run.  NULL: nothing to check. */
	struct bench_origin (*expect)(const struct bench *b, int block);
	/* Defaults of the common options; NULL and 0: the harness's. */
	const char *sizes;			/* "1:4M" */
	struct bench_counts small, large;	/* up to 8 KiB; above */
	const char *time_cap;			/* "10s" */
	/* The program's own options: rows and the struct that their offsets refer to. */
	const struct opt *options;
	void *values;
	/* BENCH_APP: set this, and of the above name, summary, metric, options, values. */
	const struct bench_app *app;
	/* In place of MPI; NULL: MPI. */
	const struct bench_carrier *carrier;
	/*
	 * Columns other than ways: the one way of --over is measured in each of these variants,
	 * which take turns as ways do.  The list ends with a NULL name; latencies are also told as
	 * what they add to the first.  Called once, before the carrier is opened.  NULL: columns
	 * are ways.
	 */
	const struct opt_choice *(*variants)(void);
	/* The coordinate that the options ask for; NULL, or returns NULL: the message size. */
	const struct bench_axis *(*axis)(void);
	/* Calibration: set this; run is replaced by that of each collective in its turn. */
	const struct bench_tune *tune;
};

extern const struct bench_def bench_def;

/* What a reading of the clock takes, which is in what is between two of them. */
uint64_t bench_clock_ns(void);

/* For the members of bench_def that are functions. */
int bench_one(const struct bench *b);		/* 1 */
int bench_two(const struct bench *b);		/* 2: there and back */
int bench_per_rank(const struct bench *b);	/* one per rank of comm */
int bench_one_at_root(const struct bench *b);	/* rank 0 */
int bench_per_rank_at_root(const struct bench *b);
int bench_window(const struct bench *b);	/* one per message of the window */
int bench_two_windows(const struct bench *b);	/* a window in each direction */
/* A window, but only on the side that sends (0) or receives (1). */
int bench_window_side0(const struct bench *b);
int bench_window_side1(const struct bench *b);
/* Block i came from block i of the peer. */
struct bench_origin bench_from_peer(const struct bench *b, int block);
/* Block i is the only block of rank i. */
struct bench_origin bench_from_each(const struct bench *b, int block);
/* Block i is the one that rank i sent to this rank. */
struct bench_origin bench_to_me(const struct bench *b, int block);
/* Block i is the sum of all ranks' block i. */
struct bench_origin bench_sum(const struct bench *b, int block);
/* A window of messages back to back, then a small reply. */
void bench_run_window(struct bench *b);

#endif
