/* outputs.h - the files of --json and --samples; at rank 0. */
#ifndef BENCH_OUTPUTS_H
#define BENCH_OUTPUTS_H

#include "bench/job.h"

/*
 * Open the report and the file of samples; each replaces a file of its kind in one step, after its
 * first line has been written, with the rows that --continue keeps.  Other files stay, without
 * --overwrite.  0 or -errno after one error line; then no file has changed.
 */
int outputs_open(struct bench_job *job, struct report_table *table, json_t *run);

#endif
