/* place.h - hosts, nodes, pairs of ranks. */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include "bench/job.h"

int place_find(struct bench_job *job);		/* hosts and CPUs; before rails are opened */
int place_join(struct bench_job *job);		/* nodes and pairs; after */
bool place_plays(const struct bench_job *job);	/* this rank takes part in a tournament */

#endif
