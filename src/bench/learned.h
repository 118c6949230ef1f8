/* learned.h - what ranks have learned of costs, for records and notes. */
#ifndef BENCH_LEARNED_H
#define BENCH_LEARNED_H

#include "bench/job.h"

/* This rank's cells by place of the peers: { "host": [ ... ] }.  given: those of --costs alone. */
json_t *learned_json(bool given);
/*
 * Rank 0's at the end, and the races of collectives; with --ledger those of all ranks, and notes.  Collective.  A list, at rank 0;
 * else, or if nothing was learned, NULL.
 */
json_t *learned_close(const struct bench_job *job);

#endif
