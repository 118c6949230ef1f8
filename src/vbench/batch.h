/* batch.h - before and after a batch of runs: receives, lost messages, the ledger. */
#ifndef VBENCH_BATCH_H
#define VBENCH_BATCH_H

#include "vbench/lanes.h"

void vb_begin(struct bench *b, uint64_t runs);
bool vb_end(struct bench *b, struct bench_arrivals *out);

#endif
