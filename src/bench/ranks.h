/* ranks.h - operations of all ranks together. */
#ifndef BENCH_RANKS_H
#define BENCH_RANKS_H

#include "bench/job.h"

/* Returns memory, the result of an allocation; NULL ends the job after one line. */
void *bench_must(void *memory);
/* Errors of MPI on comm: one line, then the end of the job with RG_EXIT_FAULT. */
void ranks_guard(MPI_Comm comm);
/* The largest of all ranks' values, on all ranks; ranks that do not run sleep meanwhile. */
uint64_t ranks_max(const struct bench_job *job, uint64_t mine);
/*
 * The end of a step that can fail, between rg_errors_hold and here: the lowest rank that failed
 * prints its error line.  Did any fail?
 */
bool ranks_failed(const struct bench_job *job, int rc);

#endif
