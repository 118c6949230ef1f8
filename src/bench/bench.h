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
};

enum bench_layout { BENCH_ALL, BENCH_PAIRS, BENCH_TOURNAMENT };

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
};

enum { BENCH_TAG = 1, BENCH_ACK_TAG = 2 };

/* Where a block came from: block `block` of the send buffer of rank `rank`. */
struct bench_origin { int rank, block; };

/* Samples of a row, and untimed ones before them. */
struct bench_counts { uint64_t iterations, warmup; };

struct bench_def {
	const char *name;		/* "bw" in rg_bw.c */
	const char *summary;		/* "Uni-directional bandwidth": heading, title, --help */
	enum bench_metric metric;
	enum bench_layout layout;
	int min_ranks;
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
	/* Options of its own: rows and the struct behind their offsets. */
	const struct opt *options;
	void *values;
};

extern const struct bench_def bench_def;

/* For the members of bench_def that are functions. */
int bench_one(const struct bench *b);		/* 1 */
int bench_two(const struct bench *b);		/* 2: there and back */
int bench_per_rank(const struct bench *b);	/* one per rank of comm */
int bench_window(const struct bench *b);	/* one per message of the window */
int bench_two_windows(const struct bench *b);	/* a window in each direction */
/* A window, but only on the side that sends (0) or receives (1). */
int bench_window_side0(const struct bench *b);
int bench_window_side1(const struct bench *b);
/* Block i came from block i of the peer. */
struct bench_origin bench_from_peer(const struct bench *b, int block);
/* A window of messages back to back, then a small reply. */
void bench_run_window(struct bench *b);

#endif
