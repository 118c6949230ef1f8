/* continued.h - --continue: what a run that was ended has left in its files; at rank 0. */
#ifndef BENCH_CONTINUED_H
#define BENCH_CONTINUED_H

#include "bench/job.h"

/*
 * Find the first sizes that the --json file has with all ways, if it is that of a run with the same
 * options that did not finish: sets job->got.kept and kept_sizes, and the table's kept rows.  Else
 * all sizes are measured; a note in `run` says which it is.
 */
void continued_find(struct bench_job *job, struct report_table *table, json_t *run);

/* Copy the samples of these sizes from the --samples file that is there. */
void continued_samples(const struct bench_job *job, FILE *to);

#endif
