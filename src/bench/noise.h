/*
 * noise.h - the machine's share in a row: time that ranks were ready to run and had no core, cores
 * taken from them, and time that a hypervisor took.
 */
#ifndef BENCH_NOISE_H
#define BENCH_NOISE_H

#include <jansson.h>

#include "bench/noise_read.h"

struct bench_job;
struct bench_column;

enum { NOISE_WAYS_MAX = 16 };

/* Counts of a way during the timed batches of a size. */
struct noise_counts {
	uint64_t wait_ns, slices, switches, wall_ns;
	uint64_t steal_ticks, span_ns;	/* of the size: from noise_begin to noise_end */
};

/* Counts of a way over all ranks.  A count that a rank does not know is not known. */
struct noise_sum {
	uint64_t wait_ns, slices, switches, steal_ticks;	/* totals; steal: once a host */
	uint64_t wait_ns_most, rank;	/* the rank that waited most */
	uint64_t wall_ns, span_ns;	/* the longest of all ranks */
};

struct noise {
	struct noise_files files;
	bool counts_steal;		/* the first rank of each host does */
	uint64_t steal_begun, span_begun;
	struct noise_waits waits_begun;
	uint64_t switches_begun, wall_begun;
	struct noise_counts mine[NOISE_WAYS_MAX];
	struct noise_sum all[NOISE_WAYS_MAX];	/* rank 0, after noise_end */
};

/* Once, when the places of ranks are known. */
void noise_open(struct bench_job *job);
void noise_close(struct bench_job *job);

/* All ranks, around the batches of a size.  noise_end sums up, in one reduction. */
void noise_begin(struct bench_job *job);
void noise_end(struct bench_job *job);
/* Around the timed part of a batch, of one way.  A rank that does not run in it is not counted. */
void noise_batch_begin(struct bench_job *job);
void noise_batch_end(struct bench_job *job, const struct bench_column *way);

/*
 * Rank 0: the row's member `noise`: wait_ns, wait_ns_most, rank and slices (null: not known), switches,
 * steal_ticks (null: not known), wall_ns (of the way's batches), span_ns (of all ways' batches;
 * steal_ticks are counted over it).
 */
json_t *noise_record(const struct bench_job *job, int w);

#endif
