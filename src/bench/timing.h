/*
 * timing.h - the method that times a row of a collective.
 *
 * --timing sync gives way to barrier, for a whole row, on an oversubscribed node, where ranks do
 * not start together, and where the clocks' error exceeds 5 % of the row's median.  All ranks
 * decide alike, from agreed numbers.
 */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include "bench/job.h"
#include "bench/measure.h"

/*
 * Run measure_size; for BENCH_ALL by the method of --timing, and once more by a barrier if sync
 * does not suffice.  Collective.
 */
void timing_measure(struct bench_job *job, uint64_t bytes, struct measure m[]);

#endif
