/* samples.h - samples at rank 0, and the file of --samples. */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include "bench/job.h"
#include "bench/measure.h"

/* Series of a row, one after another: n samples of each pair in the order of time, in ns. */
struct samples {
	uint64_t *ns;		/* NULL: not rank 0 */
	uint64_t n;
	int series;		/* 1 for collectives and for a master, whose samples cover its slaves */
};

/* Collective.  samples_free frees the series. */
struct samples samples_gather(const struct bench_job *job, int way, const struct measure *m);
void samples_free(struct samples *s);

/*
 * The file, which outputs.c opens: SAMPLES_HEAD, then a line per sample.
 *	launch	number of the launch (--launch)
 *	x	value of the axis, if the table has one
 *	pair	its number; FROM-TO of a matrix; `all`: of all ranks (collectives: the largest time; a
 *		master: all its slaves)
 *	turn	batches as they were run, among turns of other ways
 *	batch	batches of stats.h, whose medians make the interval
 *	value	time of a sample
 * Several pairs whose values are added have one more line per turn, `all`: the time from the common
 * start to the last end, in which each pair ran the samples of that turn.
 */
#define SAMPLES_HEAD "launch,way,bytes,x,pair,turn,batch,sample,value,unit\n"
void samples_file_add(struct bench_job *job, int way, uint64_t bytes, const struct samples *s);
/* 0, or -errno after one error line. */
int samples_file_flush(struct bench_job *job);
int samples_file_close(struct bench_job *job);

#endif
