/*
 * collective.h - the timed loop of BENCH_ALL: all ranks call run together.
 *
 * --timing names the method:
 *	sync	synchronised clocks (clocks.h) and a common start time (roundtime.h).  A sample is
 *		the time from the first rank's start to the last rank's end.  It is the same on
 *		all ranks.
 *	barrier	MPI_Barrier before each run.  A sample is the largest of all ranks' own times.
 *		Ranks leave a barrier one after the other, and that skew is in the sample, or
 *		hides a part of it, depending on the barrier's algorithm.
 *	osu	the loop of OMB 7 (osu_allreduce.c): MPI_Barrier once before the loop, and after
 *		each run, outside of the timed part; a row is the mean over ranks of the mean
 *		own times, and so is a sample here.  OMB does not subtract the cost of the clock.
 *
 * timing.c decides where sync gives way to barrier.
 *
 * The record of a row has `timing` (collective_record).
 */
#ifndef BENCH_COLLECTIVE_H
#define BENCH_COLLECTIVE_H

#include "bench/job.h"
#include "bench/roundtime.h"

/* A row of a way. */
struct collective_row {
	uint64_t spent_ns, runs_ns;	/* on this rank: all of it; the runs alone */
	uint64_t residual_ns, voided;
	uint64_t rounds;
	uint64_t more_runs;		/* in void rounds, and in a first pass that was given up */
	double skew_ns, local_ns;	/* sums over rounds */
};

struct collective {
	struct clocks_link link;
	struct clocks clocks;
	struct roundtime round;
	bool synchronised;
	uint64_t barrier_ns;		/* of MPI_Barrier, if clocks are synchronised */
	uint64_t clock_ns;		/* bench_clock_ns() */
	struct collective_row row[REPORT_WAYS_MAX];
	/* timing.c sets these for each row. */
	enum bench_timing method;
	char why[160];			/* barrier in place of sync; "" */
	uint64_t before_ns;		/* cost of clocks, and of a first pass that was given up */
	bool vain;			/* ranks did not start together; collective_batch sets it */
	/* timing.c keeps these for the whole job. */
	int skip, skipped;		/* rows without a try after vain ones; of these so far */
	double expected_ns;		/* time of the quickest way, by earlier rows; 0: unknown */
	bool doubted;			/* the last row's clocks were */
	int renew_skip, renew_skipped;	/* rows without new clocks after vain ones; of these so far */
	int renewed;			/* how often clocks were synchronised anew */
	bool told;
};

/* Values of --timing. */
const struct opt_choice *collective_methods(void);

/* The state, from the first call on. */
struct collective *collective_open(struct bench_job *job);
/* Synchronise clocks, once.  Collective. */
void collective_synchronise(struct bench_job *job);
/* Run `count` timed runs of a way (BENCH_ALL).  Called by measure.c.  Collective. */
void collective_batch(struct bench_job *job, const struct bench_column *way, uint64_t count,
		      uint64_t *samples);
/* At rank 0 the samples of all ranks, in place of its own; n of them.  Collective. */
void collective_reduce(const struct bench_job *job, uint64_t *samples, uint64_t n);
/*
 * The row member `timing`: method ("local": of a rank's or a pair's own clock), and for collectives
 *	asked		--timing
 *	why		the reason for a barrier in place of sync, or null
 *	correction_ns	subtracted from each sample: the cost of reading the clock
 *	cost_s		time of the method on rank 0 in addition to the runs, with a first pass that
 *			was given up
 *	clocks		different clocks among the ranks; 0: not looked for
 *	renewed		how often clocks were synchronised anew, up to this row
 *	residual_ns	the clocks' error, the largest of several checks in the row
 *	skew_ns, local_ns  mean over rounds of the arrival skew, and of the largest own time
 *	voided		rounds that were repeated
 * Values that the method does not have are null.
 */
json_t *collective_record(const struct bench_job *job, int way);
/* Time of the row's synchronised starts so far, on this rank, beyond that of barriers; of all ways. */
uint64_t collective_extra_ns(const struct bench_job *job);
/* Runs of a row that measure.c does not count. */
uint64_t collective_more_runs(const struct bench_job *job, int way);
/* The '#' line above the table, or NULL. */
const char *collective_text(const struct bench_job *job);
void collective_close(struct bench_job *job);

#endif
