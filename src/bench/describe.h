/* describe.h - the run record and the '#' lines. */
#ifndef BENCH_DESCRIBE_H
#define BENCH_DESCRIBE_H

#include "bench/job.h"

json_t *describe_run(const struct bench_job *job);
void describe_fabric(const struct bench_job *job, char *text, size_t size);

#endif
