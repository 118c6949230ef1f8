/* carrier.h - what carries messages in place of MPI. */
#ifndef BENCH_CARRIER_H
#define BENCH_CARRIER_H

#include "bench/job.h"

int carrier_open(struct bench_job *job);	/* behind place_join; may limit --sizes */
int carrier_memory(struct bench_job *job);	/* behind buffers_open */
void carrier_close(struct bench_job *job);
/* Around runs of this rank; way NULL: what arrives is of no way. */
void carrier_begin(struct bench_job *job, uint64_t runs);
bool carrier_end(struct bench_job *job, struct bench_way *way);
/* Messages expected and lost by all ranks for one row; at rank 0, else zeros. */
struct bench_arrivals carrier_row(struct bench_job *job, struct bench_way *way);
/* As railmpi_ledger, of the carrier or the transport. */
int carrier_ledger(const struct bench_job *job, int rail, struct railmpi_ledger *out);

#endif
