/* describe.h - the run record and the '#' lines. */
#ifndef BENCH_DESCRIBE_H
#define BENCH_DESCRIBE_H

#include "bench/job.h"

/* The run record, at rank 0; takes over `hosts` (hosts.h). */
json_t *describe_run(const struct bench_job *job, json_t *hosts);
void describe_fabric(const struct bench_job *job, char *text, size_t size);

#endif
