/* options_use.h - parsed options: look-up, comparison among ranks, transport. */
#ifndef BENCH_OPTIONS_USE_H
#define BENCH_OPTIONS_USE_H

#include "bench/job.h"

/*
 * Compare the options of all ranks.  0 or an exit code, on all ranks, after a line that
 * names the option.  Collective over job->comm, natively.
 */
int options_agree(const struct bench_job *job);
/* Pass job-wide options to the transport, before MPI_Init.  0 or -EINVAL after a line. */
int options_to_transport(const struct bench_job *job);
/* ",name=value" for every option that belongs to a communicator. */
void options_of_communicator(const struct bench_job *job, char *text, size_t size);
/* The row of an option and its table, or NULL. */
const struct opt *options_find(const struct bench_job *job, const char *name,
			       const struct opt_table **table);

#endif
