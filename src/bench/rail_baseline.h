/* rail_baseline.h - each rail alone, in turns with the ways over all rails. */
#ifndef BENCH_RAIL_BASELINE_H
#define BENCH_RAIL_BASELINE_H

#include "bench/job.h"

/* Measures; prints '#' lines and returns a member of the end record, at rank 0; else NULL. */
json_t *rail_baseline_compare(struct bench_job *job);

#endif
