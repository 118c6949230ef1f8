/*
 * bench.h - the definition of a benchmark program; the harness does everything else.
 *
 * A program is one `const struct bench_def bench_def` and no main().  It defines one
 * sample (run), the number of messages in it (messages) and the data that must have
 * arrived (expect).  The harness owns main(): options, MPI, ways, buffers, warm-up,
 * timing, validation, statistics, output.
 *
 * Four layouts have samples:
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
 *	BENCH_ALL	sblocks(b) and rblocks(b) of them in sequence
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

#include "report/metric.h"
#include "util/opt.h"

enum bench_layout { BENCH_ALL, BENCH_PAIRS, BENCH_STAR, BENCH_TOURNAMENT, BENCH_APP };

struct bench {
	/* Constant in the whole job. */
	int rank, size;		/* in comm */
	/* Not BENCH_ALL; in a tournament they change by the round, in a star by the row. */
	int pair;		/* the pair of this rank, counted from 0; -1: none */
	int side;		/* 0 or 1; side 0 measures the time */
	int peer;		/* rank of the other side */
	int peers;		/* ranks from `peer` on: at a master the row's slaves, else 1 */
	MPI_Request *request;	/* 2 * --window of them, for use by run */
	/* Constant for a size and way. */
	MPI_Comm comm;		/* the way's */
	int count;		/* bytes of a block: the message size */
	int window;		/* not BENCH_ALL: messages per window */
	size_t step;		/* not BENCH_ALL: distance of messages; 0: all at one place */
	unsigned char *sbuf, *rbuf;
	int way;		/* enum railmpi_way, or RAILMPI_SINGLE_RAIL + N */
	int variant;		/* the column's value in bench_def.variants */
	bool validating;
	/* If bench_def.lists is set: by rank, a block's size and place in units. */
	int *counts, *displs;
};

enum { BENCH_TAG = 1, BENCH_ACK_TAG = 2 };

/* The origin of a block: block `block` of the send buffer of rank `rank`. */
struct bench_origin { int rank, block; };
/*
 * Values in place of a rank.  BENCH_SUM: the sum of that block over all ranks, in MPI_UINT32_T.
 * BENCH_LOST: a carrier lost the block, so that it is not validated.
 */
enum { BENCH_SUM = -1, BENCH_LOST = -2 };

/* Samples of a row, and untimed samples before them. */
struct bench_counts { uint64_t iterations, warmup; };

/* ---- BENCH_APP ----------------------------------------------------------- */

/* A computation over one way, as this rank sees it. */
struct bench_turn {
	MPI_Comm comm;			/* the way's */
	int rank, size;			/* in comm */
	/*
	 * The error that verification found on this rank, as text; "" if none.  Verification
	 * succeeds if it is "" on all ranks.
	 */
	char wrong[160];
	/* The harness sets these; they count from bench_turn_begin. */
	uint64_t begin_ns, total_ns, communication_ns, sent_bytes;
};

/* The problem, as set by the options. */
struct bench_problem {
	const char *class;		/* "A" */
	char size[48];			/* "256x256x128" */
	uint64_t bytes;			/* size of the problem's data on all ranks */
	int iterations;
	double operations;		/* operations of all iterations */
	const char *operation;		/* "keys ranked" */
};

struct bench_app {
	/* Printed with every result: the authors of the problem, who did not write this code. */
	const char *remark;
	/*
	 * Check that the problem fits on so many ranks, each of which can allocate `available`
	 * bytes.  0, or -EINVAL with a line in why that names the accepted values.  The result is
	 * the same on all ranks.  Called before open, and before anything is allocated.
	 */
	int (*check)(int ranks, uint64_t available, char *why, size_t why_size);
	void (*problem)(struct bench_problem *out);
	/* Allocate memory for all turns.  0 or -ENOMEM, on this rank. */
	int (*open)(int rank, int ranks);
	/*
	 * Run a turn: the untimed part, bench_turn_begin, the timed part, bench_turn_end,
	 * verification.  In the timed part, bench_communication_begin precedes calls of MPI and
	 * bench_communication_end follows them.
	 */
	void (*run)(struct bench_turn *t);
	void (*close)(void);		/* also after a failed open */
};

