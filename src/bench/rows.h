/* rows.h - rows from samples. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "bench/job.h"
#include "bench/measure.h"

/* Rows of one size, in way order.  valid: results of validate_way. */
int rows_write(struct bench_job *job, uint64_t bytes, const struct measure m[],
	       const int valid[]);
/* The median of one way, at rank 0, in the metric's unit; writes no row. */
double rows_median(struct bench_job *job, int w, uint64_t bytes, const struct measure *m);
/* Rows of a tournament's round; valid[way * pair_count + pair], at rank 0. */
int rows_write_pairs(struct bench_job *job, uint64_t bytes, const struct measure m[],
		     const int valid[]);
/*
 * The row of a cell, at rank 0: samples of a window in `ns`, m->done of them; 0: it is down.  rank:
 * sender and receiver.  more: further members, borrowed.  0 or -errno.
 */
int rows_write_cell(struct bench_job *job, int w, const int rank[2], const struct measure *m,
		    const uint64_t *ns, int valid, json_t *more);

#endif
