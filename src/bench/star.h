/* star.h - a master and its slaves. */
#ifndef BENCH_STAR_H
#define BENCH_STAR_H

#include "bench/job.h"

/* Each rank is a node of its own, unless --nodes says otherwise; before rails are opened. */
int star_nodes(struct bench_job *job);
int star_join(struct bench_job *job);		/* in place of pairs; all slaves take part */

#endif
