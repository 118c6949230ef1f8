/* carrier.h - steps of the carrier of messages in place of MPI. */
#ifndef BENCH_CARRIER_H
#define BENCH_CARRIER_H

#include "bench/job.h"

int carrier_open(struct bench_job *job);	/* after place_join; may limit --sizes */
int carrier_memory(struct bench_job *job);	/* after buffers_open */
void carrier_close(struct bench_job *job);
/* Called before and after runs of this rank; way NULL: arrivals count for no way. */
void carrier_begin(struct bench_job *job, uint64_t runs);
bool carrier_end(struct bench_job *job, struct bench_column *way);
/* Messages expected and lost by all ranks for one row; at rank 0, else zeros. */
struct bench_arrivals carrier_row(struct bench_job *job, struct bench_column *way);
/* The ledger of the carrier or the transport; contract of railmpi_ledger. */
int carrier_ledger(const struct bench_job *job, int rail, struct rail_ledger *out);

#endif
