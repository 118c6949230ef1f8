/* preset.h - --experiment: values of a paper. */
#ifndef BENCH_PRESET_H
#define BENCH_PRESET_H

#include "bench/job.h"

/*
 * Apply the values of --experiment to options that are not set.  program: "rg_bw".
 * 0 or -EINVAL after one error line.
 */
int preset_apply(struct bench_job *job, const char *program);
void preset_free(struct bench_job *job);
/* Differences from the experiment: "2 ranks (4), sizes 8:64 (1:1M)", presets in brackets. */
char *preset_changes(const struct bench_job *job, char *buf, size_t size);

#endif
