/* measure.h - the samples of one size. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench/job.h"

struct measure {			/* state of a size and way */
	uint64_t wanted, done;		/* samples, of each pair */
	uint64_t counted;		/* samples that the counts ask for */
	uint64_t runs;			/* done, plus an untimed run per batch; no warm-up */
	uint64_t warm_wanted, warm_done;
	uint64_t spent_ns, warm_spent_ns;
	uint64_t limit_ns;		/* of spent_ns */
	uint64_t length;		/* samples of a batch, if place_sums; 0: not known yet */
	bool cut;			/* fewer samples than the counts ask for */
	bool converged;			/* stats/stop.h; the same on all ranks */
};

/* place_sums, rank 0: the time of each batch by its samples of a pair.  Their number. */
uint64_t measure_sums(const struct bench_job *job, int w, uint64_t *ns);

/* Does the rule of stats/stop.h add samples to the counts?  Counts that are given turn it off. */
bool measure_adapts(const struct bench_job *job);

/*
 * Fills m[way], job->got.samples[way] and job->got.batches[way].
 *
 * Each way gets the counts' samples.  While the rows of a size have not converged, all of its ways
 * get twice as many, up to 1 s of each way, or up to --time-cap if that is given.  Without a given
 * --time-cap the samples beyond the counts of all rows, with the cost of synchronised starts beyond
 * that of barriers, take at most as long as the counts by barriers, or 0.2 s.
 */
void measure_size(struct bench_job *job, uint64_t bytes, struct measure m[]);

#endif
