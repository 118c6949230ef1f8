/* tournament.h - measurement of every pair of nodes. */
#ifndef BENCH_TOURNAMENT_H
#define BENCH_TOURNAMENT_H

#include "bench/job.h"

/* Names of nodes and ways; they live as long as the process. */
void tournament_matrix(const struct bench_job *job, struct report_matrix *out);
int tournament_run(struct bench_job *job, uint64_t bytes);

#endif
