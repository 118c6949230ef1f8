/* tune.h - the quickest algorithms of collectives. */
#ifndef BENCH_TUNE_H
#define BENCH_TUNE_H

#include "bench/job.h"

int tune_check(const struct bench_job *job);	/* can the table be written? */
int tune_run(struct bench_job *job);

#endif
