/* options.h - the tables of options, and their parsing. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "bench/job.h"

/* 0; 1: help or version was printed; -EINVAL after one error line. */
int options_parse(struct bench_job *job);
void options_free(struct bench_job *job);
struct bench_counts options_counts(const struct bench_job *job, uint64_t bytes);
uint64_t options_next_size(uint64_t bytes);
/* The largest measured size. */
uint64_t options_last_size(const struct bench_job *job);

#endif