void bench_turn_begin(struct bench_turn *t);	/* all ranks together */
void bench_turn_end(struct bench_turn *t);
/*
 * Time of communication, including waiting for other ranks.  bytes: the data sent to other ranks; a
 * reduction among several ranks counts its vector once.
 */
uint64_t bench_communication_begin(void);
void bench_communication_end(struct bench_turn *t, uint64_t begun, uint64_t bytes);
/*
 * Allocate memory that the transport's devices know, aligned to a cache line, in large pages if the
 * machine has them.  NULL: out of memory.  Call it in open only.
 */
void *bench_alloc(size_t bytes);
void bench_free(void *memory);			/* NULL: nothing */

/* ---- Messages that are not MPI's ------------------------------------------- */

struct rail_ledger;

/* Messages expected at this rank, and messages of these that did not arrive. */
struct bench_arrivals { uint64_t expected, lost; };

/*
 * A carrier moves the messages of a program in place of MPI, by queue pairs (src/vbench).  MPI
 * starts the job and exchanges addresses, and the transport opens the rails.  Layout BENCH_PAIRS or
 * BENCH_STAR.
 *
 * Functions that can fail return 0 or -errno after one error line.  All ranks call them at the same
 * point, also ranks without a pair (b->pair is -1).
 */
struct bench_carrier {
	/* Names of the transport's options that affect the carrier; NULL-ended. */
	const char *const *options;
	/* The carrier's ways, by name, with help; `single` is the default.  Values are not used. */
	const struct opt_choice *ways;
	/* Check that the program's options agree with each other; called before MPI_Init. */
	int (*check)(void);
	/* Check that they agree with a way. */
	int (*check_way)(int way);
	/* Open rails 0 to rails - 1. */
	int (*open)(const struct bench *b, int rails);
	/* All ranks have opened it: agree on what all adapters can do. */
	int (*agree)(MPI_Comm all);
	/* Sizes of messages that the open carrier can carry.  Returns the reason for the limits. */
	const char *(*sizes)(struct opt_range *out);
	/* Register the buffers, which serve all sizes and stay until close. */
	int (*memory)(const struct bench *b, size_t sbuf_bytes, size_t rbuf_bytes);
	/* Connect to all peers.  No other function of a carrier sends messages of MPI. */
	int (*connect)(const struct bench *b);
	/*
	 * Called before and after `runs` runs of ranks with a pair.  begin posts receives ahead;
	 * end completes all messages, so that buffers may be filled and read afterwards.  end
	 * returns false if wrong data arrived that the harness cannot see in rbuf.
	 */
	void (*begin)(struct bench *b, uint64_t runs);
	bool (*end)(struct bench *b, struct bench_arrivals *out);
	void (*close)(void);				/* also after a failed open */
	/* Same contract as railmpi_ledger. */
	int (*ledger)(int rail, struct rail_ledger *out);
	/* Text for the heading: "RC, 1 queue pair on each rail, ..." */
	void (*describe)(char *text, size_t size);
};

/* ---- Cells: pairs of nodes on queue pairs of their own ----------------------------- */

/* A port of this node, whether or not it is a rail. */
struct bench_port {
	char name[72];			/* "mlx5_1:1" */
	bool active;			/* now */
	bool counts_retries;
	uint64_t retries;		/* since open; 0 unless counts_retries */
};

