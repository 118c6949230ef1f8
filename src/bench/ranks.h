/* ranks.h - operations of all ranks together. */
#ifndef BENCH_RANKS_H
#define BENCH_RANKS_H

#include "bench/job.h"

/* Returns memory, the result of an allocation; NULL ends the job after one line. */
void *bench_must(void *memory);
/* Make errors of MPI on comm print a line and end the job with RG_EXIT_FAULT. */
void ranks_guard(MPI_Comm comm);
/* The largest of all ranks' values, on all ranks; ranks that do not run sleep meanwhile. */
uint64_t ranks_max(const struct bench_job *job, uint64_t mine);
/* A barrier, in which ranks that do not run sleep. */
void ranks_meet(const struct bench_job *job);
/*
 * MPI_Barrier between samples: soon over for all.  On an oversubscribed node a rank that waits yields:
 * where MPI libraries do not, a rank whose peers share its core would poll their slices away.
 */
void ranks_barrier(const struct bench_job *job);
/* Reduces the values of all ranks to rank 0's; ranks that wait sleep as in ranks_max. */
void ranks_reduce(const struct bench_job *job, uint64_t *values, int count, MPI_Op op);
/*
 * End a step that began with rg_errors_hold: the lowest rank that failed prints its error line.
 * Did any rank fail?
 */
bool ranks_failed(const struct bench_job *job, int rc);
/* Texts of all ranks in sequence, each NUL-terminated, at rank 0, for free(); else NULL. */
char *ranks_texts(const struct bench_job *job, const char *mine);

#endif
