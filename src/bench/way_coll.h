/*
 * way_coll.h - items of --over that force algorithms of collectives: single,coll=alltoall=linear.
 *
 * The MPI layer has one list of forced algorithms for the process, --coll.  Before each of its batches a way sets
 * the job's list and its own (way_switch); so where one item has a list, all others have the job's.
 */
#ifndef BENCH_WAY_COLL_H
#define BENCH_WAY_COLL_H

#include "bench/job.h"

/*
 * Take words coll=NAME=ALGORITHM out of settings, "name=value,..." or NULL, for the way.  The rest, which lives as
 * long as the process, or NULL with a line on stderr: such a list is not accepted.
 */
const char *way_coll_take(const struct bench_job *job, struct bench_column *way, const char *settings);
/* All ways are open: those without a list of their own have the job's, if any has one. */
void way_coll_complete(struct bench_job *job);

#endif
