/*
 * shifted - MPI_Allreduce on clocks that differ by rank: the one of rank r is r hours ahead, and 20
 * r us more each second, as on a host of its own.  With --wander it also jumps by r ms at each
 * thousandth reading; with --set it jumps once, by r * 100 us, amid the runs of 16 bytes.  With
 * clock_waits.c it replaces src/util/clock.c in the program and in the harness in it.
 */
#include <time.h>

#include "bench/bench.h"
#include "util/clock.h"
#include "util/err.h"

static struct shifted_values { bool wander, set; } values;
static uint64_t set_ns;

static const struct opt rows[] = {
	{ .name = "wander", .type = OPT_FLAG, .offset = offsetof(struct shifted_values, wander),
	  .help = "clocks jump" },
	{ .name = "set", .type = OPT_FLAG, .offset = offsetof(struct shifted_values, set),
	  .help = "clocks jump once" },
	{ .name = NULL },
};

uint64_t rg_now_ns(void)
{
	static uint64_t rank = UINT64_MAX, readings;
	struct timespec t;
	uint64_t ns;

	if (rank == UINT64_MAX)
		rank = rg_launch_rank() > 0 ? (uint64_t)rg_launch_rank() : 0;
	clock_gettime(CLOCK_MONOTONIC, &t);
	ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	readings += values.wander;
	return ns + ns / 1000000 * 20 * rank + rank * UINT64_C(3600000000000) +
	       readings / 1000 * 1000000 * rank + set_ns;
}

static void shifted_run(struct bench *b)
{
	static int runs;

	if (b->count == 16 && values.set && ++runs == 500)
		set_ns = (uint64_t)b->rank * 100000;
	MPI_Allreduce(b->sbuf, b->rbuf, b->count / 4, MPI_UINT32_T, MPI_SUM, b->comm);
}

const struct bench_def bench_def = {
	.name = "shifted",
	.summary = "MPI_Allreduce on clocks that differ",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.unit = 4,
	.sizes = "8:64",
	.sblocks = bench_one,
	.rblocks = bench_one,
	.run = shifted_run,
	.expect = bench_sum,
	.options = rows,
	.values = &values,
};
