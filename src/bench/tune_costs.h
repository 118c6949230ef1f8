/* tune_costs.h - costs within this host, for the table of rg_tune. */
#ifndef BENCH_TUNE_COSTS_H
#define BENCH_TUNE_COSTS_H

#include "bench/job.h"

/*
 * Rank 0 exchanges messages with ranks of its host, one at each place, until it has learned what it
 * can, then writes the costs into `file`, as RAILGAUGE_COSTS takes them, and prints them.  All ranks
 * call it; rank 0 has a file.
 */
void tune_costs(const struct bench_job *job, FILE *file);

#endif
