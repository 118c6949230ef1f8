/* memory.h - BENCH_APP: available memory, and its allocation. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include "bench/job.h"

/* Bytes that this process can allocate, if `sharers` processes of its host want as much. */
uint64_t memory_available(int sharers);

#endif
