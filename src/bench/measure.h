/* measure.h - the samples of one size. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench/job.h"

struct measure {			/* state of a size and way */
	uint64_t wanted, done;		/* samples */
	uint64_t runs;			/* done, plus an untimed run per batch; no warm-up */
	uint64_t warm_wanted, warm_done;
	uint64_t spent_ns, warm_spent_ns;
	bool cut;
};
/* Fills m[way] and job->samples[way]. */
void measure_size(struct bench_job *job, uint64_t bytes, struct measure m[]);

#endif
