/* ways.h - a communicator per way. */
#ifndef BENCH_WAYS_H
#define BENCH_WAYS_H

#include "bench/job.h"

int ways_open(struct bench_job *job);		/* rails, fabric, communicators */
/*
 * Open a further way.  id: enum railmpi_way, or RAILMPI_SINGLE_RAIL + N.  way: the job's next; with
 * settings of its own, or none.
 */
int way_open(struct bench_job *job, struct bench_column *way, int id);
bool way_is_possible(int id);			/* by the job's rails; silent */
void ways_close(struct bench_job *job);
/* The largest message that may be sent eagerly, over any way: --eager. */
uint64_t ways_eager_limit(const struct bench_job *job);
/* The rail of a way over one rail alone ("mlx5_1:1"), or NULL. */
const char *way_rail(const struct bench_job *job, const struct bench_column *way);
/* Set the algorithm of the way, if it has one; before each of its batches. */
void way_switch(const struct bench_column *way);

#endif