/* An end of a cell. */
struct bench_cell {
	int peer;			/* rank of the other end in MPI_COMM_WORLD */
	int port;			/* of this node, by the order of ports() */
	bool sends;
	uint64_t serial;		/* the same at both ends, and no other cell's */
	int window;			/* messages of a sample */
	uint64_t samples, warmup;	/* at most; warmup: untimed ones before them */
	uint64_t time_ns;		/* no sample begins after it, but the first; 0: no limit */
	uint64_t limit_ns;		/* the cell is cut after it; 0: no limit */
	bool validate;
	/* Is the cell to end now?  Called while it waits. */
	bool (*stopped)(void *user);
	void *user;
	uint64_t *ns;			/* room for `samples` of them */
};

/* The end that sends knows more. */
struct bench_cell_result {
	bool whole;			/* all samples were measured */
	uint64_t moved_bytes;		/* of messages that are complete; 0: the cell is dead */
	uint64_t took_ns;		/* the time that this took */
	uint64_t samples;		/* in ns[] */
	uint64_t latency_ns;		/* median of 8-byte writes, from post to completion; 0: none */
	int valid;			/* -1: not checked */
};

/*
 * Cells are measured by RDMA writes of a queue pair that is made for the cell and destroyed after
 * it, so that no failure outlives a cell.  MPI only exchanges addresses and results, and every wait
 * has a limit.
 */
struct bench_cells {
	/* Ports of this node, and memory for messages of so many bytes.  0 or -errno after a line. */
	int (*open)(uint64_t bytes);
	int (*ports)(struct bench_port *out, int most);	/* the number of all, in the node's order */
	/* Counters of a port that count errors, as they are now. */
	int (*errors)(int port, void (*each)(void *user, const char *name, uint64_t value),
		      void *user);
	void (*measure)(const struct bench_cell *cell, struct bench_cell_result *out);
	void (*close)(void);
};

enum { BENCH_PORTS_MAX = 64 };

/* An acceptance (acceptance.h): BENCH_TOURNAMENT, where no ways are asked for. */
struct bench_acceptance {
	const struct bench_cells *cells;
	const uint64_t *rounds;		/* random matchings; OPT_SPECIAL: by the number of nodes */
	const bool *tournament;		/* every pair, also of many nodes */
	const uint64_t *patience;	/* median pairs that a round waits */
	const uint64_t *leaf_nodes;	/* nodes of a leaf switch, in the order of ranks; 0: not known */
	const uint64_t *cell_ns;	/* time of a cell's samples */
	const uint64_t *slow_percent;	/* least share that is slow; OPT_SPECIAL: by the fabric */
};

/* ---- Coordinates other than the message size ---------------------------------- */

/* An axis: rows at several values of another coordinate, all of one message size. */
struct bench_axis {
	const char *name, *unit, *title;	/* see struct report_axis */
	/* The i-th value, counted from 0; false: the axis ends before it. */
	bool (*value)(int i, double *out);
	/* Called before each row with its value, and once with each value to size the buffers. */
	void (*set)(double value);
};

/* An axis for BENCH_STAR: the number of slaves that take part, from one to all. */
const struct bench_axis *bench_slaves(void);

/* ---- Calibration ----------------------------------------------------------- */

enum { BENCH_CANDIDATES = 8 };	/* algorithms of one collective at most */

struct bench_tune {
	const struct opt_choice *collectives;		/* names that --coll takes */
	void (*const *run)(struct bench *b);		/* index: the choice's value */
	const struct opt_list *only;			/* an option's value; empty: all */
	const char *const *out;				/* an option's value: the table's file */
};

/* ---- The program ------------------------------------------------------------ */

