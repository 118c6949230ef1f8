/*
 * bench.h - what a benchmark program says; the harness does everything else.
 *
 * A program is one `const struct bench_def bench_def` and no main().  It says
 * what one sample is (run), what that sample is worth (messages) and which data
 * must have arrived (expect).  The harness owns main(): options, MPI, ways,
 * buffers, warm-up, timing, validation, statistics, output.
 *
 * Three layouts.  BENCH_ALL: every rank calls run together, for collectives.
 * BENCH_PAIRS: ranks of different nodes are joined in pairs, which call run at
 * the same time; a rank has a side (0 or 1) and a peer.  BENCH_TOURNAMENT: pairs
 * that change: the first ranks of all nodes meet each other, in rounds in which all
 * are busy, over each rail alone and in both directions; a matrix comes out.
 *
 * A fourth, BENCH_APP: no message sizes, no samples; a computation that is timed as a
 * whole over each way, and tells which part of it was communication (struct bench_app).
 *
 * A program of BENCH_ALL with a struct bench_tune measures several collectives over one
 * way, each by all its algorithms, and writes a table of the quickest.
 *
 * Buffers consist of blocks of b->count bytes:
 *	BENCH_ALL	sblocks(b) and rblocks(b) of them, one behind the other
 *	the others	the messages of a window; message i is at sbuf + i * b->step.
 *			When timed, all are at the same place (step 0), so that a
 *			window does not measure the caches; when validated, each
 *			has a place of its own (step = count)
 */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opt.h"

enum bench_metric {
	BENCH_LATENCY,		/* us: time of a sample / messages */
	BENCH_BANDWIDTH,	/* MB/s: messages * count / time, all pairs together */
	BENCH_RATE,		/* messages / second, all pairs together */
	BENCH_MOPS,		/* BENCH_APP: operations / 1e6 / time of the slowest rank */
};

enum bench_layout { BENCH_ALL, BENCH_PAIRS, BENCH_TOURNAMENT, BENCH_APP };

struct bench {
	/* For the whole job. */
	int rank, size;		/* in comm */
	/* Not BENCH_ALL; in a tournament they change from round to round. */
	int pair;		/* which pair I belong to, counted from 0; -1: none */
	int side;		/* 0 or 1; side 0 takes the time */
	int peer;		/* rank of the other side */
	MPI_Request *request;	/* 2 * --window of them, for run's use */
	/* For one size and way. */
	MPI_Comm comm;		/* whose messages go that way */
	int count;		/* bytes of a block: the message size */
	int window;		/* not BENCH_ALL: messages per window */
	size_t step;		/* not BENCH_ALL: see above */
	unsigned char *sbuf, *rbuf;
	/* Where bench_def says lists: by rank, a block's size and place in units. */
	int *counts, *displs;
};

enum { BENCH_TAG = 1, BENCH_ACK_TAG = 2 };

/* Where a block came from: block `block` of the send buffer of rank `rank`. */
struct bench_origin { int rank, block; };
/* Instead of a rank: the sum of that block over all ranks, in MPI_UINT32_T. */
enum { BENCH_SUM = -1 };

/* Samples of a row, and untimed ones before them. */
struct bench_counts { uint64_t iterations, warmup; };

/* ---- BENCH_APP ----------------------------------------------------------- */

/* One computation over one way, as this rank sees it. */
struct bench_turn {
	MPI_Comm comm;			/* whose messages go that way */
	int rank, size;			/* in comm */
	/*
	 * What this rank found wrong, in words; "" if nothing.  Verification of all is
	 * successful if nobody found anything.
	 */
	char wrong[160];
	/* The harness's: since bench_turn_begin. */
	uint64_t begin_ns, total_ns, communication_ns, sent_bytes;
};

/* What is computed, as the options say. */
struct bench_problem {
	const char *class;		/* "A" */
	char size[48];			/* "256x256x128" */
	uint64_t bytes;			/* of the problem's data, all ranks */
	int iterations;
	double operations;		/* of all of them */
	const char *operation;		/* "keys ranked" */
};

