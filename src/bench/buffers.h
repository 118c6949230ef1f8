/* buffers.h - memory for messages. */
#ifndef BENCH_BUFFERS_H
#define BENCH_BUFFERS_H

#include "bench/job.h"

enum { BUFFERS_GUARD_BYTES = 64 };		/* after the last block of rbuf */
int buffers_open(struct bench_job *job);
const char *buffers_text(const struct bench_job *job);	/* for the heading */
void buffers_close(struct bench_job *job);
/* Set the members for a size and way; validating: each message has its own place. */
void buffers_set(struct bench_job *job, const struct bench_column *way, uint64_t bytes,
		 bool validating);
int buffers_blocks(const struct bench_job *job, int (*blocks)(const struct bench *b));

#endif
