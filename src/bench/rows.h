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

#endif