struct bench_app {
	/* Printed with every result: whose problem it is and whose code it is not. */
	const char *remark;
	/*
	 * Is it possible on so many ranks, each of which can still allocate `available`
	 * bytes?  0, or -EINVAL with a whole line in why that names what is accepted.
	 * The same on all ranks.  Comes before open, and before anything is allocated.
	 */
	int (*check)(int ranks, uint64_t available, char *why, size_t why_size);
	void (*problem)(struct bench_problem *out);
	/* Memory for all turns.  0 or -ENOMEM, on this rank. */
	int (*open)(int rank, int ranks);
	/*
	 * All of it once: what is not timed, bench_turn_begin, what is, bench_turn_end,
	 * verification.  Calls of MPI between the two stand between bench_communication_begin and
	 * bench_communication_end.
	 */
	void (*run)(struct bench_turn *t);
	void (*close)(void);		/* also after a failed open */
};

void bench_turn_begin(struct bench_turn *t);	/* all ranks together */
void bench_turn_end(struct bench_turn *t);
/*
 * Communication, waiting for others included.  bytes: what goes to other ranks; of a
 * reduction its vector once, if there are other ranks.
 */
uint64_t bench_communication_begin(void);
void bench_communication_end(struct bench_turn *t, uint64_t begun, uint64_t bytes);
/*
 * Memory that the devices of the transport know, at the beginning of a cache line, in
 * large pages if the machine has them; NULL: there is none.  Only in open.
 */
void *bench_alloc(size_t bytes);
void bench_free(void *memory);			/* NULL: nothing */

/* ---- Calibration ----------------------------------------------------------- */

enum { BENCH_CANDIDATES = 8 };	/* algorithms of one collective at most */

struct bench_tune {
	const struct opt_choice *collectives;		/* as --coll names them */
	void (*const *run)(struct bench *b);		/* by the choice's value */
	const struct opt_list *only;			/* an option's value; none: all */
	const char *const *out;				/* an option's value: the table's file */
};

/* The check of an option that names a file: it is not empty. */
int bench_check_path(const char *text, char *why, size_t why_size);

/* ---- The program ------------------------------------------------------------ */

struct bench_def {
	const char *name;		/* "bw" in rg_bw.c */
	const char *summary;		/* "Uni-directional bandwidth": heading, title, --help */
	enum bench_metric metric;
	enum bench_layout layout;
	int min_ranks;
	int unit;			/* bytes; sizes are multiples of it; 0: 1 */
	bool lists;			/* BENCH_ALL: wants b->counts and b->displs */
	/* What one sample is worth, in messages of one pair; NULL: one. */
	int (*messages)(const struct bench *b);
	/* Blocks of the buffers of this rank; NULL: none. */
	int (*sblocks)(const struct bench *b);
	int (*rblocks)(const struct bench *b);
	/* Before the first run of each size and way; may be NULL. */
	void (*prepare)(struct bench *b);
	/*
	 * One sample.  On return every operation of it is complete and sbuf may
	 * be written again.  Nothing but communication: it is timed.
	 */
	void (*run)(struct bench *b);
	/* What block `block` of rbuf holds after run.  NULL: nothing to check. */
	struct bench_origin (*expect)(const struct bench *b, int block);
	/* Defaults of the common options; NULL and 0: the harness's. */
	const char *sizes;			/* "1:4M" */
	struct bench_counts small, large;	/* up to 8 KiB; above */
	const char *time_cap;			/* "10s" */
	/* Options of its own: rows and the struct behind their offsets. */
	const struct opt *options;
	void *values;
	/* BENCH_APP: this, and of the members above name, summary, metric, options, values. */
	const struct bench_app *app;
	/* Calibration: this; run is that of a collective in its turn. */
	const struct bench_tune *tune;
};

extern const struct bench_def bench_def;

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
/* Block i is the one that rank i addressed to me. */
struct bench_origin bench_to_me(const struct bench *b, int block);
/* Block i is the sum of all ranks' block i. */
struct bench_origin bench_sum(const struct bench *b, int block);
/* A window of messages back to back, then a small reply. */
void bench_run_window(struct bench *b);

#endif