struct bench_def {
	const char *name;		/* "bw" in rg_bw.c */
	const char *summary;		/* "Uni-directional bandwidth": heading, title, --help */
	enum report_metric metric;
	const char *quantity;		/* REPORT_LATENCY of another time: "CPU time" */
	enum bench_layout layout;
	int min_ranks;
	int unit;			/* bytes; sizes are multiples of it; 0: 1 */
	bool lists;			/* BENCH_ALL: b->counts and b->displs are set */
	/* The last paragraph of --help: the meaning of a value, if the summary does not say it. */
	const char *about;
	/*
	 * Messages of a pair, or of a master, in a sample; NULL: one.  A latency is the sample's
	 * time divided by them.
	 */
	int (*messages)(const struct bench *b);
	/* Blocks of the buffers of this rank; NULL: none. */
	int (*sblocks)(const struct bench *b);
	int (*rblocks)(const struct bench *b);
	/* Timed messages have places of their own, too; NULL: they have a common place. */
	bool (*apart)(void);
	/* Called before the first run of each size and way; may be NULL. */
	void (*prepare)(struct bench *b);
	/*
	 * Run a sample.  On return all its operations are complete and sbuf may be written again.
	 * A sample is timed, so it contains communication only.
	 */
	void (*run)(struct bench *b);
	/* The part of the last run's time that counts, in ns; NULL: all of it. */
	uint64_t (*took)(void);
	/* The origin of block `block` of rbuf after run.  NULL: nothing to check. */
	struct bench_origin (*expect)(const struct bench *b, int block);
	/* Defaults of the common options; NULL and 0: the harness's. */
	const char *sizes;			/* "1:4M" */
	struct bench_counts small, large;	/* sizes up to 8 KiB; larger sizes */
	const char *time_cap;			/* "10s" */
	/* The program's own options: rows and the struct that their offsets refer to. */
	const struct opt *options;
	void *values;
	/* BENCH_APP: set this, and of the above name, summary, and those of BENCH_APP_DEF. */
	const struct bench_app *app;
	/* Moves messages in place of MPI; NULL: MPI does. */
	const struct bench_carrier *carrier;
	/*
	 * Columns other than ways: the single way of --over is measured in each of these variants,
	 * which take turns as ways do.  The list ends with a NULL name.  Latencies are also shown
	 * as differences from the first variant.  Called once, before the carrier is opened.  NULL:
	 * columns are ways.
	 */
	const struct opt_choice *(*variants)(void);
	/* The coordinate that the options ask for; NULL, or returns NULL: the message size. */
	const struct bench_axis *(*axis)(void);
	const struct bench_acceptance *acceptance;
	/* Calibration: set this; run is replaced by that of each collective in its turn. */
	const struct bench_tune *tune;
};

extern const struct bench_def bench_def;

/* Members of the bench_def of each BENCH_APP program; rows, values and app are the program's. */
#define BENCH_APP_DEF \
	.metric = REPORT_MOPS, .layout = BENCH_APP, .min_ranks = 1, .options = rows, \
	.values = &values, .app = &app

/* Cost of reading the clock, which each measured interval includes. */
uint64_t bench_clock_ns(void);

/* Ready-made functions for the members of bench_def. */
int bench_one(const struct bench *b);		/* 1 */
int bench_two(const struct bench *b);		/* 2: there and back */
int bench_per_rank(const struct bench *b);	/* a block for each rank of comm */
int bench_one_at_root(const struct bench *b);	/* rank 0 */
int bench_per_rank_at_root(const struct bench *b);
int bench_window(const struct bench *b);	/* a block for each message of the window */
int bench_two_windows(const struct bench *b);	/* a window in each direction */
/* A window on the side that sends (0) or receives (1), else none. */
int bench_window_side0(const struct bench *b);
int bench_window_side1(const struct bench *b);
/* Block i came from block i of the peer. */
struct bench_origin bench_from_peer(const struct bench *b, int block);
/* Block i is the only block of rank i. */
struct bench_origin bench_from_each(const struct bench *b, int block);
/* Rank i sent block i to this rank. */
struct bench_origin bench_to_me(const struct bench *b, int block);
/* Block i is the sum of all ranks' block i. */
struct bench_origin bench_sum(const struct bench *b, int block);
/* Run a window of messages back to back, then a small reply. */
void bench_run_window(struct bench *b);

#endif
