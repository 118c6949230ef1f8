/* app.h - BENCH_APP: computations over each way, in turns. */
#ifndef BENCH_APP_H
#define BENCH_APP_H

#include "bench/job.h"

/* Before rails are opened: is the problem possible?  0 or an exit code, on all ranks. */
int app_check(struct bench_job *job);
int app_open(struct bench_job *job);		/* instead of buffers_open */
void app_close(struct bench_job *job);
/* The "app" member of the run record. */
json_t *app_describe(const struct bench_job *job);
/* All turns, then a row per way.  0 or an exit code; failed verification is noted in job. */
int app_run(struct bench_job *job);

#endif
