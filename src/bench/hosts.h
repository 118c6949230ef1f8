/* hosts.h - facts of all hosts of a job, from the first rank of each. */
#ifndef BENCH_HOSTS_H
#define BENCH_HOSTS_H

#include "bench/job.h"

/* Is this rank the first of its host? */
bool hosts_leads(const struct bench_job *job);

/*
 * Collective: rank 0 gets an array of the values of all hosts, in the order of their first ranks,
 * null where the text of a host was damaged; other ranks NULL.  mine: this host's, on its first
 * rank (the reference is taken over); NULL on others.
 */
json_t *hosts_collect(const struct bench_job *job, json_t *mine);

/*
 * Collective: the provenance of all hosts at rank 0, else NULL.  Identical hosts are one object:
 * names, machine, libraries, rails; load_average and gids have an item for each name.
 */
json_t *hosts_describe(const struct bench_job *job);

#endif
