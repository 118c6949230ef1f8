/* validate.h - validation of every received byte. */
#ifndef BENCH_VALIDATE_H
#define BENCH_VALIDATE_H

#include "bench/job.h"

/* -1: not requested, 0: Fail after one error line on rank 0, 1: Pass; the same on all ranks. */
int validate_way(struct bench_job *job, const struct bench_column *way, uint64_t bytes);

#endif
