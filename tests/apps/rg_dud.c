/*
 * dud - a computation that goes wrong on demand, and whose times are known, by a clock of its own
 * (known_clock.h): a turn takes 40 ms, of which rank r talks 5 (r + 1); every second turn takes
 * 40 ms more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../bench/known_clock.h"
#include "bench/bench.h"

static struct dud_values { uint64_t wrong; bool greedy; } values;

static const struct opt rows[] = {
	{ .name = "wrong", .type = OPT_COUNT, .offset = offsetof(struct dud_values, wrong),
	  .arg = "RANK", .standard = "none", .special = "none", .max = 1000,
	  .help = "the rank that finds something wrong" },
	{ .name = "greedy", .type = OPT_FLAG, .offset = offsetof(struct dud_values, greedy),
	  .help = "the last rank gets no memory" },
	{ .name = NULL },
};

static void wait_ms(int ms)
{
	known_clock_pass((uint64_t)ms * 1000000);
}

static int dud_check(int ranks, uint64_t available, char *why, size_t why_size)
{
	if (ranks <= 8 && available >= 1024)
		return 0;
	snprintf(why, why_size, "%d ranks of %llu bytes (accepted: others)", ranks,
		 (unsigned long long)available);
	return -EINVAL;
}

static void dud_problem(struct bench_problem *out)
{
	*out = (struct bench_problem){ .class = "D", .size = "1", .bytes = 1, .iterations = 1,
				       .operations = 4e4, .operation = "naps" };
}

static int dud_open(int rank, int ranks)
{
	void *memory = bench_alloc(1000), *large = bench_alloc((size_t)8 << 20);
	bool well = memory && large && (uintptr_t)memory % 64 == 0 && (uintptr_t)large % 64 == 0;

	bench_free(memory);
	bench_free(large);
	return well && !(values.greedy && rank == ranks - 1) ? 0 : -ENOMEM;
}

static void dud_run(struct bench_turn *t)
{
	static int turns;
	uint64_t begun;

	bench_turn_begin(t);
	begun = bench_communication_begin();
	wait_ms(5 * (t->rank + 1));
	bench_communication_end(t, begun, 100);
	wait_ms(40 - 5 * (t->rank + 1) + (turns++ % 2 ? 40 : 0));
	bench_turn_end(t);
	if (values.wrong == (uint64_t)t->rank)
		snprintf(t->wrong, sizeof(t->wrong), "so it was told");
}

static void dud_close(void)
{
}

static const struct bench_app app = {
	.remark = "a dud",
	.check = dud_check,
	.problem = dud_problem,
	.open = dud_open,
	.run = dud_run,
	.close = dud_close,
};

const struct bench_def bench_def = {
	.name = "dud",
	.summary = "Naps",
	BENCH_APP_DEF,
};
