/* ledger.h - what each rail carried. */
#ifndef BENCH_LEDGER_H
#define BENCH_LEDGER_H

#include "bench/job.h"

void ledger_open(struct bench_job *job);	/* before anything is validated or measured */
/*
 * Count the data that this rank has moved since the last call for this way (NULL: for no way).
 * Call it before a collective that all ranks enter before any rank sends more over rails.
 */
void ledger_take(struct bench_job *job, struct bench_column *way);
/* The sums over all ranks of one size; at rank 0, else NULL. */
json_t *ledger_row(struct bench_job *job, struct bench_column *way);
/* Print the '#' lines; returns the member of the end record, at rank 0, else NULL. */
json_t *ledger_close(struct bench_job *job);

#endif
